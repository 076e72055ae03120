"""From a completion to its program; touches no sandbox."""
