"""Runs in a browser while they train, and afterwards: files that grow, what is shown of them, a server, and the page."""
