r"""Sets of real numbers in a canonical form: intervals and points, merged and sorted.

`(-inf, 3) U (3, inf)`, `x != 3` and `R \\ {3}` all become the same pieces.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from verifiers.math.exact import rational_or_none, signed_number
from verifiers.math.numeric import real_value
from verifiers.math.tree import (
    Apply,
    Bracketed,
    Constant,
    ListOf,
    NamedSet,
    Negate,
    Node,
    Relation,
    SetOf,
    SetOperation,
    Symbol,
    Unknown,
    symbols,
)

MAX_PIECES = 100
_FLIPPED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "!=": "!=", "=": "="}
_INFINITY = Constant("inf")


@dataclass(frozen=True, slots=True)
class End:
    """An end of an interval: a real constant with its approximate value, or an infinity."""

    node: Node
    value: Any
    """The value to 50 digits; a float for an infinity."""

    def before(self, other: End) -> bool:
        """Whether this end lies strictly left of another, by more than the error of their values."""
        return bool(self.value < other.value) and not self.meets(other)

    def meets(self, other: End) -> bool:
        """Whether two ends agree to the precision of their values."""
        if isinstance(self.value, float) or isinstance(other.value, float):
            return bool(self.value == other.value)
        size = max(abs(self.value), abs(other.value), 1)
        return bool(abs(self.value - other.value) * 10**25 <= size)


LEFT, RIGHT = End(Negate(_INFINITY), float("-inf")), End(_INFINITY, float("inf"))


@dataclass(frozen=True, slots=True)
class Piece:
    """An interval that is not empty; a point where both ends meet."""

    low: End
    closed_low: bool
    high: End
    closed_high: bool


@dataclass(frozen=True, slots=True)
class RealSet:
    """Disjoint pieces from left to right, none of which touches the next, and the variable they were said of."""

    pieces: tuple[Piece, ...]
    variable: str | None = None


class NoSetError(ValueError):
    """A tree that describes no set of real numbers with constant ends."""


def real_set(node: Node) -> RealSet:
    """Read a tree as a set of real numbers.

    Raises:
        NoSetError: If it is none.
    """
    if isinstance(node, NamedSet):
        return _named(node)
    if isinstance(node, SetOf) and len(node.items) == 1 and isinstance(node.items[0], Relation):
        return real_set(node.items[0])
    if isinstance(node, SetOf):
        return _union([RealSet((Piece(end, True, end, True),)) for end in map(_end, node.items)])
    if isinstance(node, Bracketed) and len(node.items) == 2 and node.opening in "([" and node.closing in ")]":
        written = _interval(_end(node.items[0]), node.opening == "[", _end(node.items[1]), node.closing == "]")
        if not written.pieces:  # nobody writes the empty set like this: (1,1) is a pair
            raise NoSetError("an interval that holds nothing")
        return written
    if isinstance(node, SetOperation):
        return _operation(node.kind, real_set(node.left), real_set(node.right))
    if isinstance(node, Relation):
        return _solutions(node)
    if isinstance(node, ListOf) and node.joiner != "or" and any(map(_is_integrality, node.items)):
        return _integers([item for item in node.items if not _is_integrality(item)])
    if isinstance(node, ListOf) and all(isinstance(item, Relation | NamedSet) for item in node.items):
        return _listed([real_set(item) for item in node.items], node.joiner)
    raise NoSetError(type(node).__name__)


def _named(node: NamedSet) -> RealSet:
    if node.name == "R":
        return RealSet((Piece(LEFT, False, RIGHT, False),))
    if node.name == "empty":
        return RealSet(())
    raise NoSetError(node.name)


def _end(node: Node) -> End:
    if node == _INFINITY:
        return RIGHT
    if node == LEFT.node:
        return LEFT
    if symbols(node):
        raise NoSetError("an end that depends on a symbol")
    value = real_value(node)
    if value is None:
        raise NoSetError("an end that is no real number")
    return End(node, value)


def _interval(low: End, closed_low: bool, high: End, closed_high: bool) -> RealSet:
    """An interval; none has its ends in the wrong order, and infinities are never reached."""
    if high.before(low) or (closed_low and low is LEFT) or (closed_high and high is RIGHT):
        raise NoSetError("an interval with its ends in the wrong order, or one that reaches infinity")
    if low.meets(high) and not (closed_low and closed_high):
        return RealSet(())
    return RealSet((Piece(low, closed_low, high, closed_high),))


def _solutions(node: Relation) -> RealSet:
    """The values of the one variable that satisfy a chain of inequalities, or lie in a set."""
    if node.operators == ("in",) and isinstance(node.operands[0], Symbol):
        inside = real_set(node.operands[1])
        return RealSet(inside.pieces, node.operands[0].name)
    if (within := _absolute(node)) is not None:
        return within
    places = [place for place, operand in enumerate(node.operands) if isinstance(operand, Symbol | Unknown)]
    if len(places) != 1 or any(operator not in _FLIPPED for operator in node.operators):
        raise NoSetError("no inequality in one variable")
    place = places[0]
    variable = node.operands[place]
    assert isinstance(variable, Symbol | Unknown)
    found = RealSet((Piece(LEFT, False, RIGHT, False),))
    if place > 0:
        found = _operation(
            "intersection", found, _half_line(_FLIPPED[node.operators[place - 1]], _end(node.operands[place - 1]))
        )
    if place < len(node.operators):
        found = _operation("intersection", found, _half_line(node.operators[place], _end(node.operands[place + 1])))
    if place > 1 or place + 2 < len(node.operands):
        raise NoSetError("a chain longer than two inequalities")
    return RealSet(found.pieces, variable.name)


def _absolute(node: Relation) -> RealSet | None:
    """The solutions of an inequality between the absolute value of a variable and a constant."""
    operators, operands = node.operators, node.operands
    if len(operands) == 2 and isinstance(operands[1], Apply) and operands[1].name == "abs" and operators[0] in _FLIPPED:
        operators, operands = (_FLIPPED[operators[0]],), operands[::-1]
    inside = operands[0].arguments[0] if isinstance(operands[0], Apply) and operands[0].name == "abs" else None
    if len(operands) != 2 or not isinstance(inside, Symbol) or operators[0] not in ("<", "<=", ">", ">="):
        return None
    end = operands[1]
    if operators[0] in ("<", "<="):
        return _solutions(Relation(operators * 2, (Negate(end), inside, end)))
    sides = [_solutions(Relation(operators, (inside, end))), _solutions(Relation(operators, (Negate(end), inside)))]
    return _union(sides)


def _half_line(operator: str, end: End) -> RealSet:
    """The numbers that stand in a relation to an end."""
    if operator == "!=":
        return RealSet((Piece(LEFT, False, end, False), Piece(end, False, RIGHT, False)))
    if operator == "=":
        return RealSet((Piece(end, True, end, True),))
    if operator in (">", ">="):
        return _interval(end, operator == ">=", RIGHT, False)
    return _interval(LEFT, False, end, operator == "<=")


def _is_integrality(node: Node) -> bool:
    """Whether a condition says that a variable is an integer."""
    return isinstance(node, Relation) and node.operators == ("in",) and node.operands[1] == NamedSet("Z")


def _integers(conditions: list[Node]) -> RealSet:
    """The integers between rational bounds, as points."""
    if not conditions:
        raise NoSetError("all integers")
    within = real_set(ListOf(tuple(conditions), "and"))
    points: list[int] = []
    for piece in within.pieces:
        low, high = rational_or_none(piece.low.node), rational_or_none(piece.high.node)
        if low is None or high is None:
            raise NoSetError("integers without rational bounds")
        first = math.ceil(low) if piece.closed_low else math.floor(low) + 1
        last = math.floor(high) if piece.closed_high else math.ceil(high) - 1
        if last - first >= MAX_PIECES - len(points):
            raise NoSetError("too many integers")
        points += range(first, last + 1)
    ends = [_end(signed_number(point)) for point in points]
    return RealSet(tuple(Piece(end, True, end, True) for end in ends), within.variable)


def _listed(sets: list[RealSet], joiner: str) -> RealSet:
    """Conditions joined by words; a comma means `and` where that leaves anything, else `or`."""
    variables = {found.variable for found in sets if found.variable is not None}
    if len(variables) > 1:
        raise NoSetError("conditions on several variables")
    if joiner == "or":
        return _union(sets)
    common = sets[0]
    for found in sets[1:]:
        common = _operation("intersection", common, found)
    return common if common.pieces or joiner == "and" else _union(sets)


def _union(sets: list[RealSet]) -> RealSet:
    variable = next((found.variable for found in sets if found.variable is not None), None)
    return RealSet(_merged([piece for found in sets for piece in found.pieces]), variable)


def _merged(pieces: list[Piece]) -> tuple[Piece, ...]:
    if len(pieces) > MAX_PIECES:
        raise NoSetError(f"more than {MAX_PIECES} pieces")
    merged: list[Piece] = []
    for piece in sorted(pieces, key=lambda piece: (piece.low.value, not piece.closed_low)):
        if merged and _touch(merged[-1], piece):
            merged[-1] = _joined(merged[-1], piece)
        else:
            merged.append(piece)
    return tuple(merged)


def _touch(left: Piece, right: Piece) -> bool:
    if left.high.meets(right.low):
        return left.closed_high or right.closed_low
    return right.low.before(left.high)


def _joined(left: Piece, right: Piece) -> Piece:
    closed_low = left.closed_low or (left.low.meets(right.low) and right.closed_low)
    if left.high.meets(right.high):
        return Piece(left.low, closed_low, left.high, left.closed_high or right.closed_high)
    last = left if right.high.before(left.high) else right
    return Piece(left.low, closed_low, last.high, last.closed_high)


def _operation(kind: str, left: RealSet, right: RealSet) -> RealSet:
    variable = left.variable or right.variable
    if kind == "union":
        return RealSet(_merged([*left.pieces, *right.pieces]), variable)
    other = right.pieces if kind == "intersection" else _complement(right.pieces)
    pieces = [common for one in left.pieces for two in other if (common := _common(one, two)) is not None]
    return RealSet(_merged(pieces), variable)


def _complement(pieces: tuple[Piece, ...]) -> tuple[Piece, ...]:
    gaps: list[Piece] = []
    low, closed = LEFT, False
    for piece in pieces:
        gap = _interval_or_none(low, closed, piece.low, not piece.closed_low)
        gaps += [gap] if gap is not None else []
        low, closed = piece.high, not piece.closed_high
    gap = _interval_or_none(low, closed, RIGHT, False)
    return (*gaps, gap) if gap is not None else tuple(gaps)


def _interval_or_none(low: End, closed_low: bool, high: End, closed_high: bool) -> Piece | None:
    if high.before(low) or (low.meets(high) and (isinstance(low.value, float) or not (closed_low and closed_high))):
        return None
    return Piece(low, closed_low and low is not LEFT, high, closed_high and high is not RIGHT)


def _common(one: Piece, two: Piece) -> Piece | None:
    low, closed_low = _inner((one.low, one.closed_low), (two.low, two.closed_low), rightmost=True)
    high, closed_high = _inner((one.high, one.closed_high), (two.high, two.closed_high), rightmost=False)
    return _interval_or_none(low, closed_low, high, closed_high)


def _inner(one: tuple[End, bool], two: tuple[End, bool], *, rightmost: bool) -> tuple[End, bool]:
    if one[0].meets(two[0]):
        return one[0], one[1] and two[1]
    return one if two[0].before(one[0]) == rightmost else two
