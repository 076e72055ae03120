r"""The gold answer of a worked solution: what stands in its last `\boxed{}`, or last few."""

from __future__ import annotations

import re

_BOX = re.compile(r"\\(?:boxed|fbox)(?![A-Za-z])\s*")
_DELIMITER = re.compile(r"\\.|[{}$\s]", re.DOTALL)
_ENDS = {"$", r"\)", r"\]"}


# What may stand between two boxes that give one answer together: signs, white space, "and" and "or", also as \text{ and }.
_BETWEEN = re.compile(
    r"(?:[\s,;$]|\\[ ,;!]|\\q?quad|\b(?:and|or)\b|\\(?:text|mbox|textrm)\s*\{\s*,?\s*(?:and|or)\s*\})*"
)


def last_boxed(solution: str) -> str | None:
    r"""The content of the last `\boxed{...}` or `\fbox{...}`, outermost where boxes are nested.

    Without braces, as in `\boxed 5$` or `\boxed\frac12.`, it is what follows, up to white space, the end of the formula
    or a full stop or comma there. Escaped braces (`\{`, `\}`) are text, not delimiters.

    Returns:
        The content without surrounding white space; None if there is no box, or the last one is empty or has no end.
    """
    boxes = _boxes(solution)
    return boxes[-1][0] or None if boxes else None


def boxed_answer(solution: str) -> str | None:
    r"""The content of the last box, or of the last boxes joined by commas where nothing but "and", "or" and signs parts them.

    A solution that ends in `$\boxed{-2}$ and $\boxed{1}$` answers `-2, 1`.

    Returns:
        None as for `last_boxed`.
    """
    boxes = _boxes(solution)
    if not boxes or not boxes[-1][0]:
        return None
    answers: list[str] = []
    for index in range(len(boxes) - 1, -1, -1):
        content, _, end = boxes[index]
        if answers and not (content and _BETWEEN.fullmatch(solution, end, boxes[index + 1][1])):
            break
        answers.insert(0, content)
    return ", ".join(answers)


def _boxes(text: str) -> list[tuple[str, int, int]]:
    """The content of each outermost box, and where the box begins and ends; empty content if it has no end."""
    boxes: list[tuple[str, int, int]] = []
    position = 0
    while match := _BOX.search(text, position):
        read = _braced if text.startswith("{", match.end()) else _bare
        content, position = read(text, match.end())
        boxes.append((content.strip(), match.start(), position))
    return boxes


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
