"""Whether a statement is denied, asked or supposed."""

from __future__ import annotations

import re

from verifiers.completion import words
from verifiers.completion.mark import BEFORE, Mark
from verifiers.completion.statements import SENTENCE_END

_CLAUSE_START = re.compile(r"(?:[.!?;:,\n]|\b(?:but|so|then|thus|hence|therefore)\b)(?=[^.!?;:,\n]*+\Z)", re.IGNORECASE)
_JOINT = re.compile(r",|\b(?:but|so|then|thus|hence|therefore)\b", re.IGNORECASE)
_STOP = re.compile(r"[.!?;](?=\s|\\\]|\$)")
_END_OF_DISPLAY = re.compile(r"(?<=\.)(?=\\[\])]|\$)")
_DENIED = re.compile(
    rf"(?<!\bno )(?<!without )(?<!beyond )(?:{words.DENIALS.pattern})"
    r"(?:(?!\b(?:but|so|then|thus|hence|therefore)\b)[^.,;:\n]){0,30}$",
    re.IGNORECASE,
)
_ATTRIBUTED = re.compile(
    rf"{words.ATTRIBUTIONS.pattern}(?:\s+(?:that|it|the|is|should|must|be|final|correct|right|answer|result|obvious|clear|likely|[a-j]))+\W*(?:[0-9]\S*)?$",
    re.IGNORECASE,
)
_NEGATED = re.compile(rf"\W*{words.NEGATIONS.pattern}", re.IGNORECASE)
_NEGATED_BEFORE = re.compile(rf"{words.NEGATIONS.pattern}[\s$*_(\[\\]*$", re.IGNORECASE)
_NEGATED_WITHIN = re.compile(rf"\b(?:is|are|was|equals)\s*{words.NEGATIONS.pattern}\W*[0-9]", re.IGNORECASE)
_WHICH_IS_WRONG = (
    r",?\s+which\s+(?:is|was|seems|looks|must\sbe)\s(?:\w+\s)?(?:wrong|incorrect|false|impossible|extraneous|invalid)\b"
)
_VALUE_REJECTED = re.compile(
    rf"\W*[0-9][^\s,]*(?:\s(?!are|were)(?:{words.REJECTIONS.pattern})|{_WHICH_IS_WRONG})", re.IGNORECASE
)
"""Matches a rejected value. Before a plural verb, the number counts things and is no value: `40 are not in the club`."""
_REJECTED = re.compile(rf"[\s$*_)\\\]]*(?:{words.REJECTIONS.pattern}|{_WHICH_IS_WRONG})", re.IGNORECASE)
_SUPPOSED = re.compile(
    rf"\W*(?:(?:and|but|so|now|well|or|note that|also)\W+)?{words.SUPPOSITIONS.pattern}", re.IGNORECASE
)
_HYPOTHESIS = re.compile(
    rf"{_SUPPOSED.pattern}|\W*(?:for|with|without|when|otherwise|similarly|in\s(?:the|that)\scase)\b", re.IGNORECASE
)
_BEFORE = words.Prefilter(words.DENIALS, words.ATTRIBUTIONS, words.NEGATIONS, words.SUPPOSITIONS)
_AROUND = words.Prefilter(words.DENIALS, words.ATTRIBUTIONS, words.NEGATIONS, words.SUPPOSITIONS, words.REJECTIONS)
_CONDITION = re.compile(
    r"\W*(?:(?:and|but|also|similarly|note that)\W+)?"
    r"(?:for|when|with|at)\s+[a-z]\s*(?:[=<>]|\\[gl]eq?\b)",
    re.IGNORECASE,
)
_START = re.compile(r"[.!?:;\n]\s*")
_NEGATION_REACH = 40


def is_negated(before: str) -> bool:
    """Whether a text ends in a negation of what follows."""
    before = before[-_NEGATION_REACH:]
    return _BEFORE.may_match(before) and _NEGATED_BEFORE.search(before) is not None


def is_rejected(after: str) -> bool:
    """Whether a text begins with a rejection of the statement before it."""
    return _REJECTED.match(after) is not None


def is_doubted(clause: str, sentence: str) -> bool:
    """Whether a clause is a supposition, or the end of its sentence denies it or leaves the answer to somebody else."""
    return _BEFORE.may_match(sentence) and bool(
        _SUPPOSED.match(clause) or _DENIED.search(sentence) or _ATTRIBUTED.search(sentence)
    )


def is_void(before: str, statement: str, *, is_conditional: bool = False) -> bool:
    """Whether a statement is denied, asked or supposed. Set `is_conditional` if its verb is conditional, such as "would be"."""
    before = before[-BEFORE:]
    cut = _CLAUSE_START.search(before)
    if is_doubted(before[cut.end() :] if cut else before, before) or statement.endswith("?"):
        return True
    if _NEGATED.match(statement) or _VALUE_REJECTED.match(statement):
        return True
    return is_conditional and _HYPOTHESIS.match(_START.split(before)[-1]) is not None


def is_conditional_sentence(before: str) -> bool:
    """Whether the last sentence of a text begins with a condition."""
    sentence = _START.split(before)[-1]
    return _CONDITION.match(sentence) is not None or (
        _BEFORE.may_match(sentence) and _SUPPOSED.match(sentence) is not None
    )


def is_hypothetical(sentence: str, clause: str) -> bool:
    """Whether a clause says what would be under a condition that its sentence names first."""
    return " would " in clause and _HYPOTHESIS.match(sentence) is not None


def is_void_here(text: str, mark: Mark) -> bool:
    """Whether a mark of rank 1 is denied, asked or supposed by the sentence around it."""
    before = _line_before(text, mark)
    after = text[mark.end : mark.end + BEFORE].partition("\n")[0]
    if "?" not in after and not _AROUND.may_match(f"{before} {after}"):
        return False
    after = _END_OF_DISPLAY.split(after, maxsplit=1)[0]
    end = SENTENCE_END.search(after)
    if (after if end is None else after[: end.start()]).endswith("?") or is_rejected(after):
        return True
    sentence = _STOP.split(before)[-1]
    return is_negated(before) or is_doubted(_JOINT.split(sentence)[-1], sentence)


def is_hypothetical_here(text: str, mark: Mark) -> bool:
    """Whether the sentence around a mark of rank 1 says what would be under a condition that the sentence names first."""
    before = _line_before(text, mark)
    if " would " not in before:
        return False
    sentence = _STOP.split(before)[-1]
    return is_hypothetical(sentence, _JOINT.split(sentence)[-1])


def _line_before(text: str, mark: Mark) -> str:
    """The part of a mark's line before the mark."""
    line = text.rfind("\n", 0, mark.start) + 1
    return text[max(line, mark.start - BEFORE) : mark.start]


def is_void_statement(plain: str) -> bool:
    """Whether the last sentence of a line is denied, asked or supposed."""
    stripped = plain.rstrip(" .!*_\"'”)")
    start = max((end.end() for end in SENTENCE_END.finditer(stripped) if end.end() < len(stripped)), default=0)
    sentence = stripped[start:]
    if sentence.endswith("?") or not _AROUND.may_match(sentence):
        return sentence.endswith("?")
    clauses = re.split(r",\s|\bthen\b", sentence)
    clause = next((part for part in reversed(clauses) if re.search("[0-9A-Z]", part)), sentence)
    return is_doubted(clause, sentence) or bool(
        _NEGATED_WITHIN.search(sentence) or _VALUE_REJECTED.search(sentence, sentence.rfind(clause))
    )
