"""Marks of rank 2: phrases and headings that state an answer.

A phrase is read in a piece of bounded length around its cue, and only the last phrases are considered.
"""

from __future__ import annotations

import heapq
import re
from collections.abc import Iterator
from itertools import islice

from verifiers.completion import words
from verifiers.completion.code import code_spans, is_within
from verifiers.completion.denied import (
    is_conditional_sentence,
    is_doubted,
    is_hypothetical,
    is_negated,
    is_rejected,
    is_void,
)
from verifiers.completion.mark import BEFORE, MOST_MARKS, REACH, Mark
from verifiers.completion.marking import View, view_of
from verifiers.completion.statements import SENTENCE_END, contents_of, end_of_sentence, rest_of, statements_at


def continues_list(text: str, earlier: Mark, later: Mark) -> bool:
    """Whether a phrase is joined to an earlier phrase of its sentence."""
    return _JOINED_TO_NEXT.fullmatch(text, earlier.start, later.start) is not None


ANSWERS = words.CueFinder(words.ANSWERS.pattern, words.ANSWERS)
_RESULTS = words.CueFinder(words.RESULTS.pattern, words.RESULTS)
_CLAIM = re.compile(
    rf"(?:[ \t]*\([^()\n]{{1,40}}\))?(?:\s+(?:that\s+)?(?:we|you|i)\s(?:get|obtain|find|seek|want|need))?"
    rf"(?:\s+(?:of|to|for|in|from|as)\s[^.\n:=]{{0,80}}?)??(?:\s*(?:{words.VERBS.pattern})"
    rf"(?:(?:\s*,)?\s*(?:{words.FILLERS.pattern})\b,?)*(?:\s*:)?|(?P<heading>[ \t]*(?=\n)))",
    re.IGNORECASE,
)
_LEAD_IN = re.compile(r"(?:\W|\b(?:the|my|our|so|thus|therefore|hence|final|correct|best|right)\b)*", re.IGNORECASE)
_HEADING_LINE = re.compile(rf"\W*(?:\d{{1,2}}[.)]\s*)?{words.HEADINGS.pattern}\W*", re.IGNORECASE)
_ITEM = re.compile(
    r"\s*(?:\w+\s+|Q)?\(?(?:\d{1,3}|[a-z]|[ivx]{1,4})\s*[.:)]\s*(?:the|my|so|final|correct|\s|,)*",
    re.IGNORECASE,
)
_BULLET = re.compile(r"[ \t]*[-*+•][ \t]+(?:[*_]*(?:the|my|so|final|correct)?\W*)?(?:answer|correct)", re.IGNORECASE)
_SENTENCE_START = re.compile(r"[.!?]\s+(?=\w+\s\(?(?:\d|[a-z][.:)]))", re.IGNORECASE)


def phrases(text: str, start: int = 0, *, results: bool = False, more: words.CueFinder | None = None) -> Iterator[Mark]:
    """The phrases and headings of a text that state an answer and are neither denied, asked nor supposed, the last first.

    Args:
        text: The response.
        start: The place where the search begins.
        results: Whether to look for phrases that state a result instead of an answer.
        more: Further cues, which an answer follows; if a cue matches the group `sentence`, the answer is in the cue's sentence.
    """
    finders = [_RESULTS] if results else [ANSWERS] if more is None else [ANSWERS, more]
    found = [islice(finder.backwards(text, start), MOST_MARKS) for finder in finders]
    cues = found[0] if len(found) == 1 else heapq.merge(*found, key=lambda cue: cue.start(), reverse=True)
    limit, code = len(text), None
    for cue in cues:
        begin = cue.start()
        code = code_spans(text) if code is None else code
        if begin < limit and not is_within(begin, code):
            mark = _phrase(text, cue, limit, is_answer=more is None or cue.re is not more.pattern)
            if mark is not None:
                limit = begin
                yield mark


