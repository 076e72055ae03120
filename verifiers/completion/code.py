"""Fenced code and struck-out text, which hold no answer."""

from __future__ import annotations

import re
from collections.abc import Sequence

_DELETED = re.compile(r"(?<!~)~~(?=[^\s~])[^~\n]{1,400}(?<=[^\s~])~~(?!~)")


def without_deleted(text: str) -> str:
    """A text without what it strikes out."""
    return _DELETED.sub("", text) if "~~" in text else text


_FENCE = re.compile(r"^[ \t>]*+(`{3,}+|~{3,}+)[ \t]*+([^\n`]*+)$", re.MULTILINE)


def code_spans(text: str) -> list[tuple[int, int]]:
    """The spans of fenced blocks; a fence with a label begins a block anew."""
    spans: list[tuple[int, int]] = []
    opened: re.Match[str] | None = None
    for fence in _FENCE.finditer(text):
        if opened is None:
            opened = fence
        elif fence[1].startswith(opened[1]) and not fence[2]:
            spans.append((opened.start(), fence.end()))
            opened = None
        elif fence[2] and fence[1][0] == opened[1][0]:
            spans.append((opened.start(), fence.start()))
            opened = fence
    return [*spans, (opened.start(), len(text))] if opened else spans


def is_within(place: int, spans: Sequence[tuple[int, int]]) -> bool:
    """Whether a place is in one of the spans."""
    return any(start <= place < end for start, end in spans)


def without_code(text: str) -> str:
    """A text without its fenced blocks."""
    kept, start = [], 0
    for begin, end in code_spans(text) if "```" in text or "~~~" in text else ():
        kept.append(text[start:begin])
        start = end
    return "".join([*kept, text[start:]])


def unfenced(text: str) -> str:
    """A text that is one fenced block without its fences; any other text as it is."""
    if not text.lstrip().startswith(("```", "~~~")):
        return text
    fences = list(_FENCE.finditer(text))
    if (
        len(fences) == 2
        and not text[: fences[0].start()].strip()
        and not text[fences[1].end() :].strip()
        and not fences[1][2]
    ):
        return text[fences[0].end() : fences[1].start()]
    return text
