r"""Solutions with free numbers, such as `x = \frac\pi6 + 2\pi n, n \in \mathbb{Z}`, compared as sets.

A family is `a + p n` for every integer n, where a and p are numbers or points. Residues are families, and so are the even and
the odd members of an expression that alternates. Solutions with free real numbers are a flat, and so is a span. Several
families, given by the items of a list or the signs of a plus-minus, form one set. Two such sets are equal if each contains the
families of the other, whatever the name and the start of the free integer, and however the set is divided into families.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from verifiers.math.compare.assigned import assignments
from verifiers.math.compare.flats import flat, same_flats
from verifiers.math.compare.names import label, names_agree, solved
from verifiers.math.compare.plain import INTEGER_PARAMETERS, REAL_PARAMETERS, plain
from verifiers.math.compare.shapes import bracket_kind, items, parameter, vector_entries
from verifiers.math.tree import (
    Add,
    Bracketed,
    Constant,
    Degrees,
    ListOf,
    Matrix,
    Multiply,
    NamedSet,
    Negate,
    Node,
    Number,
    Relation,
    SetOf,
    Symbol,
    Unknown,
    symbols,
    walk,
)
from verifiers.math.values.exact import rational_or_none, signed_number, substitute
from verifiers.math.values.numeric import real_value
from verifiers.math.values.tiers import GoldError, ValueComparer

MAX_MEMBERS = 24
"""Maximum number of families of one set."""
MAX_RATIO = 100
"""Maximum denominator of the quotient of two periods, and maximum number of points after which membership in other families
must repeat.
"""
_NEAR = 1e-9
"""Maximum distance of an index from an integer at which points are still compared exactly."""
_FREE_INTEGERS = INTEGER_PARAMETERS | {"t"}
"""Letters that are free integers even without a declaration, in an answer to a gold that has a declaration."""
_PARAMETERS = REAL_PARAMETERS | {"k"}
"""Letters that are free real numbers even without a declaration, in the points of a gold."""
_ZERO, _ONE, _PI = Number(Fraction(0)), Number(Fraction(1)), Constant("pi")
Point = tuple[Node, ...]
"""Coordinates; a number has one coordinate."""


@dataclass(frozen=True, slots=True)
class Families:
    """Points given by expressions in free numbers, possibly as values of names."""

    names: tuple[str, ...]
    """The name of each coordinate, in alphabetical order; empty if there is none."""
    free: tuple[str, ...]
    """The free integer, or the free real numbers, of the expressions."""
    members: tuple[Point, ...]
    real: bool = False


def families(
    node: Node, gold: Families | None = None, *, given: Callable[[Node], bool], flats: bool = False
) -> Families | None:
    r"""Read a list as families; None if it is not one.

    Args:
        node: The list, or one expression.
        gold: For an answer, the gold. With it, real numbers and the integer of a family of numbers may be free without a
            declaration such as `n \\in \\mathbb{Z}`.
        given: Returns whether a symbol occurs in the prompt. Such a symbol is free only if it is declared.
        flats: Whether the prompt asks for a line or the like, so that a parameter is an arbitrary real number.
    """
    if isinstance(node, Unknown) and node.name == "span":
        return _span(items(node.arguments[0]) if len(node.arguments) == 1 else node.arguments)
    listed, joiner, free, domain = _declaration(node)
    if (residues := _residues(listed, joiner)) is not None:
        return residues
    integer, real = domain == NamedSet("Z"), domain == NamedSet("R")
    angle = gold is None and _states_angle(listed[0])
    points = _points(listed, joiner) if integer or real or (not free and (gold or flats or angle)) else None
    if points is None:
        return None
    names, members = points
    used = frozenset(name for member in members for node in member for name in symbols(node))
    if not free and gold is not None:  # for points, integers must be declared: the points may be a whole line
        real = gold.real
        free = used if real else used & _FREE_INTEGERS if len(members[0]) == 1 else frozenset()
    elif not free and angle:
        free = frozenset(name for name in used & INTEGER_PARAMETERS if not given(Symbol(name)))
    elif not free and flats and 0 < len(used) < 3 and (names or len(members[0]) > 2):  # two may be an interval
        real, free = True, frozenset(name for name in used & _PARAMETERS if not given(Symbol(name)))
    line = not real or len(members) == 1 < len(members[0])
    return Families(names, tuple(sorted(free)), members, real) if free and used == free and line else None


def _states_angle(item: Node) -> bool:
    r"""Whether an equation gives an unknown in radians or degrees: `x=2\\pi k` is a family even without a declaration."""
    name = (solved(item)[0] if isinstance(item, Relation) and len(item.operands) == 2 else None) or ""
    return name.isalpha() and name.islower() and any(isinstance(leaf, Degrees) or leaf == _PI for leaf in walk(item))


def _declaration(node: Node) -> tuple[tuple[Node, ...], str, frozenset[str], Node | None]:
    """Split a declaration of free numbers off a list: the items before it, their joiner, the numbers, and their set."""
    if isinstance(node, Bracketed) and node.opening == "{":
        node = ListOf(node.items, "and")
    items, joiner = (node.items, node.joiner) if isinstance(node, ListOf) else ((node,), ",")
    if (declared := parameter(node)) is None:
        return items, joiner, frozenset(), None
    items, free = items[:-1], {declared[0]}
    while declared[1] == NamedSet("R") and len(items) > 1 and isinstance(items[-1], Symbol):
        free.add(items[-1].name)
        items = items[:-1]
    return items, joiner, frozenset(free), declared[1]


def _points(items: tuple[Node, ...], joiner: str) -> tuple[tuple[str, ...], tuple[Point, ...]] | None:
    """Points of equal dimension and their common names, if all named points, including the first, have the same names."""
    together = assignments(ListOf(items, joiner)) if len(items) > 1 else None
    points = [_point(item) for item in items] if together is None else [_by_name(together.equations)]
    stated, members = {names for names, _ in points} - {()}, tuple(member for _, member in points)
    read = not any(isinstance(node, _CONTAINERS) for member in members for node in member)
    alike = len({*map(len, members)}) == 1 and len(stated) < 2 and (not stated or points[0][0] != ())
    return (points[0][0], members) if read and alike else None


_CONTAINERS = Relation | ListOf | SetOf | Bracketed | Matrix


def _by_name(equations: dict[str, Relation]) -> tuple[tuple[str, ...], Point]:
    names = tuple(sorted(equations))
    return names, tuple(solved(equations[name])[1] for name in names)


def _point(item: Node) -> tuple[tuple[str, ...], Point]:
    """The names and the coordinates of a member: `x=2n`, `(x,y)=(n,2n)`, `(n,2n)` or `2n`."""
    item = plain(item)
    if isinstance(item, Relation) and (named := assignments(item)) is not None:
        return _by_name(named.equations)
    if isinstance(item, Relation) and len(item.operands) == 2 and (name := solved(item)[0]) is not None:
        return (name,), _coordinates(solved(item)[1])
    return (), _coordinates(item)


def _coordinates(node: Node) -> Point:
    """The coordinates of a tuple, a vector, or a sum of these; anything else is its own single coordinate."""
    node = plain(node)
    if isinstance(node, Matrix):
        return vector_entries(node) or (node,)
    return node.items if isinstance(node, Bracketed) and bracket_kind(node) == "()" else (node,)


def _span(vectors: tuple[Node, ...]) -> Families | None:
    """The span of vectors: all sums of their multiples."""
    free = tuple(f"multiple {index}" for index in range(len(vectors)))
    rows = [
        [Multiply((Symbol(name), entry)) for entry in _coordinates(node)]
        for name, node in zip(free, vectors, strict=True)
    ]
    alike = len({len(row) for row in rows}) == 1
    return Families((), free, (tuple(map(Add, zip(*rows, strict=True))),), real=True) if alike else None


def _residues(items: tuple[Node, ...], joiner: str) -> Families | None:
    r"""Congruences with the same left side, as in `n \\equiv 1,4 \\pmod 5`, as one family for each residue."""
    members: list[Point] = []
    names: list[str] = []
    moduli: list[Fraction] = []
    for item in reversed(items):
        operands = list(item.operands) if isinstance(item, Relation) else [item]
        operators = item.operators if isinstance(item, Relation) else ()
        if operators not in ((), ("mod",), ("modulo",), ("mod", "modulo")):
            return None
        modulus = rational_or_none(operands.pop()) if "modulo" in operators else moduli[-1] if moduli else None
        residue = None if modulus is None else rational_or_none(operands.pop())
        if modulus is None or residue is None or modulus <= 0 or {modulus.denominator, residue.denominator} != {1}:
            return None
        moduli.append(modulus)
        members.append((Add((signed_number(residue.numerator), Multiply((Number(modulus), Symbol("n"))))),))
        names += [label(side) or repr(side) for side in operands]
    system = joiner != "or" and len({*moduli}) > 1
    named = not names or (isinstance(items[0], Relation) and items[0].operators[0] == "mod")
    return None if system or len({*names}) > 1 or not named else Families(tuple(names[:1]), ("n",), tuple(members))


def same_families(gold: Families, answer: Families, values: ValueComparer) -> bool | None:
    """Whether two sets of points are equal; None if the members are not linear and real, or if there are too many.

    Raises:
        GoldError: As for `ValueComparer.identical`.
        UndecidedError: As for `ValueComparer.identical`.
    """
    named_alike = len(gold.names) == len(answer.names) and all(map(names_agree, gold.names, answer.names))
    if gold.names and answer.names and not named_alike:
        return False
    if gold.real != answer.real:
        return False
    if gold.real:
        flats = [line for node in (gold, answer) if (line := flat((_ONE, *node.members[0]), node.free)) is not None]
        return same_flats(flats[0], flats[1], values) if len(flats) == 2 else None
    ours, theirs = (_progressions(node, values) for node in (gold, answer))
    if ours is None or theirs is None or len(ours[0].start) != len(theirs[0].start):
        return None
    return _hold(theirs, ours, values) and _hold(ours, theirs, values)


@dataclass(frozen=True, slots=True)
class _Progression:
    """The points `start + period * n`, exactly and approximately."""

    start: Point
    period: Point
    near_start: tuple[Any, ...]
    near_period: tuple[Any, ...]

    @property
    def pivot(self) -> int:
        """The index of the coordinate that changes the most."""
        return max(range(len(self.period)), key=lambda place: abs(self.near_period[place]))


def _progressions(node: Families, values: ValueComparer) -> list[_Progression] | None:
    """The progressions of each member, or of its even and odd integers; None if there are too many, or one isn't linear."""
    progressions: list[_Progression] = []
    for member in node.members:
        halves = ([_progression(member, node.free[0], start, step, values) for start in range(step)] for step in (1, 2))
        linear = next((half for half in halves if None not in half), [])
        progressions += [progression for progression in linear if progression is not None]
        if not linear or len(progressions) > MAX_MEMBERS:
            return None
    return progressions


