"""Ranks 3 to 5: the value, the whole or the end of a response that marks no answer."""

from __future__ import annotations

import re

from verifiers.completion import words
from verifiers.completion.denied import is_negated, is_rejected, is_void
from verifiers.completion.mark import BEFORE, REACH, Mark
from verifiers.completion.marking import view_of
from verifiers.completion.statements import ASIDE, SENTENCE_END

_LONGEST_WHOLE = 4_000
"""Maximum number of characters of a response that may consist only of its answer."""


def last_value(text: str) -> Mark | None:
    """The only marked value of the last sentence, or of the last line; None unless there is exactly one."""
    stripped = text.rstrip()
    start = max(stripped.rfind("\n\n") + 1, len(stripped) - REACH, 0)
    view = view_of(stripped[start:])
    lines = view.plain.rstrip().rfind("\n") + 1
    formulas = view.formulas()
    while any(first < lines < last for first, last in formulas):
        lines = view.plain.rfind("\n", 0, lines - 1) + 1
    sentence = lines
    for end in SENTENCE_END.finditer(view.plain, lines):
        if end.end() < len(view.plain.rstrip()) and not any(first < end.start() < last for first, last in formulas):
            sentence = end.end()
    for begin in dict.fromkeys((sentence, lines)):
        spans = [(first, last) for first, last in view.values if first >= begin]
        if len({view.plain[first:last] for first, last in spans}) == 1:
            first, last = spans[-1]
            before = view.plain[:first]
            if is_void(before, view.plain[first:].rstrip()) or is_negated(before) or is_rejected(view.plain[last:]):
                return None
            return Mark("value", start + view.origin(first), len(stripped), (view.content(first, last),))
    return None


_ANNOUNCED = re.compile(
    rf"\b(?:{words.ANSWERS.pattern}|{words.RESULTS.pattern})(?:\s+(?:of|to|for|in)\s[^.\n:=]{{0,80}})?(?P<verb>\s*{words.VERBS.pattern})?\s*:?\s*\Z",
    re.IGNORECASE,
)
_DIGIT = re.compile("[0-9]")
_ALONE = re.compile(rf"\n[ \t]*+[*_#>]{{0,6}}+[ \t]*+{words.EXPLAINED.pattern}", re.IGNORECASE)


def whole(text: str) -> Mark | None:
    """A response that is only an answer, possibly with an explanation below; None if it only announces an answer."""
    alone = _ALONE.split(text, maxsplit=1)[0] if "\n" in text else text
    if len(alone) > _LONGEST_WHOLE:
        return None
    view = view_of(alone, inline="\n" not in alone.strip())  # "- 5" alone is a number, not a list
    if _ANNOUNCED.search(view.plain[-BEFORE:]):
        return None
    content = view.content(0, len(view.plain))
    return Mark("whole", 0, len(text), tuple(dict.fromkeys((ASIDE.sub("", content.rstrip(" .!")), content))))


def end_of(text: str) -> Mark | None:
    """The last lines of a response, which may hold an unmarked answer; None if the response ends by announcing an answer."""
    text = text.rstrip()
    plain = view_of(text[-BEFORE:]).plain
    announced = _ANNOUNCED.search(plain)
    if announced and (announced["verb"] or not _DIGIT.search(plain, plain.rfind("\n", 0, announced.start()) + 1)):
        return None  # a line such as "so 17 is our answer" announces nothing
    start = max(text.rfind("\n", 0, max(len(text) - _LONGEST_WHOLE, 0)) + 1, len(text) - 2 * _LONGEST_WHOLE, 0)
    return Mark("number", start, len(text), (text[start:],))
