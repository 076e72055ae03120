"""Finding the place of an answer in a completion or a worked solution: boxes, tags, the last line."""

from __future__ import annotations

import re

_TAG = re.compile(r"<answer>(.*?)</answer>", re.DOTALL | re.IGNORECASE)
_BOX = re.compile(r"\\(?:boxed|fbox|framebox)(?![A-Za-z])\s*")
_DELIMITER = re.compile(r"\\.|[{}$\s]", re.DOTALL)
_ENDS = frozenset(("$", r"\)", r"\]"))
_BETWEEN_BOXES = re.compile(
    r"(?:[\s,;$.]|\\[,;! ]|\\q?quad\b|\\(?:text|mbox|textrm)\s*\{\s*(?:,|and|or|,\s*and|,\s*or)\s*\}|\\\(|\\\)|\band\b|\bor\b)*"
)


def last_tagged(text: str) -> str | None:
    """Return what the last `<answer>...</answer>` encloses, None where there is none."""
    tagged = _TAG.findall(text)
    return tagged[-1].strip() if tagged else None


def boxes(text: str) -> list[tuple[int, int, str | None]]:
    r"""Return every outermost box: where it starts and ends, and its content, None if it is not closed.

    Without braces, as in `\boxed 5$` or `\boxed\frac12.`, the content is what follows, up to white space, the end of the
    formula or punctuation there. Escaped braces (`\{`, `\}`) are text, not delimiters.
    """
    found: list[tuple[int, int, str | None]] = []
    position = 0
    while (match := _BOX.search(text, position)) is not None:
        read = _braced if text.startswith("{", match.end()) else _bare
        content, position = read(text, match.end())
        found.append((match.start(), position, content))
    return found


def last_boxed(text: str) -> str | None:
    r"""Return what the last `\boxed{...}` encloses, None where there is none or it is not closed."""
    found = boxes(text)
    return found[-1][2] if found else None


def joined_boxes(text: str) -> str | None:
    """Return the last box with those before it that only signs and joining words stand between, as a list.

    Returns:
        The contents joined by commas, or by `or` where that stands between two of them; None if there is no box, and an
        empty text if the last is empty or not closed.
    """
    found = boxes(text)
    if not found:
        return None
    contents, joiner = [found[-1][2]], ", "
    for earlier, later in zip(found[-2::-1], found[:0:-1], strict=True):
        between = text[earlier[1] : later[0]]
        if not _BETWEEN_BOXES.fullmatch(between) or "\n\n" in between:
            break
        contents.append(earlier[2])
        joiner = " or " if re.search(r"\bor\b", between) else joiner
    if not contents[0]:
        return ""
    return joiner.join(dict.fromkeys(content for content in reversed(contents) if content))


def boxed_answer(solution: str) -> str | None:
    r"""Return the answer that a worked solution gives in its last box, or in the last few; None if it gives none."""
    return joined_boxes(solution) or None


def _braced(text: str, start: int) -> tuple[str | None, int]:
    """The group whose opening brace is at `start`, None if it is never closed, and where to go on."""
    depth = 0
    for match in _DELIMITER.finditer(text, start):
        depth += {"{": 1, "}": -1}.get(match[0], 0)
        if depth == 0:
            return text[start + 1 : match.start()].strip(), match.end()
    return None, len(text)


def _bare(text: str, start: int) -> tuple[str, int]:
    """What follows `start` up to the end of the word or formula, and where to go on."""
    depth, end = 0, len(text)
    for match in _DELIMITER.finditer(text, start):
        depth += {"{": 1, "}": -1}.get(match[0], 0)
        if depth < 0 or (depth == 0 and (match[0] in _ENDS or match[0].isspace())):
            end = match.start()
            break
    return text[start:end].rstrip(".,;"), end


def last_line(text: str) -> str:
    """Return the last line that is not blank, stripped; empty where there is none."""
    return text.rstrip().rpartition("\n")[2].strip()