def _progression(member: Point, integer: str, start: int, step: int, values: ValueComparer) -> _Progression | None:
    """The progression of every `step`-th integer; None if its points are all equal, not real, or not linear."""

    def at(value: Node) -> Point:
        return tuple(substitute(coordinate, integer, value) for coordinate in member)

    first, second = at(signed_number(start)), at(signed_number(start + step))
    period = tuple(Add((two, Negate(one))) for one, two in zip(first, second, strict=True))
    index = Symbol(integer)
    shifted = at(Add((signed_number(start), Multiply((signed_number(step), index)))))
    with contextlib.suppress(GoldError):  # without a value at one of the integers, it is not linear
        near = tuple(map(real_value, first)), tuple(map(real_value, period))
        known = None not in near[0] + near[1] and not all(values.identical(_ZERO, move) for move in period)
        if known and _identical(values, _along(first, index, period), shifted):
            return _Progression(first, period, *near)
    return None


def _along(start: Point, times: Node, period: Point) -> Point:
    return tuple(Add((one, Multiply((times, two)))) for one, two in zip(start, period, strict=True))


def _identical(values: ValueComparer, one: Point, two: Point) -> bool:
    return all(map(values.identical, one, two))


def _hold(progressions: list[_Progression], others: list[_Progression], values: ValueComparer) -> bool:
    """Whether progressions contain every point of other progressions; it suffices to check one period of the points."""
    for other in others:
        ratios = [_ratio(one, other, values) for one in progressions]
        parallel = [(one, ratio) for one, ratio in zip(progressions, ratios, strict=True) if ratio]
        rounds = math.lcm(*(ratio.denominator for _, ratio in parallel))
        if rounds > MAX_RATIO:
            return False
        if not all(any(_holds(one, other, times, values) for one, _ in parallel) for times in range(rounds)):
            return False
    return True


def _ratio(one: _Progression, other: _Progression, values: ValueComparer) -> Fraction | None:
    """The period of the second progression in periods of the first, if it is a fraction of small integers."""
    near = float(other.near_period[one.pivot] / one.near_period[one.pivot])
    ratio = Fraction(near).limit_denominator(MAX_RATIO)
    times = Number(ratio) if ratio >= 0 else Negate(Number(-ratio))
    return ratio if _identical(values, other.period, tuple(Multiply((times, node)) for node in one.period)) else None


def _holds(one: _Progression, other: _Progression, times: int, values: ValueComparer) -> bool:
    """Whether one progression contains the point with index `times` of another."""
    distance = other.near_start[one.pivot] + times * other.near_period[one.pivot] - one.near_start[one.pivot]
    index = distance / one.near_period[one.pivot]
    whole = int(index + (0.5 if index > 0 else -0.5))
    near = bool(abs(index - whole) < _NEAR)
    points = ((one, whole), (other, times))
    return near and _identical(values, *(_along(node.start, signed_number(at), node.period) for node, at in points))
