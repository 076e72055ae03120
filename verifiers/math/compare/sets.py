r"""Comparison of regions: sets of real numbers in a normal form, and sets whose ends are not constants.

The normal form consists of the points at which a set begins and ends, from left to right. `(-inf, 3) U (3, inf)`, `x != 3` and
`R \\ {3}` all become the same marks.
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from verifiers.math.compare.collections import joined_otherwise, same_tuples
from verifiers.math.compare.context import Comparer
from verifiers.math.compare.names import label, without_labels
from verifiers.math.compare.relations import FLIPPED, reversed_chain, same_inequalities
from verifiers.math.compare.shapes import INEQUALITIES, integer_parameter, is_interval, is_set_builder
from verifiers.math.forms import unordered
from verifiers.math.tree import (
    Add,
    Apply,
    Bracketed,
    Choice,
    Constant,
    ListOf,
    Matrix,
    NamedSet,
    Negate,
    Node,
    Relation,
    SetOf,
    SetOperation,
    SetSeries,
    Symbol,
    Unknown,
    Words,
    symbols,
    walk,
)
from verifiers.math.values.exact import rational_or_none, signed_number, substitute
from verifiers.math.values.numeric import real_value

MAX_ENDS = 200
_INFINITY = Constant("inf")


@dataclass(frozen=True, slots=True)
class End:
    """An end of an interval: a real constant with its approximate value, or an infinity."""

    node: Node
    value: Any
    """The value to 50 digits; a float for an infinity."""

    def before(self, other: End) -> bool:
        """Whether this end is strictly left of another, by more than the error of their values."""
        return bool(self.value < other.value) and not self.meets(other)

    def meets(self, other: End) -> bool:
        """Whether two ends agree to the precision of their values."""
        if isinstance(self.value, float) or isinstance(other.value, float):
            return bool(self.value == other.value)
        size = max(abs(self.value), abs(other.value), 1)
        return bool(abs(self.value - other.value) * 10**25 <= size)


LEFT, RIGHT = End(Negate(_INFINITY), float("-inf")), End(_INFINITY, float("inf"))


@dataclass(frozen=True, slots=True)
class EndMark:
    """A point at which a set begins or ends, and whether the set contains this point and the numbers up to the next mark."""

    end: End
    at: bool
    after: bool


@dataclass(frozen=True, slots=True)
class RealSet:
    """The marks of a set from left to right, without redundant marks, and the set's variable."""

    marks: tuple[EndMark, ...]
    variable: str | None = None

    def combined(self, operation: str, other: RealSet) -> RealSet:
        """The union with, intersection with or difference from another set."""
        decide = _OPERATIONS[operation]
        marks: list[EndMark] = []
        inside, others_inside, last = False, False, False
        for end in _ends(self, other):
            (at, inside), (others_at, others_inside) = self._state(end, inside), other._state(end, others_inside)
            mark = EndMark(end, decide(at, others_at), decide(inside, others_inside))
            if not mark.at == mark.after == last:
                marks.append(mark)
            last = mark.after
        return RealSet(tuple(marks), self.variable or other.variable)

    def _state(self, end: End, inside: bool) -> tuple[bool, bool]:
        """Whether the set contains an end and the numbers after it, given whether it contains the numbers before."""
        mark = next((mark for mark in self.marks if mark.end.meets(end)), None)
        return (inside, inside) if mark is None else (mark.at, mark.after)

    def holds(self, value: Fraction) -> bool:
        """Whether a number is in this set, whose ends must be rational.

        Raises:
            NoSetError: If an end is not rational.
        """
        inside = False
        for mark in self.marks:
            end = rational_or_none(mark.end.node)
            if end is None:
                raise NoSetError("an endpoint that is not rational")
            if value <= end:
                return mark.at if value == end else inside
            inside = mark.after
        return inside


