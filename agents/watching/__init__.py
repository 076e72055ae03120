"""Shows training runs in a browser, during and after training: reads growing files, chooses data, and serves a page."""
