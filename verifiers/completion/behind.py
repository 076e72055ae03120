"""Corrections and second answers behind an answer."""

from __future__ import annotations

import re
from collections.abc import Iterator

from verifiers.completion import words
from verifiers.completion.mark import BEFORE, Mark
from verifiers.completion.marking import view_of
from verifiers.completion.statements import SENTENCE_END, contents_of, statements_at

_LONGEST_VALUE = 60
_CORRECTION = re.compile(
    rf"(?:^|[.!?:;,…)\]}}$*]|[—–-])[\s*_\"'“….]{{0,10}}+(?P<cue>{words.CORRECTIONS.pattern})",
    re.IGNORECASE | re.MULTILINE,
)
_CONFIRMED = re.compile(words.CONFIRMATIONS.pattern, re.IGNORECASE)
_BEHIND = r"(?:</?\w{1,10}+>|[\s.,;!?$*_`)\]}\\\"'”’])*+"
_ALTERNATIVE = re.compile(rf"{_BEHIND}(?P<cue>{words.ALTERNATIVES.pattern})[,:]?\s*", re.IGNORECASE)
_WITHIN = re.compile(r"\s(?:or\s+)?(?:maybe|perhaps|possibly|alternatively)\b[,:]?\s*", re.IGNORECASE)
_VALUE = r"(\$[^$\n]{1,60}\$|\\\([^\n]{1,60}?\\\)|-?[0-9]++(?:[.,/][0-9]++)*+%?+(?![\w\\^])|(?-i:[A-HJ])(?![A-Za-z]))"
_ANOTHER = (  # behind a value: it is offered as an answer, and not in another form or as a step
    r"(?=\s+(?:(?:if|when)\s(?!(?:(?:it|you)\s(?:is\s|are\s)?)?(?:round|express|writ|convert|simplif|measur|prefer|approx))"
    r"|(?:unless|without|depending|works|too|also)\b|(?:is|would|could|might|may|can)\s(?:also\b|work|(?:be\s)?(?:it\b|right\b"
    r"|correct\b|acceptable\b|accepted\b|possible\b|valid\b|(?:the|an?)\s(?:\w+\s)?answer\b))))"
)
_ENDS = r"(?=\s*(?:[).,;]|$|(?:if|when|unless|without|depending|too|also)\b))"
_SAYS = (
    r"\b(?:answer(?:'s|\s(?:is|becomes|(?:would|could|might|may|should|must|will)\sbe))|(?:correct|right|actual|true)\s"
    r"(?:value|result)(?:'s|\s(?:is|would\sbe))|it\s(?:could|might|may)\s(?:also\s)?be)\s+"
)
_NO_LIST = r"(?<![0-9$]\s)(?<![0-9$],\s)(?<!anything\s)(?<!nothing\s)"
"""Not the end of a list, as in `divided by 2, 3, or 6`, and no exception."""
_HEDGED = re.compile(
    rf"{_NO_LIST}{words.HEDGES.pattern}(?:(?<!if)(?<!when)(?<!unless)\s+{_VALUE}{_ANOTHER}|[,\s][^\n]{{0,80}}?{_SAYS}{_VALUE}{_ENDS}"
    rf"|(?<!if)(?<!when)\s(?:if|when|unless)\b[^\n.]{{0,60}}?\bit(?:'s|\s(?:is|would\sbe))\s+{_VALUE}{_ENDS})",
    re.IGNORECASE,
)
_HEDGED_SENTENCE = re.compile(rf"\s*{words.HEDGES.pattern}[^\n.!?]{{0,200}}", re.IGNORECASE)


def is_taken_back(text: str, rest: str = "") -> bool:
    """Whether a text behind an answer takes it back and does not confirm it after all.

    Args:
        text: The text.
        rest: The rest of the answer's sentence, before the text, in which "actually" takes nothing back.
    """
    whole = rest + text
    cues = _CORRECTION.finditer(whole)
    correction = next((cue for cue in cues if cue.end() > len(rest) or cue["cue"].lower() != "actually"), None)
    return correction is not None and not _CONFIRMED.search(whole, correction.end())


def alternatives_after(text: str, mark: Mark) -> tuple[str, ...]:
    """The readings of a second answer that a text offers behind a mark or within its statement, the likeliest first."""
    sentence = SENTENCE_END.search(text, mark.end, mark.end + BEFORE)
    match = _ALTERNATIVE.match(text, mark.end) or (sentence and _ALTERNATIVE.match(text, sentence.end()))
    match = match or (_WITHIN.search(text, mark.start, mark.end) if mark.form == "phrase" else None)
    if not match:
        return ()
    view = view_of(text[match.end() : match.end() + BEFORE])
    formulas = view.formulas()
    statements = statements_at(view.plain, 0, formulas)
    if not statements:
        return ()
    # The value stands first: "Alternatively, we can put $x = 2$" offers none.
    offered = view.content(*statements[-1])
    readings = [*contents_of(view, *statements[-1], formulas)]
    value, *comment = _COMMENT.split(offered, maxsplit=1)
    if comment and len(value) <= _LONGEST_OFFER and _VALUE_ALONE.search(value):
        readings.append(value)
    return tuple(text for text in dict.fromkeys(readings) if text and offered.startswith(text[:3]))


def hedges_after(text: str, mark: Mark) -> Iterator[str]:
    """The values that the sentence of a mark, or a hedge behind it, offers, as in `12 (or 24 if order matters)`."""
    rest = mark.rest
    if mark.form != "phrase":
        end = SENTENCE_END.search(text, mark.end, mark.end + BEFORE)
        rest = text[mark.end : end.start() if end else mark.end + BEFORE].lstrip("$")
    else:
        end = SENTENCE_END.match(text, mark.end)
    following = _HEDGED_SENTENCE.match(text, end.end()) if end else None
    for match in _HEDGED.finditer(f"{rest} {following[0] if following else ''}"):
        yield match[1] or match[2] or match[3]


_COMMENT = re.compile(r",\s+(?=[a-z]{2})")
_LONGEST_OFFER = 20
_VALUE_ALONE = re.compile(r"\A[^=]*[0-9][^=]*\Z|\A\W*[A-Z]\W*\Z")


def next_line(text: str, mark: Mark) -> str:
    """The line below a mark, if that ends its line and the line below is short; else an empty text."""
    rest, _, below = text[mark.end : mark.end + BEFORE].partition("\n")
    line = below.lstrip().partition("\n")[0]
    if rest.strip(" .*_$`\\)]}") or len(line) > _LONGEST_VALUE or not _VALUE_ALONE.search(line):
        return ""
    view = view_of(line)
    return view.content(0, len(view.plain))