_OPERATIONS: dict[str, Callable[[bool, bool], bool]] = {
    "union": operator.or_,
    "intersection": operator.and_,
    "difference": operator.gt,
}
_EMPTY, _REALS = RealSet(()), RealSet((EndMark(LEFT, False, True), EndMark(RIGHT, False, False)))
_NAMED = {"R": _REALS, "empty": _EMPTY}


def _ends(one: RealSet, two: RealSet) -> list[End]:
    """The ends of two sets from left to right, each once."""
    ends: list[End] = []
    for mark in sorted((*one.marks, *two.marks), key=lambda mark: mark.end.value):
        if not (ends and ends[-1].meets(mark.end)):
            ends.append(mark.end)
    if len(ends) > MAX_ENDS:
        raise NoSetError(f"more than {MAX_ENDS} ends")
    return ends


class NoSetError(ValueError):
    """A tree does not describe a set of real numbers with constant ends."""


def real_set(node: Node) -> RealSet:
    """Read a tree as a set of real numbers.

    Raises:
        NoSetError: If the tree does not describe such a set.
    """
    if isinstance(node, NamedSet) and node.name in _NAMED:
        return _NAMED[node.name]
    if isinstance(node, SetOf) and len(node.items) == 1 and isinstance(node.items[0], Relation):
        if any(isinstance(subtree, Unknown) for subtree in walk(node)):
            raise NoSetError("a condition on the value of a function")
        return real_set(node.items[0])
    if isinstance(node, SetOf):
        return _union([_point(end) for end in map(_end, node.items[: MAX_ENDS + 1])])
    if isinstance(node, Bracketed) and len(node.items) == 2 and node.opening in "([" and node.closing in ")]":
        written = _interval(_end(node.items[0]), node.opening == "[", _end(node.items[1]), node.closing == "]")
        if not written.marks:  # nobody writes the empty set like this: (1,1) is a pair
            raise NoSetError("an empty interval")
        return written
    if isinstance(node, SetOperation):
        return real_set(node.left).combined(node.kind, real_set(node.right))
    if isinstance(node, Relation):
        return _solutions(node)
    if isinstance(node, ListOf) and node.joiner != "or" and any(map(_is_integrality, node.items)):
        return _integers([item for item in node.items if not _is_integrality(item)])
    if isinstance(node, ListOf) and all(isinstance(item, Relation | NamedSet) for item in node.items):
        return _listed([real_set(item) for item in node.items], node.joiner)
    raise NoSetError(type(node).__name__)


def _end(node: Node) -> End:
    if node == _INFINITY:
        return RIGHT
    if node == LEFT.node:
        return LEFT
    if symbols(node):
        raise NoSetError("an endpoint that depends on a symbol")
    value = real_value(node)
    if value is None:
        raise NoSetError("an endpoint that is not a real number")
    return End(node, value)


def _interval(low: End, closed_low: bool, high: End, closed_high: bool) -> RealSet:
    """An interval; its ends must be in order, and infinite ends open."""
    if high.before(low) or (closed_low and low is LEFT) or (closed_high and high is RIGHT):
        raise NoSetError("an interval with its endpoints in the wrong order, or one that includes infinity")
    if low.meets(high):
        return _point(low) if closed_low and closed_high else _EMPTY
    return RealSet((EndMark(low, closed_low, True), EndMark(high, closed_high, False)))


def _point(end: End) -> RealSet:
    return RealSet((EndMark(end, True, False),))


