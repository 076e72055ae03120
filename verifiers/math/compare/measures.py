"""Separates units, degrees and percentages from a value, and decides whether two units are compatible."""

from __future__ import annotations

from dataclasses import replace

from verifiers.math.tree import (
    Apply,
    Degrees,
    Divide,
    Multiply,
    Negate,
    Node,
    Number,
    Percent,
    Power,
    Quantity,
    Symbol,
    rewrite,
    symbols,
    walk,
)
from verifiers.math.units import CURRENCIES, UNITS, Unit
from verifiers.math.values.exact import rational_or_none
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
    """1 for a length, 2 for an area or square units, 3 for a volume; 0 for other measures, None for a noun."""
    if unit.is_label:
        _, power, degree = unit.label.partition("^")
        return int(degree[0]) if power else None
    (name, exponent), *rest = unit.dimension
    return exponent if name == "length" and not rest else 0


def prices(one: Unit, two: Unit) -> bool:
    """Whether one of two units is a currency, and the other is the same currency per something."""
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
