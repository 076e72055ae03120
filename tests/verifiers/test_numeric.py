from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given, strategies as st

from verifiers import InvalidArgumentError, Outcome, Problem, verify
from verifiers.numeric import MAX_LITERAL_LENGTH, NumericVerifier, parse_number


def outcome(completion, reference, **options):
    return verify("numeric", completion, reference, **options).outcome


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (".5", Fraction(1, 2)),
        ("6/4", Fraction(3, 2)),
        ("1,234,567.5", Fraction(2469135, 2)),
        ("1.5e3", Fraction(1500)),
        ("1e1000", Fraction(10**1000)),
    ],
)
def test_literals_are_read_exactly(text, value):
    assert parse_number(text) == value


LONG = "1" * (MAX_LITERAL_LENGTH + 1)


@pytest.mark.parametrize(
    "text", ["", "-", "1/2/3", "1/0", "1.5/2", "1,23", "--5", "5.", "1 000", "٣", "1e1001", LONG, "inf"]
)
def test_other_texts_are_no_literals(text):
    assert parse_number(text) is None


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_every_float_reads_back_exactly(value):
    assert parse_number(repr(value)) == Fraction(repr(value))


@pytest.mark.parametrize("reference", ["95", 95, 95.0, "95.0", Fraction(190, 2), Decimal("95.00"), " 95 ", "9.5e1"])
def test_reference_may_be_any_kind_of_number(reference):
    assert outcome("95", reference) is Outcome.CORRECT
    assert outcome("96", reference) is Outcome.INCORRECT
    assert outcome("1/10", 0.1) is Outcome.CORRECT  # the shortest decimal of a float


@pytest.mark.parametrize("reference", ["37+58", "ninety", True, None, float("nan"), float("inf"), Decimal("NaN"), ""])
def test_reference_must_be_a_literal(reference):
    with pytest.raises(InvalidArgumentError, match="needs a literal number as reference"):
        NumericVerifier()("95", Problem("p", "", reference))


@pytest.mark.parametrize(
    "completion",
    ["37+58", "37+58=95", "=95", "95 95", "95.", "x=95", r"\boxed{95}", "the answer is 95", "95 96", "(95)"],
)
def test_whole_takes_nothing_but_the_literal(completion):
    assert outcome(completion, 95, whole=True) is Outcome.INCORRECT


@pytest.mark.parametrize(
    "completion", ["The answer isn't 95", "Is the answer 95?", "If it is 95, it is odd.", "95 x", "- 95 +"]
)
def test_a_number_that_is_denied_asked_supposed_or_cut_off_is_no_answer(completion):
    assert outcome(completion, 95) is Outcome.NO_ANSWER


@pytest.mark.parametrize("completion", ["", "  ", "no idea", "+", "٩٥"])
@pytest.mark.parametrize("options", [{}, {"whole": True}, {"literal_only": True}])
def test_without_a_digit_there_is_no_answer(completion, options):
    assert outcome(completion, 95, **options) is Outcome.NO_ANSWER


@pytest.mark.parametrize(
    "completion",
    [
        "95",
        "37 + 58 = 95.",
        "The answer is 95 because 30+50=80 and 7+8=15.",
        "Answer: $95",
        "He has 3 + 4 = 7, then\n#### 95\n",
        r"$\boxed{ \$95 }$",
        "95%",
        "37 + 58 = 95 times",
        "the answer is 12. Wait, the answer is 95.",
    ],
)
def test_answer_is_found(completion):
    assert outcome(completion, 95) is Outcome.CORRECT


@pytest.mark.parametrize(
    "completion",
    [
        "37+58",
        "100 - 95",
        "95 * x",
        "5/95",
        "95 million",
        "the answer is 95 times 3",
        "95x",
        "not 95",
        "The answer is 94, 95, 96",
        "#### 95 and 96",
        "95 = 12",
        "v95",
        "the answer is 37 + 58",
        "Answer: - 95",
    ],
)
def test_part_of_something_else_is_no_right_answer(completion):
    assert outcome(completion, 95) is Outcome.INCORRECT


@given(st.lists(st.integers(0, 99), min_size=2, max_size=5), st.lists(st.sampled_from("+-*/^"), min_size=4, max_size=4))
def test_an_expression_is_never_accepted(numbers, signs):
    expression = str(numbers[0])
    for sign, number in zip(signs, numbers[1:], strict=False):
        expression += f"{sign}{number}"
    if len(numbers) == 2 and signs[0] == "/":
        return  # a fraction is a literal
    for target in {*numbers, sum(numbers)}:
        for options in ({}, {"whole": True}, {"literal_only": True}):
            assert outcome(expression, target, **options) is Outcome.INCORRECT
            spaced = expression.replace(signs[0], f" {signs[0]} ")
            assert outcome(spaced, target, **options) is Outcome.INCORRECT


