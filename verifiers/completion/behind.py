"""Corrections and alternatives that follow an answer."""

from __future__ import annotations

import re
from typing import NamedTuple

from verifiers.completion import words
from verifiers.completion.mark import BEFORE, Mark
from verifiers.completion.marking import view_of
from verifiers.completion.statements import SENTENCE_END, end_of_sentence

_LONGEST_VALUE = 60
_NO_BUT = r"no,(?=[\s$*(\\]{1,6}(?:[-$]?[0-9][^\s]{0,20}|[A-J]\b)\W{0,6}(?:\n|\Z))"
"""Matches `no,` before a value that ends the text or a line."""
_BETWEEN = r"[\s*_\"'“….,!—–-]{0,10}+"
_LEADS = rf"(?:(?:but|however|so|oh|ah|and|now|well|then|oops|apologies(?=,)|{words.HESITATIONS.pattern})\b{_BETWEEN}){{0,4}}"
_CORRECTION = re.compile(
    rf"(?:\A[\s,;]*|^|[.!?:;…)\]}}$*]|[—–-])[\s*_\"'“….]{{0,10}}+{_LEADS}(?P<retraction>{words.RETRACTIONS.pattern})(?!\s+to\b|\s+in\sthe\s(?:\w+\s)?(?:problem|question|options|choices))"
    rf"|(?:^|[.!?:;,…)\]}}$*]|[—–-])[\s*_\"'“….]{{0,10}}+(?:(?:but|however|so|oh|and|well)\b{_BETWEEN})?(?P<cue>{words.HESITATIONS.pattern}|{_NO_BUT})",
    re.IGNORECASE | re.MULTILINE,
)
_CONFIRMED = re.compile(words.CONFIRMATIONS.pattern, re.IGNORECASE)
_BEHIND = r"(?:</?\w{1,10}+>|[\s.,;!?$*_`()\]}\\\"'”’])*+"
_ALTERNATIVE = re.compile(
    rf"(?P<unit>(?:(?!\bnot\b)[^\n.:;=0-9]){{0,30}}?){_BEHIND}(?P<cue>{words.ALTERNATIVES.pattern})[,:]?\s*",
    re.IGNORECASE,
)
_UNIT = re.compile(r"(?<![\\A-Za-z])[A-Za-z]{2,}|%|°[A-Z]?")


class Correction(NamedTuple):
    """Words after an answer that hesitate over it or retract it."""

    text: str
    """The text after the correction."""
    retracts: bool
    """Whether the correction takes the answer back even if no new answer follows."""


def correction_after(text: str, rest: str = "") -> Correction | None:
    """The last hesitation or retraction after an answer; None if there is none, or the text confirms the answer after all.

    Args:
        text: The text that follows the answer's sentence.
        rest: The rest of the answer's sentence, before `text`; "actually" changes nothing in it.
    """
    whole = rest + text
    cues = [
        cue
        for cue in _CORRECTION.finditer(whole)
        if cue["retraction"] or cue.end() > len(rest) or cue["cue"].lower() != "actually"
    ]
    if not cues or (_CONFIRMED.search(whole, cues[0].end()) and not _BARE.match(whole, cues[-1].end())):
        return None
    retracts = any(cue["retraction"] or _TROUBLE.match(whole, cue.end()) for cue in cues)
    return Correction(whole[cues[-1].end() :], retracts)


_TROUBLE = re.compile(rf"[^.!?\n]{{0,120}}?{words.TROUBLES.pattern}", re.IGNORECASE)


def value_alone(text: str) -> str:
    """The value that stands alone after a correction, such as `-13` after `No wait,`, or that the last sentence states."""
    if bare := _BARE.match(text):
        return bare["value"]
    text = _AROUND_A_VALUE.sub("", text[-BEFORE:])
    *_, last = SENTENCE_END.split(text)
    stated = _STATED.match(last)
    value = last[stated.end() :] if stated else text if last == text else ""
    value = _AROUND_A_VALUE.sub("", _REASON.split(value, maxsplit=1)[0])
    return value if len(value) <= _LONGEST_VALUE else ""


_BARE = re.compile(
    r"(?:[ \t,*_$—–…]|\.(?![0-9])){0,10}(?P<colon>:[ \t*_$]{0,10})?(?:(?:no|it|is|['’]s)\b[ \t,*_$]{0,10})*"
    r"(?P<value>-?\.?[0-9][0-9.,/]{0,20}(?<=[0-9])%?|[A-J]\b)[*_$)]*"
    r"(?(colon)[.!]?[ \t]*(?:\n|\Z)|(?:[.!](?:\s|\Z)|[ \t]*(?:\n|\Z)))",
    re.IGNORECASE,
)
"""Matches a number or a letter that is a whole sentence or, after a colon, the rest of the line."""
_STATED = re.compile(
    r"(?:.*[,;]\s)?\s*(?:(?:i|we)\s(?:think|believe|guess)\s(?:that\s)?)?(?:(?:so|then|thus|therefore|hence)\s\W*(?:the\s(?:total|result|sum|number)\s)?)?"
    r"(?:(?:it|this|that|(?:the\s|my\s)?(?:correct\s|final\s|right\s)?answer)\s)?"
    r"(?:(?:should|must|would|will)\sbe|is|it['’]s|equals|gives|makes)\s",
    re.IGNORECASE,
)
_REASON = re.compile(r",?\s(?:because|since|as|so|in total)\b", re.IGNORECASE)
_AROUND_A_VALUE = re.compile(r"\A(?:[\s,:;!?*_—–]|\.(?![0-9])|-(?=\s)|no\b)+|[\s.,:;!?*_]+\Z", re.IGNORECASE)
"""Punctuation and emphasis around a value; a sign or a decimal point of the value does not match."""


