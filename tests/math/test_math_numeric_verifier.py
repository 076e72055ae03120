"""The numeric verifier reads digits and signs of East Asian and typeset text like plain ones."""

from fractions import Fraction

import pytest

from verifiers import InvalidArgumentError, Outcome, Problem
from verifiers.numeric import NumericVerifier, parse_number


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("１２３", 123),
        ("−７", -7),
        ("－７", -7),
        ("１，２３４．５", Fraction(2469, 2)),
        ("３／４", Fraction(3, 4)),
        ("＋８", 8),
    ],
)
def test_full_width_literals_are_read(text, value):
    assert parse_number(text) == value


@pytest.mark.parametrize(
    ("completion", "reference", "right"),
    [
        ("The answer is １２.", 12, True),
        ("#### −５", -5, True),
        ("#### −５", 5, False),
        ("＃＃＃＃ ５", 5, True),
        ("The answer is １２＋３.", 12, False),
        ("The answer is １２ or １３.", 12, False),
    ],
)
def test_full_width_answers_are_judged_like_plain_ones(completion, reference, right):
    verdict = NumericVerifier()(completion, Problem("", "", reference))
    assert (verdict.outcome is Outcome.CORRECT) is right


@pytest.mark.parametrize("completion", [None, 5, b"5", ["5"]])
def test_a_completion_that_is_no_text_is_a_callers_mistake(completion):
    with pytest.raises(InvalidArgumentError, match="a completion must be a string, got"):
        NumericVerifier()(completion, Problem("p7", "", "5"))