def _phrase(text: str, cue: re.Match[str], limit: int, *, is_answer: bool) -> Mark | None:
    begin, end = cue.span()
    line = max(text.rfind("\n", 0, begin) + 1, begin - BEFORE)
    view = view_of(text[line : min(end + REACH, limit)])
    plain = view.plain
    at, after = view.place(begin - line), view.place(end - 1 - line) + 1
    formulas = view.formulas()
    claim = _CLAIM.match(plain, after) if is_answer else None
    if claim is not None and claim["heading"] is not None and not _is_heading(plain, at):
        claim = None
    if claim is not None:
        after = claim.end()
    elif is_answer:
        return None
    elif cue.groupdict().get("sentence"):
        is_remark = cue[0].endswith(_PRAISE) and _OF_SOMETHING.match(plain, after) is not None
        return None if " not " in cue[0] else _sentence(view, line, begin, at, is_remark=is_remark)
    if not is_answer and is_negated(plain[:at]):
        return None
    statements = statements_at(plain, after, formulas)
    if statements and (instead := _NOT_BUT.match(plain, *statements[-1])):
        statements[-1] = instead.end(), statements[-1][1]
    if not statements or is_void(plain[:at], plain[slice(*statements[-1])], is_conditional="would" in plain[at:after]):
        return None
    last = statements[-1][1]
    if _LEAD_IN.fullmatch(plain, *statements[0]):  # a heading of another phrase
        return None
    found = (content for span in reversed(statements) for content in contents_of(view, *span, formulas))
    contents = tuple(dict.fromkeys(filter(None, found)))
    is_item = (
        _BULLET.match(text, line) is not None or _ITEM.fullmatch(_SENTENCE_START.split(plain[:at])[-1]) is not None
    )
    if not contents or _WRONG_BEFORE.search(plain[:at]):
        return None
    is_second = _SECOND_BEFORE.search(plain[:at]) is not None
    is_conditional = is_conditional_sentence(plain[:at])
    rest = rest_of(view, *statements[-1], formulas)
    if is_rejected(rest):
        return None
    return Mark("phrase", begin, line + view.origin(last), contents, is_item, is_second, is_conditional, rest=rest)


def _sentence(view: View, line: int, begin: int, at: int, *, is_remark: bool) -> Mark | None:
    """The sentence around a cue, as a mark whose content is all of it; a remark on an option counts only without an answer."""
    plain, formulas = view.plain, view.formulas()
    first = max(
        (end.end() for end in SENTENCE_END.finditer(plain, 0, at) if len(plain[: end.start()].split(". ")[-1]) > 2),
        default=0,
    )
    last = end_of_sentence(plain, at, formulas)
    sentence = plain[first:last].strip()
    if sentence.endswith("?") or is_doubted(sentence, plain[first:at]) or _HALF_TRUE.search(sentence):
        return None
    if is_hypothetical(sentence, sentence):
        return None
    is_second = _SECOND_BEFORE.search(plain[first:at]) is not None or _TOO.search(sentence) is not None
    return Mark(
        "phrase",
        begin,
        line + view.origin(last),
        (sentence,),
        is_second=is_second,
        is_conditional=is_remark or is_conditional_sentence(sentence),
    )


def _is_heading(plain: str, at: int) -> bool:
    """Whether the line of a word is a heading with nothing else in it."""
    end = plain.find("\n", at)
    return _HEADING_LINE.fullmatch(plain, plain.rfind("\n", 0, at) + 1, end if end >= 0 else len(plain)) is not None


_NOT_BUT = re.compile(
    r"\W*n(?:o|['’])t\b[^.;\n]{1,60}?(?:\bbut\s+(?:rather\s+)?|,\s+it(?:['’]s|\sis)\s+)", re.IGNORECASE
)
_JOINED_TO_NEXT = re.compile(
    r"[^.!?\n]*(?:,|\band|\bor|&)\s*(?:(?:the|my|final|correct|either|also)\s+)*\Z", re.IGNORECASE
)
_WRONG_BEFORE = re.compile(rf"{words.WRONG.pattern}\s*\Z", re.IGNORECASE)
_PRAISE = ("correct", "right", "best")
_OF_SOMETHING = re.compile(
    r"\s+(?!(?:one|answer|option|choice|response|letter|because|since|as|and|here|of|overall|but|so|while|whereas|which|that)\b)[a-z]"
)
"""Matches after "is correct" in "is correct only if" and "is the correct definition"."""
_HALF_TRUE = re.compile(
    r"\b(?:partially|partly|almost|nearly)\s(?:correct|right)\b|\b(?:correct|right)\sat\sfirst\b|\b(?:correct|right|best)\b[^.]*,\s+(?:but|yet|although)\b",
    re.IGNORECASE,
)
_TOO = re.compile(r"\b(?:too|as well)\W*\Z", re.IGNORECASE)
_SECOND_BEFORE = re.compile(rf"{words.SECOND.pattern}\s*\Z", re.IGNORECASE)
