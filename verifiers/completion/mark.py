"""A place in a response where an answer may stand."""

from __future__ import annotations

from typing import Literal, NamedTuple

Form = Literal["box", "hashes", "tag", "json", "phrase", "value", "whole", "number", "second"]
EXPLICIT: tuple[Form, ...] = ("box", "hashes", "tag", "json")
"""The forms of rank 1."""
NOTHING = "no answer in the completion"
"""The reason that is given if no mark of an answer was found."""
# `second` is not a form of marks. It asks for a strict reading, since a statement after an answer may be a remark about it.
MOST_MARKS = 64
"""Maximum number of marks of a kind that are considered, counted from the end."""
REACH = 1_500
"""Maximum number of characters after a phrase in which its statement must end."""
BEFORE = 200
"""Number of characters before a mark that are searched for a denial."""


class Mark(NamedTuple):
    """A place where an answer may stand."""

    form: Form
    start: int
    end: int
    contents: tuple[str, ...]
    """Readings of the answer, the likeliest first; for nested marks, the innermost first. An empty mark has one empty text."""
    is_item: bool = False
    """Whether the mark is a phrase that begins an item of a list."""
    is_second: bool = False
    """Whether the mark is a phrase that states a second answer."""
    is_conditional: bool = False
    """Whether the mark is a phrase in a sentence that begins with a condition."""
    rest: str = ""
    """The rest of a phrase's sentence after its contents: an explanation, or a remark in parentheses."""
    parts: tuple[Mark, ...] = ()
    """The marks that are joined into this mark, if it is a list of marks."""
