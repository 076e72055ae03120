import itertools
import re
from fractions import Fraction

import pytest
from hypothesis import given, strategies as st

from verifiers import InvalidArgumentError, Outcome, Problem, UnreadableReferenceError, verify
from verifiers.countdown import MAX_DEPTH, MAX_LENGTH, CountdownReference, CountdownVerifier

SMALL = CountdownReference((2, 3, 4), 24)


def outcome(completion, reference=SMALL, **options):
    return verify("countdown", completion, reference, **options).outcome


@pytest.mark.parametrize(
    "completion",
    [
        "4 * (3 * 2)",
        "2×3·4 = 24",
        "I try 2+3+4 = 9.\n2*3*4 = 24",
        "<answer>2*3*4</answer>\nDone, 9.",
        "<answer>2+3+4</answer> no: <answer>2*3*4</answer>",
    ],
)
def test_right_expressions(completion):
    assert outcome(completion) is Outcome.CORRECT


@pytest.mark.parametrize(
    ("completion", "reason"),
    [
        ("2*3*4=25", "expected 24 after '='"),
        ("24", "24 is used 1 times and given 0 times"),
        ("4*3", "2 is given 1 times and used 0 times"),
        ("(2)(3)*4", r"unexpected '\(' after the expression"),
        ("-2*3*4", "expected a number or '\\(', got '-'"),
        ("2*3*4)", r"unexpected '\)' after"),
        ("(2*3*4", "a parenthesis is not closed"),
        ("2*3*4+", "expected a number or '\\(', got 'the end'"),
        ("2**3*4", "expected a number or '\\(', got '\\*'"),
        ("<answer>__import__('os').system('2')</answer>", "unexpected text"),
    ],
)
def test_wrong_expressions_say_why(completion, reason):
    verdict = verify("countdown", completion, SMALL)
    assert verdict.outcome is Outcome.INCORRECT
    assert re.search(reason, str(verdict.detail["reason"]))


def test_wrong_value_is_reported_and_division_by_zero_is_incorrect():
    verdict = verify("countdown", "2/3+4", SMALL)
    assert (verdict.outcome, verdict.answer, verdict.detail) == (Outcome.INCORRECT, "2/3+4", {"value": "14/3"})
    verdict = verify("countdown", "5/(3-3)", CountdownReference((3, 3, 5), 5))
    assert (verdict.outcome, verdict.detail) == (Outcome.INCORRECT, {"reason": "division by zero"})


@pytest.mark.parametrize(
    "completion", ["", "\n \n", "no idea", "<answer></answer> 2*3*4", "()", "2*3*4 yes", "I used 3 numbers."]
)
def test_no_expression_is_no_answer(completion):
    assert outcome(completion) is Outcome.NO_ANSWER


def test_values_are_exact_and_may_be_fractions_and_negative_on_the_way():
    assert outcome("8/(3-8/3)", CountdownReference((3, 3, 8, 8), 24)) is Outcome.CORRECT
    assert outcome("(1-6)*(2-7)", CountdownReference((1, 2, 6, 7), 25)) is Outcome.CORRECT
    assert outcome("3-8", CountdownReference((3, 8), -5)) is Outcome.CORRECT
    assert outcome("3-8=-5", CountdownReference((3, 8), -5)) is Outcome.CORRECT


def test_numbers_are_used_once_each_or_at_most_once():
    assert outcome("4*3*2", CountdownReference((2, 3, 4, 9), 24)) is Outcome.INCORRECT
    assert outcome("4*3*2", CountdownReference((2, 3, 4, 9), 24), use_all=False) is Outcome.CORRECT
    assert outcome("2+2", CountdownReference((2, 3), 4), use_all=False) is Outcome.INCORRECT
    assert outcome("2+2", CountdownReference((2, 2), 4)) is Outcome.CORRECT


def test_depth_and_length_are_bounded():
    assert outcome("(" * MAX_DEPTH + "2*3*4" + ")" * MAX_DEPTH) is Outcome.CORRECT
    deeper = verify("countdown", "(" * (MAX_DEPTH + 1) + "2*3*4" + ")" * (MAX_DEPTH + 1), SMALL)
    assert deeper.detail == {"reason": f"parentheses are nested deeper than {MAX_DEPTH}"}
    longer = verify("countdown", "2*3*4" + " " * MAX_LENGTH + "=24", SMALL)
    assert longer.detail == {"reason": f"the expression is longer than {MAX_LENGTH} characters"}
    assert outcome("9" * 100_000) is Outcome.INCORRECT


def python_value(expression):
    """Python's own parser and exact fractions, as an independent reference."""
    return eval("".join(f"Fraction({c})" if c.isdigit() else c for c in expression), {"Fraction": Fraction})


@given(
    st.lists(st.sampled_from("+-*/"), min_size=3, max_size=3), st.sampled_from(["{}{}{}{}{}{}{}", "({}{}{}){}{}{}{}"])
)
def test_precedence_agrees_with_python(signs, shape):
    parts = list(itertools.chain(*zip("1234", [*signs, ""], strict=True)))[:-1]
    expression = shape.format(*parts)
    value = python_value(expression)
    verdict = verify("countdown", expression, CountdownReference((1, 2, 3, 4), 10))
    assert verdict.detail == {"value": str(value)}
    assert (verdict.outcome is Outcome.CORRECT) == (value == 10)


@given(st.text(alphabet="234+-*/()= ", max_size=30))
def test_any_text_gets_a_verdict_and_only_24_is_right(text):
    verdict = verify("countdown", text, SMALL)
    assert verdict.outcome in (Outcome.CORRECT, Outcome.INCORRECT, Outcome.NO_ANSWER)
    if verdict.outcome is Outcome.CORRECT:
        assert python_value(text.partition("=")[0]) == 24


def test_reference_may_be_a_mapping():
    judge = CountdownVerifier()
    assert judge("3*5+7", Problem("p", "", {"numbers": [3, 5, 7], "target": 22})).outcome is Outcome.CORRECT
    assert judge("3*5+7", Problem("p", "", {"numbers": [3, 5, 7], "target": 23})).outcome is Outcome.INCORRECT
    for wrong in ({"numbers": [3]}, {"numbers": "357", "target": 22}, {"numbers": [3], "target": "22"}):
        with pytest.raises(UnreadableReferenceError, match="problem 'p': "):
            judge("3*5+7", Problem("p", "", wrong))


@pytest.mark.parametrize("numbers", [(), (1.5,), (-1,), (True,)])
def test_game_needs_whole_numbers(numbers):
    with pytest.raises(InvalidArgumentError, match="whole numbers of at least 0"):
        CountdownReference(numbers, 1)
