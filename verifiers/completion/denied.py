"""Whether a statement is denied, asked or supposed."""

from __future__ import annotations

import re

from verifiers.completion import words
from verifiers.completion.mark import BEFORE, Mark
from verifiers.completion.statements import SENTENCE_END, TAG_QUESTION

_CLAUSE_START = re.compile(r"(?:[.!?;:,\n]|\b(?:but|so|then|thus|hence|therefore)\b)(?=[^.!?;:,\n]*+\Z)", re.IGNORECASE)
DENIED = re.compile(rf"{words.DENIALS.pattern}[^.,;:\n]{{0,30}}$", re.IGNORECASE)
_NEGATED = re.compile(rf"\W*{words.NEGATIONS.pattern}", re.IGNORECASE)
_REJECTED = re.compile(rf"[\s$*_)\\\]]*(?:{words.REJECTIONS.pattern})", re.IGNORECASE)
NEGATED_BEFORE = re.compile(rf"{words.NEGATIONS.pattern}[\s$*_(\[\\]*$", re.IGNORECASE)
SUPPOSED = re.compile(rf"\W*(?:(?:and|but|so|now|well|or)\W+)?{words.SUPPOSITIONS.pattern}", re.IGNORECASE)
_NEGATED_WITHIN = re.compile(rf"\b(?:is|are|was|equals)\s*{words.NEGATIONS.pattern}\W*[0-9]", re.IGNORECASE)
_HYPOTHESIS = re.compile(rf"{SUPPOSED.pattern}|\W*(?:for|with|when|otherwise|similarly)\b", re.IGNORECASE)


def is_void(before: str, statement: str, *, is_conditional: bool = False) -> bool:
    """Whether a statement, whose verb may be a conditional ("would be"), is denied, asked or supposed."""
    cut = _CLAUSE_START.search(before[-BEFORE:])
    clause = before[-BEFORE:][cut.end() :] if cut else before[-BEFORE:]
    if DENIED.search(before[-BEFORE:]) or SUPPOSED.match(clause):
        return True
    if is_conditional and _HYPOTHESIS.match(re.split(r"[.!?\n]\s*", before)[-1]):
        return True
    if statement.endswith("?") and not TAG_QUESTION.search(statement[:-1]):
        return True
    return _NEGATED.match(statement) is not None


_WORDS_BEFORE = words.words_of(words.DENIALS, words.NEGATIONS, words.SUPPOSITIONS)
_WORDS_AFTER = words.words_of(words.REJECTIONS)


_END_OF_DISPLAY = re.compile(r"(?<=\.)(?=\\[\])]|\$)")


def is_void_here(text: str, mark: Mark) -> bool:
    """Whether a mark of rank 1 is denied, asked or supposed by the sentence around it."""
    line = text.rfind("\n", 0, mark.start) + 1
    before = text[max(line, mark.start - BEFORE) : mark.start]
    after = text[mark.end : mark.end + BEFORE].partition("\n")[0]
    if "?" not in after and not words.may_hold(before, _WORDS_BEFORE) and not words.may_hold(after, _WORDS_AFTER):
        return False
    after = _END_OF_DISPLAY.split(after, maxsplit=1)[0]
    end = SENTENCE_END.search(after)
    said = after if end is None else after[: end.start()]
    asked = said.endswith("?") and not TAG_QUESTION.search(said[:-1])
    if asked or _REJECTED.match(after):
        return True
    if not before.strip():
        return False
    sentence = re.split(r"[.!?;](?=\s|\\\]|\$)", before)[-1]
    clause = re.split(r",|\b(?:but|so|then|thus|hence|therefore)\b", sentence, flags=re.IGNORECASE)[-1]
    return bool(NEGATED_BEFORE.search(before) or SUPPOSED.match(clause) or DENIED.search(sentence))


def is_void_statement(plain: str) -> bool:
    """Whether the last sentence of a line is denied, asked or supposed."""
    stripped = plain.rstrip(" *_\"'”)")
    start = max((end.end() for end in SENTENCE_END.finditer(stripped) if end.end() < len(stripped)), default=0)
    sentence = stripped[start:]
    asked = sentence.endswith("?") and not TAG_QUESTION.search(sentence[:-1])
    clauses = re.split(r",\s|\bthen\b", sentence)
    clause = next((part for part in reversed(clauses) if re.search("[0-9A-Z]", part)), sentence)
    return asked or bool(SUPPOSED.match(clause) or DENIED.search(sentence) or _NEGATED_WITHIN.search(sentence))


def negated_before(before: str) -> bool:
    """Whether a text ends in a negation of what follows."""
    return NEGATED_BEFORE.search(before[-40:]) is not None