def _solutions(node: Relation) -> RealSet:
    """The values of a single variable that satisfy a chain of inequalities or are in a set."""
    if node.operators == ("in",) and isinstance(node.operands[0], Symbol):
        inside = real_set(node.operands[1])
        return RealSet(inside.marks, node.operands[0].name)
    if (within := _absolute(node)) is not None:
        return within
    indices = [index for index, operand in enumerate(node.operands) if isinstance(operand, Symbol | Unknown)]
    if len(indices) != 1 or not INEQUALITIES | {"="} >= {*node.operators}:
        raise NoSetError("no inequality in one variable")
    index = indices[0]
    variable = node.operands[index]
    assert isinstance(variable, Symbol | Unknown)
    region = _REALS
    if index > 0:
        before = _half_line(FLIPPED[node.operators[index - 1]], _end(node.operands[index - 1]))
        region = region.combined("intersection", before)
    if index < len(node.operators):
        region = region.combined("intersection", _half_line(node.operators[index], _end(node.operands[index + 1])))
    if index > 1 or index + 2 < len(node.operands):
        raise NoSetError("a chain longer than two inequalities")
    return RealSet(region.marks, label(variable))


def _absolute(node: Relation) -> RealSet | None:
    """The solutions of an inequality between the absolute value of a variable and a constant."""
    operators, operands = node.operators, node.operands
    inside = operands[0].arguments[0] if isinstance(operands[0], Apply) and operands[0].name == "abs" else None
    if len(operands) != 2 or not isinstance(inside, Symbol) or operators[0] not in ("<", "<=", ">", ">="):
        return None
    end = operands[1]
    if operators[0] in ("<", "<="):
        return _solutions(Relation(operators * 2, (Negate(end), inside, end)))
    sides = [_solutions(Relation(operators, (inside, end))), _solutions(Relation(operators, (Negate(end), inside)))]
    return _union(sides)


def _half_line(sign: str, end: End) -> RealSet:
    """The numbers that are in a given relation to an end."""
    if sign == "!=":
        return _REALS.combined("difference", _point(end))
    if sign == "=":
        return _point(end)
    if sign in (">", ">="):
        return _interval(end, sign == ">=", RIGHT, False)
    return _interval(LEFT, False, end, sign == "<=")


def _is_integrality(node: Node) -> bool:
    """Whether a condition states that a variable is an integer."""
    return isinstance(node, Relation) and node.operators == ("in",) and node.operands[1] == NamedSet("Z")


def _integers(conditions: list[Node]) -> RealSet:
    """The integers between rational bounds, as points."""
    if not conditions:
        raise NoSetError("all integers")
    within = real_set(ListOf(tuple(conditions), "and"))
    ends = [rational_or_none(mark.end.node) for mark in within.marks] or [Fraction(0)]
    if ends[0] is None or ends[-1] is None or ends[-1] - ends[0] > MAX_ENDS:
        raise NoSetError("integers without rational bounds, or too many")
    candidates = range(math.ceil(ends[0]), math.floor(ends[-1]) + 1)
    points = [_point(_end(signed_number(number))) for number in candidates if within.holds(Fraction(number))]
    return RealSet(_union(points).marks, within.variable)


def _listed(sets: list[RealSet], joiner: str) -> RealSet:
    """Conditions joined by words; a comma means `and` if the result is not empty, else `or`."""
    variables = {condition.variable for condition in sets if condition.variable is not None}
    if len(variables) > 1:
        raise NoSetError("conditions on several variables")
    if joiner == "or":
        return _union(sets)
    common = functools.reduce(lambda one, two: one.combined("intersection", two), sets)
    return common if common.marks or joiner == "and" else _union(sets)


def _union(sets: list[RealSet]) -> RealSet:
    return functools.reduce(lambda one, two: one.combined("union", two), sets, _EMPTY)


_SHIFTS = (0, 1, -1, 2, -2)
"""The shifts that are tried between two indices over all integers."""


def same_sets(comparer: Comparer, gold: Node, answer: Node) -> bool:
    """Compare sets by their ends if these are real constants, and other sets by their shape."""
    try:
        ours, theirs = real_set(as_set(gold)), real_set(as_set(answer))
    except NoSetError:
        return _same_other_sets(comparer, gold, answer)
    bound = is_set_builder(gold) or is_set_builder(answer)
    if not bound and ours.variable and theirs.variable and ours.variable != theirs.variable:
        return False
    return len(ours.marks) == len(theirs.marks) and all(
        one.after == two.after
        and (one.at == two.at or comparer.options.brackets == "lenient")
        and comparer.values.equal(one.end.node, two.end.node)
        for one, two in zip(ours.marks, theirs.marks, strict=True)
    )


