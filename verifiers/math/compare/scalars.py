"""Comparison of single values, with units, percentages, and constants of integration."""

from __future__ import annotations

from fractions import Fraction
from functools import partial

from verifiers.math.compare.constants import free_constant, same_values
from verifiers.math.compare.context import Comparer
from verifiers.math.compare.measures import (
    DEGREE,
    at_least_one,
    measured,
    names_other_thing,
    prices,
    split_unit,
    unit_from_letters,
    with_plain_degrees,
    without_percent,
    without_unit,
)
from verifiers.math.compare.names import is_word_of_letters
from verifiers.math.forms import unordered
from verifiers.math.tree import (
    DOTS,
    Add,
    Derivative,
    Integral,
    Multiply,
    Negate,
    Node,
    Number,
    Percent,
    Quantity,
    Symbol,
    bound_name,
    children,
    rewrite,
    symbols,
    walk,
)
from verifiers.math.units import Unit


def same_dotted(comparer: Comparer, gold: Node, answer: Node) -> bool:
    r"""Compare sums and products with dots term by term, since the terms show what the dots mean: `1+4+\\cdots+n^2`."""
    if DOTS not in walk(gold) and DOTS not in walk(answer):
        return comparer.same(gold, answer)
    if type(gold) is not type(answer):
        return False
    ours, theirs = tuple(children(gold)), list(children(answer))
    if not isinstance(gold, Add | Multiply):
        return _without_operands(gold) == _without_operands(answer) and all(
            map(partial(same_dotted, comparer), ours, theirs)
        )
    return len(ours) == len(theirs) and all(
        any(same_dotted(comparer, one, two) and theirs.pop(index) for index, two in enumerate(theirs)) for one in ours
    )


def _without_operands(node: Node) -> Node:
    return rewrite(node, lambda inner: None if inner is node else DOTS)


def same_scalars(comparer: Comparer, gold: Node, answer: Node) -> bool:
    """Compare values, after adjusting units, degrees, percentages and constants of integration."""
    if is_indefinite(gold) or is_indefinite(answer):
        return _same_antiderivatives(comparer, gold, answer)
    if DOTS in walk(gold):
        return same_dotted(comparer, gold, answer)
    if any(bound_name(node) for node in walk(gold)) and unordered(gold) == unordered(answer):
        return True
    gold_value, gold_unit = split_unit(gold)
    answer_value, answer_unit = split_unit(answer)
    units = (measured(gold_unit), measured(answer_unit))
    if units != (None, None) and (isinstance(gold, Percent) or isinstance(answer, Percent)):
        return False
    if comparer.options.degrees == "unit":
        gold_value, answer_value = with_plain_degrees(gold_value), with_plain_degrees(answer_value)
    if symbols(gold_value) and isinstance(answer, Quantity) and len(answer.unit.label) == 1:
        answer_value, answer_unit = Multiply((answer.value, Symbol(answer.unit.label))), None
    if gold_unit is not None and answer_unit is None and symbols(answer_value) and not symbols(gold_value):
        answer_value, answer_unit = unit_from_letters(answer_value)
    if is_word_of_letters(gold_value) or is_word_of_letters(answer_value):
        return gold_value == answer_value
    same, answer_value = same_values(comparer, gold_value, answer_value)
    factor = _unit_factor(comparer, gold_unit, answer_unit)
    if factor is None:
        return _by_radians(comparer, gold, answer)
    if factor != 1:
        answer_value = Multiply((Number(factor), answer_value))
    if same or _same_percents(comparer, gold_value, answer_value):
        return True
    return DEGREE in (gold_unit, answer_unit) and _by_radians(comparer, gold, answer)


def _unit_factor(comparer: Comparer, gold: Unit | None, answer: Unit | None) -> Fraction | None:
    """The factor for the answer's value before comparison; None if the units make the answer wrong."""
    if gold is not None and answer is not None and names_other_thing(gold, answer):
        return None
    gold, answer = measured(gold), measured(answer)
    if gold is None or answer is None:
        return None if comparer.options.units == "require" and gold != answer else Fraction(1)
    if gold.dimension != answer.dimension:
        partial = comparer.options.units != "require" and prices(gold, answer)
        return Fraction(1) if partial else None
    if gold.factor == answer.factor:
        return Fraction(1)
    return answer.factor / gold.factor if comparer.options.units == "convert" else None


def _by_radians(comparer: Comparer, gold: Node, answer: Node) -> bool:
    convert = comparer.options.degrees == "convert"
    return convert and comparer.values.equal(without_unit(gold), without_unit(answer))


def _same_percents(comparer: Comparer, gold: Node, answer: Node) -> bool:
    """Compare two numbers, either of which may be a percentage."""
    of_gold, gold_number = without_percent(gold)
    of_answer, answer_number = without_percent(answer)
    if comparer.options.percent == "factor":
        return _by_factor(comparer, gold_number, answer_number)
    if of_gold == of_answer:
        return comparer.values.equal(gold_number, answer_number)
    if comparer.options.percent == "require":
        return False
    if comparer.values.equal(gold, answer):
        return True
    return (
        comparer.options.percent == "either"
        and at_least_one(gold_number)
        and comparer.values.equal(gold_number, answer_number)
    )


def _by_factor(comparer: Comparer, gold: Node, answer: Node) -> bool:
    """Whether a number equals the gold; two numbers in digits may also differ by a factor of 100."""
    if comparer.values.equal(gold, answer):
        return True
    digits = all(isinstance(node.value if isinstance(node, Negate) else node, Number) for node in (gold, answer))
    factors = (Fraction(1, 100), Fraction(100)) if digits else ()
    return any(comparer.values.equal(Multiply((Number(factor), gold)), answer) for factor in factors)


def _same_antiderivatives(comparer: Comparer, gold: Node, answer: Node) -> bool:
    """Compare an indefinite integral with an antiderivative that has a constant."""
    integral, other = (gold, answer) if is_indefinite(gold) else (answer, gold)
    assert isinstance(integral, Integral)
    constant = free_constant(other) is not None
    return constant and comparer.values.identical(integral.body, Derivative(other, integral.variable))


def is_indefinite(node: Node) -> bool:
    """Whether a node is an integral without bounds."""
    return isinstance(node, Integral) and node.lower is None
