"""Shows training runs in a browser, during and after training: reading growing files, choosing data, server and page."""
