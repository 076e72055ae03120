"""Every mark of an answer means something to the reader, or is listed here: without it the tree is another one."""

import contextlib
import itertools

import pytest
from math_corpus import PAIRS

from verifiers.math import UnreadableError
from verifiers.math.reading.normalize import unwrap
from verifiers.math.reading.parse import read_tokens
from verifiers.math.reading.phrases import essence
from verifiers.math.reading.tokens import tokenize

PUNCTUATION = {",", ".", ";", ":", "(", ")"}  # of lists and sentences, among it brackets around letters of options
WORDS = {"a", "an", "the", "and", "if", "for"}  # "and" beside a comma and between units, "if" before a condition
SIGNS = {"+", "cdot", "times", "*"}  # before a positive number, and between factors that stand side by side
ALIGNMENT = {"&", "\\\\"}  # beside a relation, and behind the last row
MARKS_OF_NAMES = {"mathbb", "vec", "hat", "overline", "angle"}
BEFORE = {"^": "circ", "m": "angle"}  # which say as much without it
MARKS_WITHOUT_MEANING = PUNCTUATION | WORDS | SIGNS | ALIGNMENT | MARKS_OF_NAMES

ANSWERS = sorted({pair.gold for pair in PAIRS} | {pair.answer for pair in PAIRS if pair.correct})


@pytest.mark.parametrize("start", range(50))
def test_without_any_of_its_marks_an_answer_is_read_as_something_else(start):
    read = 0
    for answer in ANSWERS[start::50]:
        with contextlib.suppress(UnreadableError):
            tokens = tokenize(essence(unwrap(answer)))
            if len(tokens) > 200:
                continue
            tree = read_tokens(list(tokens), frozenset())
            read += 1
            for index, (token, after) in enumerate(itertools.pairwise(tokens)):
                if token.text.lower() in MARKS_WITHOUT_MEANING or BEFORE.get(token.text) == after.text:
                    continue
                assert _read_or_none(tokens[:index] + tokens[index + 1 :]) != tree, (answer, token)
    assert read > 10


def _read_or_none(tokens):
    with contextlib.suppress(UnreadableError):
        return read_tokens(tokens, frozenset())
    return None