@pytest.mark.parametrize("completion", ["a loss of -$95", "x = -95", r"\boxed{-95}", "#### -95", "Answer: −95"])
def test_sign_belongs_to_the_literal(completion):
    assert outcome(completion, -95) is Outcome.CORRECT
    assert outcome(completion, 95) is Outcome.INCORRECT


def test_literal_only_asks_for_a_bare_literal_in_its_place():
    assert outcome("I add.\nThe answer is 95.", 95, literal_only=True) is Outcome.CORRECT
    assert outcome("I add 37 and 58.\n95", 95, literal_only=True) is Outcome.CORRECT
    assert outcome("The answer is 95 eggs.", 95, literal_only=True) is Outcome.INCORRECT
    assert outcome("I get 95", 95, literal_only=True) is Outcome.INCORRECT


@pytest.mark.parametrize(
    ("completion", "tolerances", "expected"),
    [
        ("3.14", {"abs_tol": 0.01}, Outcome.CORRECT),
        ("3.13", {"abs_tol": 0.01}, Outcome.INCORRECT),
        ("3.13", {"rel_tol": 0.01}, Outcome.CORRECT),
        ("3.14", {}, Outcome.INCORRECT),
    ],
)
def test_tolerances(completion, tolerances, expected):
    assert outcome(completion, "3.14159", **tolerances) is expected


@given(st.text())
def test_any_text_gets_a_verdict(text):
    assert outcome(text, 95) in (Outcome.CORRECT, Outcome.INCORRECT, Outcome.NO_ANSWER)


@pytest.mark.parametrize(
    ("completion", "right"),
    [
        (r"The answer is \frac{157}{50}.", True),
        (r"\frac{1,570}{500}", True),
        (r"2\frac{157}{50}", False),
        (r"\sqrt{\frac{157}{50}}", False),
        (r"\frac{3}{4} - \frac{157}{50}", False),
        (r"\frac{157}{0}", False),
    ],
)
def test_a_fraction_of_tex_is_a_literal_where_it_stands_alone(completion, right):
    verdict = verify("numeric", completion, "3.14")
    assert verdict.outcome is (Outcome.CORRECT if right else Outcome.INCORRECT), verdict


@pytest.mark.parametrize(
    ("completion", "answer"),
    [
        ("The answer is negative 12", "-12"),
        ("The answer is minus $12", "-12"),
        ("#### negative 12", "-12"),
        ("It was negative 3.5 degrees.", "-3.5"),
        ("The number of values where f is negative: 3", "3"),
    ],
)
def test_a_sign_in_words(completion: str, answer: str) -> None:
    assert NumericVerifier()(completion, Problem("p", "", answer)).outcome is Outcome.CORRECT


@pytest.mark.parametrize(
    "completion",
    [
        "The answer is 36 at x = 12.",
        "The answer is 3 groups of 12 equals 36.",
        "The answer is 24 (adults) + 12 (kids) = 36.",
        "36\n\nExplanation: there are 24 adults and 12 kids.",
    ],
)
def test_the_number_with_which_a_statement_begins_or_the_result_of_its_calculation_counts(completion: str) -> None:
    assert [outcome(completion, value) is Outcome.CORRECT for value in ("36", "24", "12")] == [True, False, False]


@pytest.mark.parametrize(
    "completion", ["one less than 12", "a multiple of 12", "half of 12", "The answer is 75% of 12", "It is 12 squared."]
)
def test_a_part_of_an_expression_in_words_is_no_answer(completion: str) -> None:
    assert NumericVerifier()(completion, Problem("p", "", "12")).outcome is Outcome.INCORRECT


@pytest.mark.parametrize(
    ("completion", "outcome"),
    [
        (r"\boxed{x = 2, y = 4}", Outcome.INCORRECT),
        ("The answer is x = 2 and y = 8.", Outcome.INCORRECT),
        ("<answer>Each pack has 4 batteries, so 2 packs have 8 batteries.</answer>", Outcome.INCORRECT),
        ("There are 2 packs with 4 batteries each. So the answer is", Outcome.NO_ANSWER),
        ("It is 4.\n\n**Final Answer:**", Outcome.NO_ANSWER),
    ],
)
def test_numbers_on_the_way_are_no_answer(completion: str, outcome: Outcome) -> None:
    assert {verify("numeric", completion, value).outcome for value in "248"} == {outcome}


@pytest.mark.parametrize("completion", ["8 minus 12", "the result is x minus 12", "5 is negative? 12"])
def test_a_minus_with_something_to_subtract_from_is_no_sign(completion: str) -> None:
    assert NumericVerifier()(completion, Problem("p", "", "-12")).outcome is Outcome.INCORRECT


# Digits and signs of East Asian and typeset text


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
    assert (outcome(completion, reference) is Outcome.CORRECT) is right


@pytest.mark.parametrize("completion", [None, 5, b"5", ["5"]])
def test_a_completion_that_is_no_text_is_a_callers_mistake(completion):
    with pytest.raises(InvalidArgumentError, match="a completion must be a string, got"):
        NumericVerifier()(completion, Problem("p7", "", "5"))
