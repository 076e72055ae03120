"""Fenced code and struck-out text, which hold no answer."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from verifiers.completion.places import line_start, places

_DELETED = re.compile(r"(?<!~)~~(?=[^\s~])[^~\n]{1,400}(?<=[^\s~])~~(?!~)")
_FENCE = re.compile(r"(`{3,}+|~{3,}+)[ \t]*+([^\n`]*+)$", re.MULTILINE)


class Fence(NamedTuple):
    """A line that begins or ends a block of code."""

    start: int
    end: int
    sign: str
    """The backticks or tildes of the fence."""
    info: str
    """The text after the backticks or tildes."""

    def begins(self, sign: str) -> bool:
        """Whether this fence begins a block; inside a block of `sign`, only a fence of the same kind with a label does."""
        return not sign or (self.info != "" and self.sign[0] == sign[0])

    def after(self, sign: str) -> str:
        """The characters of the fence that is open after this fence, given those of the fence open before; empty if none is."""
        return self.sign if self.begins(sign) else "" if self.sign.startswith(sign) else sign


def without_deleted(text: str) -> str:
    """A text without its struck-out parts."""
    return _DELETED.sub("", text)


def may_have_code(text: str) -> bool:
    """Whether a text contains a character of a fence or of struck-out text."""
    return "`" in text or "~" in text


def fences(text: str, *, behind_tags: bool = False) -> list[Fence]:
    """The fences of a text, in order: at the start of a line or quotation and, if `behind_tags`, directly after a tag."""
    found: list[Fence] = []
    end = 0
    for place in places(("```", "~~~"), text):
        start = line_start(text, place, " \t>")
        if start < 0 and behind_tags and text[place - 1] in ">]":
            start = place
        if start >= 0 and place >= end and (match := _FENCE.match(text, place)):
            end = match.end()
            found.append(Fence(start, end, match[1], match[2]))
    return found


def code_spans(text: str) -> list[tuple[int, int]]:
    """The spans of fenced blocks."""
    spans: list[tuple[int, int]] = []
    start, sign = 0, ""
    for fence in fences(text):
        if fence.begins(sign):
            if sign:
                spans.append((start, fence.start))
            start = fence.start
        elif not fence.after(sign):
            spans.append((start, fence.end))
        sign = fence.after(sign)
    return [*spans, (start, len(text))] if sign else spans


def is_within(place: int, spans: Sequence[tuple[int, int]]) -> bool:
    """Whether a position is in one of the spans."""
    return any(start <= place < end for start, end in spans)


def without_code(text: str) -> str:
    """A text without its fenced blocks."""
    kept, start = [], 0
    for begin, end in code_spans(text):
        kept.append(text[start:begin])
        start = end
    return "".join([*kept, text[start:]])


def unfenced(text: str) -> str:
    """Remove the fences of a text that is a single fenced block; any other text is returned unchanged."""
    if not text.lstrip().startswith(("```", "~~~")):
        return text
    marks = fences(text)
    if len(marks) != 2 or marks[1].info or text[: marks[0].start].strip() or text[marks[1].end :].strip():
        return text
    return text[marks[0].end : marks[1].start]
