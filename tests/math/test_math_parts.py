"""The parts under the verifier, against values worked out by hand."""

import pytest

from verifiers.math.reading.cursor import MAX_DEPTH
from verifiers.math.reading.errors import UnreadableError
from verifiers.math.reading.parse import parse
from verifiers.math.values.evaluation import context
from verifiers.math.values.exact import TooLargeError, UndefinedError, begin_work, rational_value, spend
from verifiers.math.values.numeric import numerically_equal
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


# Points at which expressions with symbols are compared.


def coordinates(gold, answer, name):
    sampling = sampling_for(parse(gold), parse(answer))
    return [float(sampling.coordinate(context(30), sample, name)) for sample in range(sampling.count)]


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