def same_set_series(comparer: Comparer, gold: Node, answer: Node) -> bool:
    """Compare unions and intersections over an index, which may start anywhere if it takes all integers."""
    if unordered(gold) == unordered(answer):
        return True
    if not (isinstance(gold, SetSeries) and isinstance(answer, SetSeries)) or gold.kind != answer.kind:
        return False
    if not all(comparer.same(*ends) for ends in ((gold.lower, answer.lower), (gold.upper, answer.upper))):
        return False
    index = Symbol(gold.index)
    if gold.index != answer.index and gold.index in symbols(answer.body):
        return False
    shifts = _SHIFTS if gold.lower == Negate(_INFINITY) and gold.upper == _INFINITY else (0,)
    return any(
        comparer.same(gold.body, substitute(answer.body, answer.index, Add((index, signed_number(shift)))))
        for shift in shifts
    )


def as_set_series(node: Node) -> Node:
    r"""A set for every integer, as in `(2k,2k+1), k \in \mathbb{Z}`, as the union of these sets."""
    name = integer_parameter(node)
    if name is None or not isinstance(node, ListOf) or len(node.items) != 2:
        return node
    return SetSeries("union", name, Negate(_INFINITY), _INFINITY, node.items[0])


def as_set(node: Node) -> Node:
    """Read one or several numbers as a set, and intervals joined by a word as their union."""
    if isinstance(node, ListOf):
        node = ListOf(without_labels(node.items), node.joiner)
        if all(isinstance(item, Bracketed) for item in node.items) and node.joiner in ("or", "and"):
            union = node.items[0]
            for item in node.items[1:]:
                union = SetOperation("union", union, item)
            return union
        if not any(isinstance(item, Relation | NamedSet | Bracketed) for item in node.items):
            return SetOf(node.items)
    if isinstance(node, ListOf | SetOf | Relation | Bracketed | SetOperation | NamedSet | Matrix | Words | Choice):
        return node
    return SetOf((node,))


def _same_other_sets(comparer: Comparer, gold: Node, answer: Node) -> bool:
    """Compare sets whose ends are not real constants: symbolic ends, tuples, chains of inequalities."""
    if isinstance(gold, Relation) and isinstance(answer, Relation):
        return same_inequalities(comparer, gold, answer)
    if isinstance(gold, Bracketed) != isinstance(answer, Bracketed):
        gold, answer = between(gold), between(answer)
        intervals = all(isinstance(node, Bracketed) and is_interval(node) for node in (gold, answer))
        return intervals and same_tuples(comparer, gold, answer)
    if isinstance(gold, SetOperation) and isinstance(answer, SetOperation) and gold.kind == answer.kind:
        return (comparer.same(gold.left, answer.left) and comparer.same(gold.right, answer.right)) or (
            gold.kind != "difference"
            and comparer.same(gold.left, answer.right)
            and comparer.same(gold.right, answer.left)
        )
    if isinstance(gold, ListOf | SetOf) and isinstance(answer, ListOf | SetOf) and not joined_otherwise(gold, answer):
        return comparer.unordered(gold.items, answer.items)
    return False


def between(node: Node) -> Node:
    """A chain of two inequalities around a symbol as an interval."""
    if not (isinstance(node, Relation) and len(node.operands) == 3 and isinstance(node.operands[1], Symbol)):
        return node
    operators, operands = node.operators, node.operands
    if set(operators) <= {">", ">="}:
        return between(Relation(*reversed_chain(node)))
    if not set(operators) <= {"<", "<="}:
        return node
    opening, closing = "[" if operators[0] == "<=" else "(", "]" if operators[1] == "<=" else ")"
    return Bracketed(opening, (operands[0], operands[2]), closing)
