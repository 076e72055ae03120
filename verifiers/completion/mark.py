"""A place of a response where an answer may stand."""

from __future__ import annotations

from typing import Literal, NamedTuple

Form = Literal["box", "hashes", "tag", "json", "phrase", "value", "whole", "number", "second"]
EXPLICIT: tuple[Form, ...] = ("box", "hashes", "tag", "json")
"""The forms of rank 1."""
# `second` is no form of a mark: it asks for strictness, where a statement behind an answer may only be about it.
MOST_MARKS = 64
"""Number of marks of a kind that are looked at, from the end."""
REACH = 1_500
"""Characters behind a phrase in which its statement must end."""
BEFORE = 200
"""Characters before a mark in which it may be denied."""


class Mark(NamedTuple):
    """A place where an answer may stand."""

    form: Form
    start: int
    end: int
    contents: tuple[str, ...]
    """The readings of the answer, the likeliest first. Nested marks give the innermost first; an empty mark, one empty text."""
    is_item: bool = False
    """Whether it is a phrase that begins an item of a list."""
    is_second: bool = False
    """Whether it is a phrase that states a second answer."""
    is_conditional: bool = False
    """Whether it is a phrase in a sentence that begins with a condition."""
    rest: str = ""
    """The rest of a phrase's sentence behind its contents: an explanation, or a remark in parentheses."""
    parts: tuple[Mark, ...] = ()
    """The marks that it joins, if it is a list of marks."""
