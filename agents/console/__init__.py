"""Terminal output: progress bars, and text made safe to print."""