def last_number(text: str) -> str:
    """The number that the last sentence of a text states, as in `So it is 42 cm.`; empty if it states or accepts none."""
    last = SENTENCE_END.split(text[-BEFORE:].rstrip(" \n.!*_$)]\\"))[-1]
    last = _OTHER_THAN.split(last, maxsplit=1)[0]
    number = None if _DENIES.search(last) else _GIVEN.fullmatch(last)
    return number["value"] if number else ""


_OTHER_THAN = re.compile(r",?\s+(?:not|rather than|instead of)\s(?=\W*[0-9])", re.IGNORECASE)
_DENIES = re.compile(rf"\b(?:no|not|never)\b|n['’]t\b|{words.TROUBLES.pattern}", re.IGNORECASE)
_GIVEN = re.compile(
    r".*(?:=|\b(?:is|are|be|was|equals|has|have|gets?)\b|\A)[\s$*\\(]*(?P<value>-?\.?[0-9][0-9.,/]*(?<=[0-9]))(?![^\s$*)\\%])[^0-9]*",
    re.IGNORECASE | re.DOTALL,
)


def last_result(text: str) -> str:
    """The result of the calculation that ends a text, as in `6 * 7 = 42`; empty if the text does not end in a calculation."""
    before, _, result = text[-BEFORE:].rpartition("=")
    term = _CLAUSE.split(before)[-1]
    is_calculation = re.search("[0-9]", term) and not _NAME.search(term)
    value = _RIGHT_SIDE.fullmatch(result) if is_calculation else None
    return value["value"] if value else ""


_CLAUSE = re.compile(r"[.:;,]\s|[\n=]")
_NAME = re.compile(r"(?<![A-Za-z\\'’])[A-Za-z](?![A-Za-z])")
_RIGHT_SIDE = re.compile(
    r"[\s$]*(?P<value>[^\s=]*[0-9}])[\s.,!$*_)\]\\]*(?:[A-Za-z]{2,}[.!]?\Z|(?:good|great|perfect|ok|okay|right|correct|nice)[\s.,!]*)?",
    re.IGNORECASE,
)


def alternative_after(text: str, mark: Mark) -> str:
    """A value that follows an answer as an alternative, as in `12 or 24`; an empty text if there is none.

    The same quantity in another unit is not an alternative: `90 minutes, or 1.5 hours`.
    """
    sentence = SENTENCE_END.search(text, mark.end, mark.end + BEFORE)
    match = _ALTERNATIVE.match(mark.rest) or _ALTERNATIVE.match(text, mark.end)
    match = match or (sentence and _ALTERNATIVE.match(text, sentence.end()))
    if not match:
        return ""
    view = view_of(match.string[match.end() : match.end() + BEFORE])
    offered = view.content(0, end_of_sentence(view.plain, 0, view.formulas()))
    if sum(map(offered.count, ")]")) > sum(map(offered.count, "([")):  # `[0, 5)` is an interval
        offered = offered.removesuffix(")")
    units, others = _units(f"{mark.contents[0]} {match['unit']}"), _units(offered)
    return "" if units and re.search("[0-9]", offered) and not others <= units else offered


def _units(text: str) -> set[str]:
    return {word.lower() for word in _UNIT.findall(view_of(text).plain)}


_VALUE_ALONE = re.compile(r"\A(?!\W*[0-9]{1,2}[.)]\s+\W*[A-Za-z])[^=]*[0-9][^=]*\Z|\A\W*[A-Z]\W*\Z")


_LABELLED = re.compile(r"[\s*_-]{0,9}(?:\([A-Z]\)|[A-Z][.):])[*_]{0,4}\s+\S")
"""Matches an option with its label, as in `A. Paris`."""


def next_line(text: str, mark: Mark) -> str:
    """The line below a mark, if the mark ends its own line and the line below is short; else an empty text."""
    rest, _, below = text[mark.end : mark.end + BEFORE].partition("\n")
    line = below.lstrip().partition("\n")[0]
    both_labelled = _LABELLED.match(line) and any(map(_LABELLED.match, mark.contents))
    alone = _VALUE_ALONE.search(line) or both_labelled
    if rest.strip(" .*_$`\\)]}") or len(line) > _LONGEST_VALUE or not alone:
        return ""
    view = view_of(line)
    return view.content(0, len(view.plain))
