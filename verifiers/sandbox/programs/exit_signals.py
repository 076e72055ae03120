"""Signals by which a program's process tells why it failed.

A process ended by one of these has sent it to itself on purpose, which an exit status could not show.
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
"""The class of failure for each exit status; any other status except 0 was chosen by the program or the kernel."""
