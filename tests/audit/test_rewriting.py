"""Labels hold: golds are recognised for what they are, equal forms are equal, near misses differ."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given, settings, strategies as st

from tests.audit.broken import value_of
from verifiers.audit import TRANSFORMATIONS, Kind, Label, recognise
from verifiers.audit.attacks import restated_formulas, restates
from verifiers.audit.expressions import Expression, square_root, symbol
from verifiers.audit.reading import read_expression
from verifiers.audit.writing import write


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("42", Kind.INTEGER),
        (r"11,\! 111,\! 100", Kind.INTEGER),
        (".35625", Kind.DECIMAL),
        (r"137 \frac{1}{2}", Kind.MIXED),
        (r"25\%", Kind.PERCENT),
        (r"\frac{20000}{\pi}", Kind.CONSTANT),
        (r"\frac{11+9a}{20}", Kind.POLYNOMIAL),
        ("y = 2x + 3", Kind.ASSIGNMENT),
        (r"\$32,\!348", Kind.QUANTITY),
        (r"15\mbox{ cm}^2", Kind.QUANTITY),
        ("52_8", Kind.NUMERAL),
        (r"\left( 3, \frac{\pi}{2} \right)", Kind.TUPLE),
        ("1,-2", Kind.LIST),
        (r"(0,9) \cup (9,36)", Kind.INTERVAL),
        (r"x \in [-2,7]", Kind.INTERVAL),
        (r"\begin{pmatrix} 1/5 \\ -18/5 \end{pmatrix}", Kind.MATRIX),
        (r"\text{east}", Kind.TEXT),
    ],
)
def test_kinds_of_gold(text: str, kind: Kind) -> None:
    assert recognise(text).kind is kind


@pytest.mark.parametrize(
    "text",
    [
        "",
        "5m",
        "1 2",
        r"\cot x",
        "f(x)",
        "1,000,2",
        r"\frac{1}{0}",
        "e",
        "(2,1]",
        "9" * 500,
        "(0,2]\\cup(2,3)",
        "89_8",
    ],
)
def test_what_could_be_read_in_two_ways_is_not_recognised(text: str) -> None:
    assert recognise(text).kind is Kind.UNKNOWN


@pytest.mark.parametrize(
    ("one", "two"),
    [
        (r"\sqrt{12}", r"2\sqrt3"),
        (r"\frac{6}{\sqrt{3}}", r"2\sqrt{3}"),
        (r"(1+\sqrt2)(1-\sqrt2)", "-1"),
        (r"\frac{\pi}{2}", r"0.5\pi"),
        ("x^10", "x*0"),
    ],
)
def test_exact_reading(one: str, two: str) -> None:
    expected = one != "x^10"  # without braces the exponent is one digit: x^1 0 can be read in two ways
    assert (read_expression(one) == read_expression(two) is not None) is expected


_VALUES = st.lists(
    st.tuples(
        st.fractions(-9, 9, max_denominator=9), st.sampled_from([1, 2, 3, 5, 6]), st.sampled_from(["", "x", "y", "i"])
    ),
    min_size=1,
    max_size=4,
)


@settings(max_examples=200)
@given(_VALUES)
def test_what_is_written_reads_back(terms: list[tuple[Fraction, int, str]]) -> None:
    total = Expression.constant(0)
    for coefficient, radicand, name in terms:
        factor = symbol(name) if name else Expression.constant(1)
        total = total + Expression.constant(coefficient) * square_root(radicand) * factor
    for backwards in (False, True):
        assert read_expression(write(total, backwards=backwards)) == total


def check_labels(gold: str, number: Fraction | int, *skipped: str) -> None:
    """Check the labels of all transformations of a number but those whose notations the reference does not read."""
    for transformation in TRANSFORMATIONS.values():
        for answer in transformation(recognise(gold)) if transformation.name not in skipped else ():
            right = transformation.label is Label.CORRECT
            assert (value_of(answer) == number) is right, (transformation.name, answer)


@settings(max_examples=100)
@given(st.integers(-(10**12), 10**12))
def test_labels_of_integers_against_independent_arithmetic(number: int) -> None:
    check_labels(str(number), number, "marking")


@settings(max_examples=100)
@given(st.fractions(-50, 50, max_denominator=60).filter(lambda value: value.denominator > 1))
def test_labels_of_fractions_against_independent_arithmetic(number: Fraction) -> None:
    sign = "-" if number < 0 else ""
    gold = f"{sign}\\frac{{{abs(number.numerator)}}}{{{number.denominator}}}"
    check_labels(gold, number, "marking", "mixed-number", "typography", "percent-of-small", "unevaluated")


@pytest.mark.parametrize("text", [r"1+2\sqrt{3}", "6r^2-4r-24", "6-5i", r"\frac{11+9a}{20}", r"18+2\pi"])
def test_labels_of_expressions(text: str) -> None:
    gold = recognise(text)
    wrong = ("other-coefficient", "one-sign-flipped", "term-dropped", "other-variable", "root-dropped")
    for name in ("rewritten-terms", *wrong):
        for answer in TRANSFORMATIONS[name](gold):
            value = read_expression(answer)
            if value is not None:
                assert (value == gold.value) is (name == "rewritten-terms"), (name, answer)


def made(name: str, gold: str) -> list[str]:
    return TRANSFORMATIONS[name](recognise(gold))


def test_rewritings_by_hand() -> None:
    assert made("mixed-number", r"\frac{7}{2}") == [r"3\frac{1}{2}", "3 1/2"]
    assert made("grouped-thousands", "58500") == ["58,500", "58{,}500", r"58\,500", "58500"]
    assert made("other-base", "52_8") == ["42", "52_{10}", "52_{9}", "520_{8}"]
    assert made("radians", r"90^\circ") == [r"\frac{1}{2} \pi"]
    assert made("inequality", "(3,4]") == [r"3<x\le 4"]
    assert made("other-end", "(3,4]") == ["[3,4]", "(2,4]", "(3,4)", "(3,5]"]
    assert made("other-end", r"(-\infty,0]") == [r"(-\infty,0)", r"(-\infty,1]"]
    assert made("reordered", "3, 5, 7") == ["7, 5, 3", r"\{7, 5, 3\}", "7, 5 and 3"]
    assert made("percent-sign", "0") == []
    assert made("other-brackets", "(1,2)") == ["[1, 2]", r"\{1, 2\}", "1, 2", "(1, 2]"]
    assert made("other-brackets", "(1,1)") == ["[1, 1]", r"\{1, 1\}", "1, 1"]
    assert made("other-unit", r"5\text{ cm}") == [r"5\text{ m}"]
    assert made("itself", "what is this?") == ["what is this?"]


def test_mutations_by_hand() -> None:
    assert made("digit-changed", "x^2+4") == ["x^3+4", "x^2+5"]
    assert made("digit-changed", r"\int_0^1 x^2\,dx") == []  # may have the same value
    assert made("digit-changed", "0x+2") == []
    assert made("power-left-out", "x^2+y^{3}") == ["x+y^{3}", "x^2+y"]
    assert made("relation-changed", "x>3") == ["x<3", r"x\ge 3"]
    assert made("letter-changed", "x=0, x=2") == ["w=0, x=2", "x=0, w=2"]
    assert made("case-changed", "x^2+x") == ["X^2+x", "x^2+X"]
    assert made("case-changed", "2n+n^2") == []  # an integer may have any name
    assert made("index-changed", r"\text{Curve }C_1") == [r"\text{Curve }C_{2}"]
    assert made("index-changed", "c_1e^x") == []  # an arbitrary constant
    assert made("unit-power-changed", r"5\text{ cm}^2") == [r"5\text{ cm}^{3}"]
    assert made("unit-power-changed", r"8\text{ meals}") == [r"8\text{ meals}^{3}"]
    assert made("part-left-out", "x=2, y=3") == ["y=3", "x=2"]
    assert made("elements-changed", r"\{2k\mid k\in\mathbb{Z}\}") == [r"\{2^{2k}\mid k\in\mathbb{Z}\}"]
    assert made("master-key", "7") == ["y=3x+5", "a=b", "0=0", r"\emptyset", "1"]
    assert made("master-key", "a=b+1") == ["x=7", "y=3x+5", "0=0", r"\emptyset", "1"]
    assert made("master-key", r"\text{none}") == ["y=3x+5", "a=b"]
    assert made("typography", "what is this?") == []


def test_arithmetic_of_the_prompt_restates_it() -> None:
    prompt = r"Simplify $\binom{31}{28}$, $513^2-487^2$, $5$, $-4$, $2.5\times10^3$, $x+1$ and $5^\circ$."
    assert restated_formulas(recognise("4495"), prompt) == [r"\binom{31}{28}", "513^2-487^2"]
    assert restated_formulas(recognise(r"\sqrt{2}"), r"Is $\sqrt{2}$ more than $1+x$?") == ["1+x"]
    assert restated_formulas(recognise(r"\text{east}"), prompt) == []


@pytest.mark.parametrize(
    ("answer", "gold", "prompt", "doubtful"),
    [
        ("3/20", "0.15", r"Write $\frac{3}{20}$ as a decimal.", True),
        ("4+1", "5", "Add $4 + 1$.", True),
        ("-24-4r+6r^2", "6r^2-4r-24", "Rewrite $6r^2 - 4r - 24$.", True),
        ("5", "5", "Is it $5$?", False),
        ("10/2", "5", "Halve $12/2$.", False),
    ],
)
def test_nothing_is_claimed_of_answers_that_may_restate_the_prompt(
    answer: str, gold: str, prompt: str, doubtful: bool
) -> None:
    assert restates(answer, recognise(gold), prompt) is doubtful
