"""Signals by which a program's process says why it failed; can be imported on every platform.

A process that is ended by one of these has sent it to itself on purpose, which an exit status could not show.
"""

from __future__ import annotations

EXCEPTION, SYNTAX, MEMORY, FORBIDDEN, OUTPUT = 50, 51, 52, 53, 54
"""Real-time signals of Linux that nothing else uses."""
FAILURES = {
    -EXCEPTION: "exception",
    -SYNTAX: "syntax_error",
    -MEMORY: "memory",
    -FORBIDDEN: "forbidden",
    -OUTPUT: "output_limit",
}
"""The class of failure by the exit status; any other status but 0 the program chose itself, or the kernel."""
