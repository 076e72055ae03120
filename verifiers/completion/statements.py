"""Statements: where a sentence ends, and which part of it is the answer."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from unicodedata import category

from verifiers.completion import words
from verifiers.completion.code import is_within
from verifiers.completion.marking import View

SENTENCE_END = re.compile(
    r"\n|\.(?=[\"'”’)]?(?:\s|$))(?<![ap]\.m\.)(?<!\bi\.e\.)(?<!\be\.g\.)(?<!\bapprox\.)|(?<=[!?])(?=[\"'”’)]?(?:\s|$))(?!\s*[-+*/=×÷^<>])|。",
    re.IGNORECASE,
)
_EXPLANATION = re.compile(
    rf"{words.EXPLANATIONS.pattern}(?![^.;\n]{{0,60}}[0-9]\W*\s(?:as well|too)\b)"
    r"|;\s+(?:this|that|it|since|because|so|we|as|if|when|note)\b"
    r"|,?\s+but\s(?!not\b)"
    r"|\s{0,2}\((?!(?:sin|cos|tan|log|sqrt|mod)\b)(?:[A-Za-z]{3,}|i\.e\.|e\.g\.|(?:in|as|is|to|at|by|we|so|if|an?)\s)"
    r"(?![^()\n]*\)\s*[-+*/=×÷^])",
    re.IGNORECASE,
)
ASIDE = re.compile(
    r"(?<=[\w}$%])(?<!\bin)(?<!cup)\s{1,3}\((?!(?:\W|\d)*(?:sin|cos|tan|log|exp|sqrt|mod|max|min)\b)(?=[^()]*[A-Za-z]{3,})[^()\\,]{1,100}\)\s*$"
    r"|(?<=[a-z]{3})\s{1,3}\([-+]?[0-9][0-9.,]*\)\s*$"
)
_CONCLUSION = re.compile(r"\W*so\b", re.IGNORECASE)
_PREMISE = re.compile(r"\W*[A-Za-z]{2,}\s[^,;.]*\b(?:is|are|was|were|has|have|costs?)\b[^,;.]*[0-9]", re.IGNORECASE)
"""Matches a sentence about a number; after such a sentence, "so" announces a value."""
_VERB = re.compile(r"\b(?:is|are|was|were|equals|be)\b:?\s*", re.IGNORECASE)
_WORDS = re.compile(r"[^0-9\\=]*?[A-Za-z]{2,}[^0-9\\=]*?\s[A-Za-z]{2,}[^0-9\\=]*\Z")
_EXCLAIMED = re.compile(r"(?<![-+*/=×÷^0-9.,]\s)(?<![-+*/=×÷^.,(])\b[0-9][0-9.,]*!+\Z")
_FACTORIAL = re.compile(r"(?:[0-9)}]|\b[A-Za-z])\s?!(?!\s*(?:[A-Z\n]|\Z))|(?i:factorial|permutation|\barrang)")
_EQUALS = re.compile(r"\s=\s")
_HOPS = 3
"""Maximum number of statements in a row that each announce the next."""


def statements_at(plain: str, start: int, formulas: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """The span of the statement that begins at a position; if it ends with a colon, also the span of the next statement."""
    spans: list[tuple[int, int]] = []
    last = start
    for _ in range(_HOPS):
        first = last
        while first < len(plain) and (plain[first].isspace() or plain[first] in ":*_"):
            first += 1
        last = end_of_sentence(plain, first, formulas)
        if first == last:
            break
        spans.append((first, last))
        if not plain[first:last].rstrip().endswith(":"):
            break
    return spans


def end_of_sentence(plain: str, start: int, formulas: Sequence[tuple[int, int]]) -> int:
    """The end of the sentence that begins at a position; it is never inside a formula."""
    for end in SENTENCE_END.finditer(plain, start):
        if not (end[0] == "." and _is_label(plain, end.start())) and not any(
            first < end.start() < last for first, last in formulas
        ):
            return end.start()
    return len(plain)


_LABEL = re.compile(r"(?:\A|[\s(])[A-Z]\Z")
_NEW_SENTENCE = re.compile(
    rf"\.[\"'”’)]*\s+(?:(?i:{words.HESITATIONS.pattern}|{words.RETRACTIONS.pattern}|{words.ALTERNATIVES.pattern})|The|This|That|I|We|It|So|Then|Thus|But|And"
    r"|However|Because|Since|As|If|In|There|Therefore|Hence|No|Yes|Also|Let|Answers?|Options?|Choices?|Both|Neither|All|None|Each|You|They|Note|With|Without|When|For|Some|Many|Most|Why|Here"
    rf"|[A-Z](?=,|\s(?:and|or|is|are|was)\b))\b|\.[\"'”’)]*\s*(?:\n|\Z)"
)


def _is_label(plain: str, stop: int) -> bool:
    """Whether a full stop belongs to a label, as in "C. Paris"; it does not if a word that begins sentences follows."""
    return _LABEL.search(plain, max(0, stop - 2), stop) is not None and not _NEW_SENTENCE.match(plain, stop)


def contents_of(view: View, first: int, last: int, formulas: Sequence[tuple[int, int]]) -> Iterator[str]:
    """The readings of a statement: all but its explanation, the part after its last verb, and its only marked value."""
    end = _start_of_explanation(view, first, last, formulas)
    while end > first and (view.plain[end - 1] in " \t\n,;:–—" or category(view.plain[end - 1]) in ("So", "Mn", "Cf")):
        end -= 1  # punctuation before an explanation, or an emoji
    value_end = first + len(view.plain[first:end].rstrip("!"))
    if any(stop == value_end for _, stop in view.values) or (
        not is_within(end - 1, formulas) and _exclaims(view, first, end)
    ):
        end = value_end  # the sign follows a formula or emphasis, or the text has no factorials
    whole = view.content(first, end)
    tails = []
    for sign in (_VERB, _EQUALS):
        verbs = [verb for verb in sign.finditer(view.plain, first, end) if not is_within(verb.start(), formulas)]
        tails.append(ASIDE.sub("", view.content(verbs[-1].end(), end)) if verbs else "")
        if verbs and sign is _VERB and _WORDS.match(view.plain, first, verbs[-1].start()):
            yield tails[0]
    yield ASIDE.sub("", whole)
    yield whole
    yield from tails
    values = {view.content(start, stop) for start, stop in view.values if first <= start and stop <= end}
    if len(values) == 1:
        yield values.pop()


def _exclaims(view: View, first: int, end: int) -> bool:
    """Whether a number with an exclamation mark ends a statement of a text without factorials."""
    return _EXCLAIMED.search(view.plain, first, end) is not None and not (
        _FACTORIAL.search(view.plain, 0, first) or _FACTORIAL.search(view.plain, end)
    )


def rest_of(view: View, first: int, last: int, formulas: Sequence[tuple[int, int]]) -> str:
    """The part of a statement that its readings leave out: a final remark in parentheses, and an explanation."""
    end = _start_of_explanation(view, first, last, formulas)
    aside = ASIDE.search(view.content(first, end))
    return (aside[0] if aside else "") + view.content(end, last)


def _start_of_explanation(view: View, first: int, last: int, formulas: Sequence[tuple[int, int]]) -> int:
    end = next(
        (
            match.start()
            for match in _EXPLANATION.finditer(view.plain, first, last)
            if match.start() > first
            and not any(start < match.start() < stop for start, stop in formulas)
            and not (_CONCLUSION.match(match[0]) and _PREMISE.match(view.plain, first))
        ),
        last,
    )
    return end - (view.plain[end - 1] in "?:")


def after_verb(statement: str) -> str:
    """The part of a plain statement after its last verb before a number; the whole statement if it has no such verb."""
    verbs = [verb for verb in _VERB.finditer(statement) if re.search("[0-9]", statement[verb.end() :])]
    return statement[verbs[-1].end() :] if verbs else statement


def last_line(text: str) -> str:
    """The last line that is not blank, stripped; empty if there is none."""
    return text.rstrip().rpartition("\n")[2].strip()
