"""The parts under the verifier, against values worked out by hand."""

import math
from fractions import Fraction

import pytest

from verifiers.math.compare.sets import NoSetError, real_set
from verifiers.math.reading.assemble import determinant
from verifiers.math.reading.cursor import MAX_DEPTH
from verifiers.math.reading.errors import UnreadableError
from verifiers.math.reading.parse import parse
from verifiers.math.tree import Number
from verifiers.math.values.evaluation import context
from verifiers.math.values.exact import NotExactError, TooLargeError, UndefinedError, begin_work, rational_value, spend
from verifiers.math.values.numeric import FILTER_DIGITS, estimate, numerically_equal
from verifiers.math.values.sample_points import sampling_for


@pytest.mark.parametrize(
    "text",
    [
        "",
        "()",
        "(",
        "2+",
        r"\frac{1}",
        r"\unknown{1}",
        "2 3",
        "x^",
        "[1,2",
        "log(8,2,3)",
        r"\ln_2 3",
        "1 = ",
        r"\begin{pmatrix}1&2\\3\end{pmatrix}",
    ],
)
def test_what_cannot_be_read(text):
    with pytest.raises(UnreadableError):
        parse(text)


def test_nesting_is_bounded():
    parse("(" * (MAX_DEPTH - 2) + "1" + ")" * (MAX_DEPTH - 2))
    with pytest.raises(UnreadableError, match="deep"):
        parse("(" * (MAX_DEPTH + 1) + "1" + ")" * (MAX_DEPTH + 1))


@pytest.mark.parametrize("text", [r"\sqrt2", "x", r"\pi", "2^{10^9}", "9^{9^{9^9}}", "100000!", r"\log 2"])
def test_what_is_not_evaluated_exactly(text):
    begin_work()
    with pytest.raises(NotExactError):
        rational_value(parse(text))


@pytest.mark.parametrize("text", ["1/0", "0^{-1}", "0^0", "(-1)!", r"\log 0"])
def test_what_has_no_value(text):
    begin_work()
    with pytest.raises(UndefinedError):
        rational_value(parse(text))


def test_work_is_bounded_and_counted_from_the_start_of_each_comparison():
    begin_work()
    for _ in range(150):
        spend(100)
    with pytest.raises(TooLargeError):
        spend(10_000)
    begin_work()
    spend(10_000)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (r"\tan^{-1} 1", math.pi / 4),
        (r"\log_2 3", math.log2(3)),
        (r"e^{-2}", math.exp(-2)),
        (r"\sqrt[3]{-2}", -(2 ** (1 / 3))),
        (r"\left|-\pi\right|", math.pi),
        (r"\sin 2 \cos 3", math.sin(2) * math.cos(3)),
    ],
)
def test_numeric_values(text, value):
    begin_work()
    assert float(estimate(parse(text), FILTER_DIGITS).value) == pytest.approx(value, rel=1e-14)


@pytest.mark.parametrize(
    ("gold", "answer", "same"),
    [
        (r"\sqrt{x^2}", "|x|", True),
        (r"\sqrt{x^2}", "x", False),
        (r"\sin 2x", r"2\sin x\cos x", True),
        (r"e^{1000}+1-e^{1000}", "1", None),  # 434 digits cancel
        (r"e^{1000}+1-e^{1000}", "0", None),
        (r"e^{100}+1-e^{100}", "1", True),
        (r"e^{100}+1-e^{100}", "2", False),
        (r"\sqrt{3+2\sqrt2}-1-\sqrt2", "0", True),
        (r"\sqrt{3+2\sqrt2}-1-\sqrt2", "10^{-60}", False),
        (r"\sin(10^{-50})", "10^{-50}", False),
        (r"2^{n+1}", r"2\cdot2^n", True),
        (r"\binom{n}{2}", r"\frac{n(n-1)}{2}", True),
        (r"\frac{1}{x-x}", "1", None),
    ],
)
def test_numeric_comparison_notices_cancellation(gold, answer, same):
    begin_work()
    assert numerically_equal(parse(gold), parse(answer)) is same


@pytest.mark.parametrize("text", ["[2,1]", r"[0,\infty]", "(a,1)", "x+y>2", r"(0,1,2)", "5"])
def test_what_is_no_set_of_reals(text):
    begin_work()
    with pytest.raises(NoSetError):
        real_set(parse(text))


# Points at which expressions with symbols are compared.


def coordinates(gold, answer, name):
    sampling = sampling_for(parse(gold), parse(answer))
    return [float(sampling.coordinate(context(30), sample, name)) for sample in range(sampling.count)]


@pytest.mark.parametrize("gold", ["|x-20|", r"\max(x,20)", r"\sqrt{(x-20)^2}"])
def test_pieces_are_compared_on_both_sides_of_every_constant(gold):
    values = coordinates(gold, "x", "x")
    assert min(values) < -20 < max(value for value in values if value < 0) < 0
    assert any(0 < value < 20 for value in values)
    assert max(values) > 20


def test_steps_are_compared_at_integers_halves_and_between():
    values = coordinates(r"\lfloor x\rfloor", r"\lceil x\rceil-1", "x")
    assert any(value == int(value) for value in values)
    assert any(value != int(value) and 2 * value == int(2 * value) for value in values)
    assert any(2 * value != int(2 * value) for value in values)


@pytest.mark.parametrize("gold", ["n!", r"\binom{n}{70}", "(-1)^n", r"\sum_{k=1}^{n} k"])
def test_symbols_of_discrete_expressions_are_integers(gold):
    assert all(value == int(value) >= 3 for value in coordinates(gold, "n", "n"))


def test_steps_of_an_integer_are_compared_at_all_small_ones_and_beside_powers_and_multiples():
    values = coordinates(r"\lfloor n/700\rfloor", "n", "n")
    assert all(value == int(value) for value in values)
    assert {*range(1, 41), 511, 512, 513, 999, 1000, 1001, 699, 700, 701, 1399, 1400} <= {*values}


def test_a_term_too_small_to_be_seen_is_no_proof_of_equality():
    assert numerically_equal(parse("13"), parse(r"13+\sin(10^{-9000})")) is None
    assert numerically_equal(parse("13"), parse("13+10^{-40}")) is False


# Numbers in words, determinants, compound quantities.


@pytest.mark.parametrize(
    ("rows", "value"),
    [
        (((2, 0, 1), (1, 3, 2), (1, 1, 4)), 18),  # 2(12-2) + (1-3)
        (((0, 0, 0, 1), (0, 0, 1, 0), (0, 1, 0, 0), (1, 0, 0, 0)), 1),
    ],
)
def test_determinants(rows, value):
    entries = tuple(tuple(Number(Fraction(entry)) for entry in row) for row in rows)
    assert rational_value(determinant(entries)) == value
