"""Runs in a browser while they train, and afterwards: growing files, the data shown of them, a server, and the page."""
