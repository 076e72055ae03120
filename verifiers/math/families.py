r"""Solutions with a free integer, such as `x = \frac\pi6 + 2\pi n, n \in \mathbb{Z}`, compared as sets.

A family is `a + p n` for every integer n: the numbers that leave the rest `a` modulo `p`. Several of them, given by the members
of a list or the signs of a plus-minus, are one set. Two such sets are equal when they leave the same rests modulo a common
multiple of all periods, whatever the free integer is called, wherever it starts and however the set is divided into families.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from verifiers.math.exact import NotExactError, UndefinedError, signed_number, substitute
from verifiers.math.forms import shared_label, solved
from verifiers.math.numeric import FILTER_DIGITS, estimate
from verifiers.math.tree import Add, ListOf, Multiply, NamedSet, Negate, Node, Number, Relation, Symbol, symbols
from verifiers.math.values import Values

MAX_RESTS = 120
"""Most rests of one set."""
_MAX_RATIO = 1000  # of two periods, as a fraction
_FREE_INTEGERS = frozenset("nmkjlpqNMKt")
"""Letters that are free integers without being said to be, in an answer to a gold that has one."""


@dataclass(frozen=True, slots=True)
class Families:
    """Numbers given by expressions in a free integer, perhaps as values of a name."""

    label: str | None
    integer: str
    members: tuple[Node, ...]


def families(node: Node, *, said: bool = True) -> Families | None:
    r"""Read a list as families; None for anything else.

    Args:
        node: The list, or one expression.
        said: Whether the free integer has to be said to be one, by a last item such as `n \\in \\mathbb{Z}`.
    """
    items = node.items if isinstance(node, ListOf) else (node,)
    condition = items[-1]
    integer: str | None = None
    if isinstance(condition, Relation) and condition.operators == ("in",) and condition.operands[1] == NamedSet("Z"):
        items = items[:-1]
        integer = condition.operands[0].name if isinstance(condition.operands[0], Symbol) else None
    elif said:
        return None
    label = shared_label(items) if items else None
    members = tuple(solved(item)[1] if label and isinstance(item, Relation) else item for item in items)
    if not members or any(isinstance(member, Relation | ListOf) for member in members):
        return None
    names = {name for member in members for name in symbols(member)}
    if integer is None and not said and len(names) == 1:
        integer = next(iter(names & _FREE_INTEGERS), None)
    return Families(label, integer, members) if integer is not None and names == {integer} else None


def same_families(gold: Families, answer: Families, values: Values) -> bool | None:
    """Whether two sets of numbers are equal; None where the members are not linear, or too many.

    Raises:
        GoldError: As for `Values.identical`.
        UndecidedError: As for `Values.identical`.
    """
    ours, theirs = (_progressions(each, values) for each in (gold, answer))
    if ours is None or theirs is None:
        return None
    unit = ours[0][1]
    ratios = [[_ratio(period, unit, values) for _, period in each] for each in (ours, theirs)]
    common = _common_multiple([ratio for row in ratios for ratio in row])
    if common is None:
        return None
    rests = [_rests(each, row, common) for each, row in zip((ours, theirs), ratios, strict=True)]
    if any(row is None for row in rests):
        return None
    modulus = Multiply((Number(common), unit))
    one, two = (row or [] for row in rests)
    return all(_among(rest, two, modulus, values) for rest in one) and all(
        _among(rest, one, modulus, values) for rest in two
    )


def _progressions(each: Families, values: Values) -> list[tuple[Node, Node]] | None:
    """First member and period of each family; None if one is not linear in the integer, or constant."""
    found: list[tuple[Node, Node]] = []
    for member in each.members:
        zero, one, two = (substitute(member, each.integer, signed_number(number)) for number in range(3))
        period = Add((one, Negate(zero)))
        if not values.identical(period, Add((two, Negate(one)))) or values.identical(period, Number(Fraction(0))):
            return None
        found.append((zero, period))
    return found


def _ratio(period: Node, unit: Node, values: Values) -> Fraction | None:
    """The quotient of two periods, without its sign, where it is a small fraction."""
    approximate = _approximate(period), _approximate(unit)
    if approximate[0] is None or not approximate[1]:
        return None
    ratio = Fraction(approximate[0] / approximate[1]).limit_denominator(_MAX_RATIO)
    scaled = Multiply((Number(abs(ratio)), unit))
    scaled_node: Node = scaled if ratio > 0 else Negate(scaled)
    return abs(ratio) if ratio and values.identical(period, scaled_node) else None


def _approximate(node: Node) -> float | None:
    try:
        value = estimate(node, FILTER_DIGITS).value
    except (NotExactError, UndefinedError):
        return None
    return float(value.real) if value.imag == 0 else None


def _common_multiple(ratios: list[Fraction | None]) -> Fraction | None:
    known = [ratio for ratio in ratios if ratio is not None]
    if len(known) != len(ratios):
        return None
    top = math.lcm(*(ratio.numerator for ratio in known))
    return Fraction(top, math.gcd(*(ratio.denominator for ratio in known)))


def _rests(each: list[tuple[Node, Node]], ratios: list[Fraction | None], common: Fraction) -> list[Node] | None:
    """One member of each family for each rest modulo the common multiple; None if there are too many."""
    counts = [int(common / ratio) for ratio in ratios if ratio is not None]
    if sum(counts) > MAX_RESTS:
        return None
    return [
        Add((start, Multiply((Number(Fraction(times)), period))))
        for (start, period), count in zip(each, counts, strict=True)
        for times in range(count)
    ]


def _among(rest: Node, others: list[Node], modulus: Node, values: Values) -> bool:
    """Whether a number differs from one of the others by a multiple of the modulus."""
    size = _approximate(modulus)
    for other in others:
        distance = _approximate(Add((rest, Negate(other))))
        if distance is None or not size:
            return False
        times = round(distance / size)
        if abs(distance / size - times) < 1e-9:
            return values.identical(rest, Add((other, Multiply((signed_number(times), modulus)))))
    return False
