r"""The gold answer of a worked solution: what stands in its last `\boxed{}`."""

from __future__ import annotations

import re

_BOX = re.compile(r"\\(?:boxed|fbox)(?![A-Za-z])\s*")
_DELIMITER = re.compile(r"\\.|[{}$\s]", re.DOTALL)
_ENDS = {"$", r"\)", r"\]"}


def last_boxed(solution: str) -> str | None:
    r"""The content of the last `\boxed{...}` or `\fbox{...}`, outermost where boxes are nested.

    Without braces, as in `\boxed 5$` or `\boxed\frac12.`, it is what follows, up to white space, the end of the formula
    or a full stop or comma there. Escaped braces (`\{`, `\}`) are text, not delimiters.

    Returns:
        The content without surrounding white space; None if there is no box, or the last one is empty or has no end.
    """
    content, position = "", 0
    while match := _BOX.search(solution, position):
        read = _braced if solution.startswith("{", match.end()) else _bare
        content, position = read(solution, match.end())
    return content.strip() or None


def _braced(text: str, start: int) -> tuple[str, int]:
    """The group whose opening brace is at `start`, and where to go on; empty if it is never closed."""
    depth = 0
    for match in _DELIMITER.finditer(text, start):
        depth += {"{": 1, "}": -1}.get(match[0], 0)
        if depth == 0:
            return text[start + 1 : match.start()], match.end()
    return "", start


def _bare(text: str, start: int) -> tuple[str, int]:
    """What follows `start` up to the end of the word or formula, and where to go on."""
    depth, end = 0, len(text)
    for match in _DELIMITER.finditer(text, start):
        depth += {"{": 1, "}": -1}.get(match[0], 0)
        if depth < 0 or (depth == 0 and (match[0] in _ENDS or match[0].isspace())):
            end = match.start()
            break
    return text[start:end].rstrip(".,;"), end
