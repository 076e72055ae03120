"""Comparison of single values, with units, degrees, percentages, and constants of integration."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from functools import partial

from verifiers.math.compare.constants import free_constant, same_values
from verifiers.math.compare.context import Comparer
from verifiers.math.compare.names import is_word_of_letters
from verifiers.math.compare.shapes import is_infinite
from verifiers.math.forms import unordered
from verifiers.math.tree import (
    DOTS,
    Add,
    Apply,
    Degrees,
    Derivative,
    Divide,
    Integral,
    Multiply,
    Negate,
    Node,
    Number,
    Percent,
    Power,
    Quantity,
    Series,
    Symbol,
    bound_name,
    children,
    rewrite,
    symbols,
    walk,
)
from verifiers.math.units import CURRENCIES, UNITS, Unit
from verifiers.math.values.exact import rational_or_none, substitute
from verifiers.math.values.numeric import real_value

DEGREE = UNITS["degree"]


def split_unit(node: Node) -> tuple[Node, Unit | None]:
    """A value and its unit; degrees are a unit."""
    if isinstance(node, Negate):
        value, unit = split_unit(node.value)
        return (Negate(value), unit) if unit is not None else (node, None)
    if isinstance(node, Quantity):
        value, inner = split_unit(node.value)
        if inner is None or inner.is_label:
            return value, node.unit
        return value, replace(inner, noun=node.unit.label) if node.unit.is_label else inner
    if isinstance(node, Degrees):
        return node.value, DEGREE
    factors = node.factors if isinstance(node, Multiply) else ()
    quantities = [factor for factor in factors if isinstance(factor, Quantity)]
    if len(quantities) == 1:
        (one,) = quantities
        return Multiply(tuple(one.value if factor is one else factor for factor in factors)), one.unit
    return node, None


def unit_from_letters(node: Node) -> tuple[Node, Unit | None]:
    """Read symbols after a number as its unit: `5m`, `5 m/s`."""
    factors = node.factors if isinstance(node, Multiply) else (node,)
    if isinstance(node, Divide) and isinstance(node.numerator, Multiply):
        below = _letter_unit(node.denominator)
        value, above = unit_from_letters(node.numerator)
        return (value, above.times(below.power(-1))) if above is not None and below is not None else (node, None)
    unit = _letter_unit(factors[-1])
    if unit is None or len(factors) < 2 or any(symbols(factor) for factor in factors[:-1]):
        return node, None
    return factors[0] if len(factors) == 2 else Multiply(factors[:-1]), unit


def _letter_unit(node: Node) -> Unit | None:
    if isinstance(node, Symbol):
        return UNITS.get(node.name)
    if isinstance(node, Power) and isinstance(node.base, Symbol) and isinstance(node.exponent, Number):
        unit = UNITS.get(node.base.name)
        small = node.exponent.value in (2, 3)
        return unit.power(int(node.exponent.value)) if unit is not None and small else None
    return None


def with_plain_degrees(node: Node) -> Node:
    """Replace degrees by plain numbers, except in the arguments of functions and in exponents."""
    if not any(isinstance(subtree, Degrees) for subtree in walk(node)):
        return node

    def strip(subtree: Node) -> Node | None:
        if isinstance(subtree, Apply | Power):
            return subtree
        return with_plain_degrees(subtree.value) if isinstance(subtree, Degrees) else None

    return rewrite(node, strip)


def measured(unit: Unit | None) -> Unit | None:
    """A unit of measurement; None for a counted noun."""
    return None if unit is None or unit.is_label else unit


def without_unit(node: Node) -> Node:
    """A value without its units, but with degrees."""
    return rewrite(node, lambda subtree: without_unit(subtree.value) if isinstance(subtree, Quantity) else None)


def names_other_thing(one: Unit, two: Unit) -> bool:
    """Whether two units are incompatible: a measure and a counted noun, or nouns that name different things."""
    if one.is_general or two.is_general:
        degrees = {degree for unit in (one, two) if (degree := _length_degree(unit)) is not None}
        things = [unit for unit in (one, two) if unit.is_label and not unit.is_general]
        # An area may be given in `units`, but `units` are no area.
        raised = _length_degree(one) is None and max(degrees, default=0) > 1
        return len(degrees) > 1 or bool(things) or raised
    if one.is_label != two.is_label:
        return True
    return _nouns_differ(*((unit.label if unit.is_label else unit.noun) for unit in (one, two)))


def _nouns_differ(one: str, two: str) -> bool:
    """Whether two nouns name different things: neither noun has all the words of the other."""
    ours, theirs = (
        frozenset(word.removesuffix("s").removesuffix("'") for word in noun.partition(" of ")[0].split())
        for noun in (one, two)
    )
    return not (ours <= theirs or theirs <= ours)


def _length_degree(unit: Unit) -> int | None:
    """The power of length in a unit: 1 for a length, 2 for an area, 3 for a volume; 0 for other measures, None for a noun."""
    if unit.is_label:
        _, power, degree = unit.label.partition("^")
        return int(degree[0]) if power else None
    (name, exponent), *rest = unit.dimension
    return exponent if name == "length" and not rest else 0


def prices(one: Unit, two: Unit) -> bool:
    """Whether one of two units is a currency and the other a price in it, such as dollars per hour."""
    shared = set(one.dimension) & set(two.dimension)
    rest = set(one.dimension) ^ set(two.dimension)
    currency = len(shared) == 1 and shared <= CURRENCIES and (len(one.dimension) == 1 or len(two.dimension) == 1)
    return currency and all(degree < 0 for _, degree in rest)


def without_percent(node: Node) -> tuple[bool, Node]:
    """Whether a number is a percentage, and the number before the sign."""
    if isinstance(node, Percent):
        return True, node.value
    if isinstance(node, Negate):
        percent, value = without_percent(node.value)
        return percent, Negate(value) if percent else node
    return False, node


def at_least_one(node: Node) -> bool:
    """Whether a constant is at least one in absolute value."""
    value = None if symbols(node) else rational_or_none(node) or real_value(node)
    return value is not None and bool(abs(value) >= 1)


def same_dotted(comparer: Comparer, gold: Node, answer: Node) -> bool:
    r"""Compare sums and products with an ellipsis term by term, since the terms define it: `1+4+\\cdots+n^2`."""
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
    if _same_terms(comparer, _as_sum(gold), _as_sum(answer)):
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


def _as_sum(node: Node) -> Node:
    """A multiple of a sum over an index as the sum of the multiples; anything else unchanged."""
    factors = node.factors if isinstance(node, Multiply) else (node,)
    sums = [factor for factor in factors if isinstance(factor, Series) and factor.kind == "sum"]
    if len(sums) != 1 or len(factors) == 1:
        return node
    rest = tuple(factor for factor in factors if factor is not sums[0])
    free = all(sums[0].index not in symbols(factor) for factor in rest)
    return replace(sums[0], body=Multiply((*rest, sums[0].body))) if free else node


def _same_terms(comparer: Comparer, gold: Node, answer: Node) -> bool:
    """Whether two sums over an index have equal terms and the same ends, after a shift of the answer's index."""
    if not (isinstance(gold, Series) and isinstance(answer, Series)) or gold.kind != answer.kind:
        return False
    if gold.index != answer.index and gold.index in symbols(answer.body):
        return False
    shift = _difference(answer.lower, gold.lower)
    if shift and any(answer.index in name.partition("_")[2] for name in symbols(answer.body)):
        return False  # `a_n` is a name, in which n can't be shifted
    index = Symbol(gold.index) if shift == 0 else Add((Symbol(gold.index), Number(shift)))
    upper = answer.upper if is_infinite(answer.upper) else Add((answer.upper, Negate(Number(shift))))
    if not comparer.values.equal(gold.upper, upper) or (shift == 0 and not comparer.same(gold.lower, answer.lower)):
        return False
    return comparer.values.identical(gold.body, substitute(answer.body, answer.index, index))


def _difference(one: Node, two: Node) -> Fraction:
    """The difference of two whole numbers; 0 for other nodes."""
    values = rational_or_none(one), rational_or_none(two)
    whole = [value for value in values if value is not None and value.denominator == 1]
    return whole[0] - whole[1] if len(whole) == 2 else Fraction(0)


def _unit_factor(comparer: Comparer, gold: Unit | None, answer: Unit | None) -> Fraction | None:
    """The factor by which the answer's value is multiplied before comparison; None if the units make the answer wrong."""
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
    """Whether a number equals the gold; numbers in digits may also differ by a factor of 100, as percentages do."""
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
