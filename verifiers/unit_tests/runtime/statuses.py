"""Exit statuses by which a stdin/stdout run says why it failed; imports on every platform."""

from __future__ import annotations

EXCEPTION, SYNTAX, MEMORY, FORBIDDEN, OUTPUT = 120, 121, 122, 123, 124
FAILURES = {
    EXCEPTION: "exception",
    SYNTAX: "syntax_error",
    MEMORY: "memory",
    FORBIDDEN: "forbidden",
    OUTPUT: "output_limit",
}
"""The class of failure of each; any other status but 0 the program chose itself."""
