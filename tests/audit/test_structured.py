r"""Structured golds: they are recognised, their near misses are wrong by independent arithmetic, and they find defects."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import pytest
from hypothesis import given, strategies as st

from verifiers import Problem, audit_verifier
from verifiers.audit import ATTACKS, TRANSFORMATIONS, Check, Kind, Label, recognise
from verifiers.audit.expressions import PI, Expression, symbol
from verifiers.audit.structures import Rounded, condition, family, half_lines, labelled_values, linear_equation, renamed


def rewrites(gold: str, *, label: Label = Label.WRONG) -> dict[str, list[str]]:
    """The rewritings of a gold, by the name of the transformation."""
    recognised = recognise(gold)
    return {
        transformation.name: transformation(recognised)
        for transformation in TRANSFORMATIONS.values()
        if transformation.label is label and transformation(recognised)
    }


def wrong_answers(gold: str) -> list[str]:
    return [answer for answers in rewrites(gold).values() for answer in answers]


@pytest.mark.parametrize(
    "text",
    [
        r"a\approx0.333",  # a is no constant
        r"\triangle ABC=5",
        "x^2+y^2=5",  # no linear equation
        "x=1, x=2",  # one name twice
        "x=1,000, y=2",  # a thousand, or one and nothing
        "0<x<3",
        r"x>3\text{ or }x<1",
        r"3\text{ if }x>3, 4\text{ if }x\le 3",
        r"\{x\mid x\ge3\},\{x\mid x\ge3\}",
        r"\{x\mid y\ge3\}",
        r"n^2\pi, n\in\mathbb Z",
        "24:00",
        "C_1x",  # a constant of integration
        r"\boxed{2} is not \boxed{3}",
    ],
)
def test_what_could_be_read_in_two_ways_has_no_structure(text: str) -> None:
    assert recognise(text).kind is Kind.UNKNOWN


@pytest.mark.parametrize(
    ("gold", "answer"),
    [
        (r"\frac13\approx0.333", "1=2"),
        (r"\sin 30^\circ=\frac12", r"\sin(1)=7"),
        (r"\lfloor\sqrt{n-1}\rfloor", r"\lfloor\sqrt{{(n+1)}-1}\rfloor"),
        (r"\lceil\log_2 n\rceil", r"(\lfloor\log_2 n\rfloor+1)"),
        (r"\lfloor n/100\rfloor", r"\lfloor {(n+1)}/100\rfloor"),
        (r"$\boxed{2}, \boxed{3}$", "3"),
        (r"\text{the plane }x+y=5", "5"),
        (r"2x\text{ for }x<0", r"2x\text{ for }x> 0"),
        (r"\text{True}, x>3", r"\text{True}, x< 3"),
        (r"\text{Maximum}=3,\ \text{Minimum}=1", r"\text{Maximum}=1, \text{Minimum}=3"),
        ("x=-1,3", "w=-1,3"),
        (r"\{x\mid x\ge3\},\{x\mid x\ge0\}", r"\{x\mid x\ge 3\}"),
        ("x^2", "x^{2}_{10}"),
        ("x^2_{10}", "x^2"),
        ("12", "12:00"),
    ],
)
def test_near_misses_of_the_kinds_that_verifiers_have_accepted(gold: str, answer: str) -> None:
    assert answer in wrong_answers(gold)


def test_the_math_verifier_accepts_none_of_them_in_any_letter() -> None:
    golds = [r"\lfloor\sqrt n\rfloor", r"\lceil\log_2 n\rceil", r"\lfloor n/100\rfloor", "x+y=5", "x=-1,3", "x>3"]
    golds += [renamed(gold, old, new) for gold in golds[:3] for old, new in (("n", "m"), ("n", "t"), ("n", "x"))]
    golds += [r"\frac13\approx0.333", r"2x\text{ for }x<0", r"\text{Maximum}=3, \text{Minimum}=1", r"\{x\mid x\ge3\}"]
    golds += [r"x=\frac\pi6+2n\pi, n\in\mathbb Z", r"\text{the plane }x+y=5", "v_0^2", "12:00"]
    problems = [Problem(str(index), "", gold) for index, gold in enumerate(golds)]
    report = audit_verifier("math", problems, skip=[*ATTACKS, "typography"])
    assert report.findings_of(Check.FALSE_POSITIVE) == []
    assert report.checks["false positive"] > 150
    assert set(report.kinds) >= {"floors and ceilings", "condition", "statement", "family", "labelled values"}


# No near miss is right: floors against integer arithmetic.

INTEGER_VALUES = {
    r"\lfloor\sqrt n\rfloor": math.isqrt,
    r"\lceil\log_2 n\rceil": lambda n: (n - 1).bit_length(),
    r"\lfloor\log_2 n\rfloor+1": int.bit_length,
    r"\left\lfloor\frac{n}{100}\right\rfloor": lambda n: n // 100,
    r"\lceil n/3\rceil-2": lambda n: -(-n // 3) - 2,
    r"n-2\lfloor n/2\rfloor": lambda n: n % 2,
    r"\lfloor\lfloor n/2\rfloor/3\rfloor": lambda n: n // 6,
    r"\lfloor\sqrt{2} n\rfloor": lambda n: math.isqrt(2 * n * n),
}


@pytest.mark.parametrize("gold", INTEGER_VALUES)
def test_rounded_expressions_are_evaluated_exactly(gold: str) -> None:
    rounded = Rounded(recognise(gold).text.replace(r"\left", "").replace(r"\right", ""), "n")
    for number in range(1, 300):
        value = rounded.value(number)
        assert value is not None
        assert value.rational == INTEGER_VALUES[gold](number), number


def test_floors_that_are_the_same_for_integers_are_no_near_misses() -> None:
    assert r"(\lceil n\rceil-1)" in wrong_answers(r"\lfloor n\rfloor")
    assert r"\lceil n\rceil" not in wrong_answers(r"\lfloor n\rfloor")
    # half an integer more: the floor of it is the ceiling less one
    assert r"(\lceil n+\frac12\rceil-1)" not in wrong_answers(r"\lfloor n+\frac12\rfloor")
    assert r"\lceil n+\frac12\rceil" in wrong_answers(r"\lfloor n+\frac12\rfloor")
    assert not Rounded(r"\lfloor\frac{n}{2}\rfloor", "n").differs(r"\lceil\frac{n-1}{2}\rceil")


# Linear equations against their solutions.

_COEFFICIENTS = st.integers(-5, 5).filter(bool)


@given(_COEFFICIENTS, _COEFFICIENTS, st.integers(-9, 9))
def test_other_linear_equations_have_other_solutions(first: int, second: int, constant: int) -> None:
    gold = f"{first}x+{second}y={constant}".replace("+-", "-")
    assert recognise(gold).kind is Kind.LINEAR_EQUATION
    answers = rewrites(gold)["other-equation"]
    assert len(answers) == 3
    solutions = [(Fraction(x), Fraction(constant - first * x, second)) for x in (0, 1, 2)]
    for answer in answers:
        read = linear_equation(answer)
        assert read is not None
        assert not all(_residual(read.left - read.right, x, y) == 0 for x, y in solutions)
    (same,) = rewrites(gold, label=Label.CORRECT)["other-side"]
    read = linear_equation(same)
    assert read is not None
    assert all(_residual(read.left - read.right, x, y) == 0 for x, y in solutions)


def _residual(side: Expression, x: Fraction, y: Fraction) -> Fraction:
    values = {"x": x, "y": y}
    factors = (
        (coefficient, [values[name] ** power for name, power in monomial.powers])
        for monomial, coefficient in side.terms.items()
    )
    return sum((coefficient * math.prod(powers) for coefficient, powers in factors), Fraction(0))


# Families against the constants that they hold.


def constants(text: str) -> set[Expression]:
    """The constants of a family in units of π, for small integers, cut where every family below still has all."""
    read = family(text)
    assert read is not None
    values = (read.start + read.step * Expression.constant(number) for number in range(-60, 61))
    shares = {value: (value / symbol(PI)).rational for value in values}
    return {value for value, share in shares.items() if share is not None and abs(share) <= 10}


@given(st.fractions(0, 2, max_denominator=6), st.sampled_from([Fraction(1, 2), Fraction(1), Fraction(2)]))
def test_equal_families_hold_the_same_constants_and_near_misses_others(start: Fraction, step: Fraction) -> None:
    gold = (
        f"x=\\frac{{{start.numerator}}}{{{start.denominator}}}\\pi+\\frac{{{step.numerator}}}{{{step.denominator}}}n\\pi, "
        r"n\in\mathbb{Z}"
    )
    expected = constants(gold)
    assert len(expected) >= 10
    equal = [
        answer for name in ("other-bound-letter", "other-start") for answer in rewrites(gold, label=Label.CORRECT)[name]
    ]
    assert len(equal) == 4
    for answer in equal:
        assert constants(answer) == expected
    for answer in rewrites(gold)["other-family"]:
        assert constants(answer) != expected


# Conditions and labels.


@pytest.mark.parametrize("sign", ["<", ">", r"\le", r"\ge"])
def test_other_conditions_hold_for_other_numbers(sign: str) -> None:
    holds = {"<": Fraction.__lt__, ">": Fraction.__gt__, r"\le": Fraction.__le__, r"\ge": Fraction.__ge__}
    tried = [Fraction(number, 4) for number in range(-20, 40)]

    def fulfilling(text: str) -> list[Fraction]:
        read = condition(text)
        assert read is not None
        assert read.bound.rational is not None
        return [number for number in tried if holds[read.sign](number, read.bound.rational)]

    gold = f"x{sign} 3"
    names = ("flipped-condition", "other-strictness")
    for answer in itertools.chain(*(rewrites(gold)[name] for name in names)):
        assert fulfilling(answer) != fulfilling(gold)


def test_a_strictness_that_something_before_it_might_undo_is_left_alone() -> None:
    assert "other-strictness" not in rewrites("x=3, x>3")


def test_equal_values_are_not_swapped() -> None:
    assert "swapped-labels" not in rewrites(r"x=\frac12, y=0.5")
    assert rewrites("x=1, y=1, z=2")["swapped-labels"] == ["x=1, y=2, z=1"]
    for answer in rewrites("a=1, b=2, c=3")["swapped-labels"]:
        values = {one.label: one.value.number for one in labelled_values(answer)}
        assert values != {"a=": 1, "b=": 2, "c=": 3}
        assert sorted(values) == ["a=", "b=", "c="]


def test_a_flipped_set_that_is_there_already_is_no_near_miss() -> None:
    assert "flipped-set" not in rewrites(r"\{x\mid x\ge3\}, \{x\mid x\le3\}")
    for answer in rewrites(r"\{x\mid x\ge3\}")["subset-or-superset"]:
        assert len(half_lines(answer)) == 2
