r"""Flats: all sums of one vector and of any multiples of others, compared as sets.

Vectors are tuples of numbers or of functions. So lines, spans and general solutions of linear differential equations are
flats, by whatever start, vectors and constants they are given: `C/x` and `C/(2x)`, for every C. Their normal form is that of
Gauss and Jordan, of values to 250 digits at several points.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Any

from verifiers.math.tree import Add, Multiply, Negate, Node, Number, Symbol, symbols
from verifiers.math.values.exact import NotExactError, UndefinedError, substitute
from verifiers.math.values.numeric import CONFIRM_DIGITS, Estimate, estimate
from verifiers.math.values.sample_points import SamplePoints, sampling_for
from verifiers.math.values.tiers import GoldError, Tier, ValueComparer

MAX_VECTORS = 6
_MAX_POINTS = 24
_SCALE = 10**200  # one part in it is nothing
Vector = tuple[Node, ...]
Flat = list[Vector]
"""A vector, and those of which any multiples are added to it; its own length counts only if a coordinate of it is 1."""


def flat(vector: Vector, free: Sequence[str], values: ValueComparer) -> Flat | None:
    """The flat of a vector whose coordinates depend on free numbers; None if they are not linear in these."""
    points = [{name: Number(Fraction(name == one)) for name in free} for one in ("", *free)]
    start, *ends = (tuple(_at(coordinate, point) for coordinate in vector) for point in points)
    moves = [tuple(Add((two, Negate(one))) for one, two in zip(start, end, strict=True)) for end in ends]
    multiples = [[Multiply((Symbol(name), one)) for one in move] for name, move in zip(free, moves, strict=True)]
    with contextlib.suppress(GoldError):  # not linear, if it has no value where all of these are 0
        if all(map(values.identical, vector, map(Add, zip(start, *multiples, strict=True)))):
            return [start, *moves]
    return None


def _at(node: Node, point: dict[str, Number]) -> Node:
    for name, value in point.items():
        node = substitute(node, name, value)
    return node


def same_flats(gold: Flat, answer: Flat, values: ValueComparer) -> bool:
    """Whether two flats are equal where the gold is real."""
    if max(len(gold), len(answer)) > MAX_VECTORS or len(gold[0]) != len(answer[0]):
        return False
    values.use(Tier.NUMERIC)
    try:
        columns = list(_columns(gold, answer))
    except (NotExactError, UndefinedError):
        return False
    rows = list(zip(*columns, strict=True))
    ours, theirs = rows[: len(gold)], rows[len(gold) :]
    enough = len(columns) > len(gold) * len(gold[0]) or not _symbols(gold)
    return enough and all(_same_forms(_normal_form(ours[at:]), _normal_form(theirs[at:])) for at in (1, 0))


def _symbols(vectors: Flat) -> frozenset[str]:
    return frozenset().union(*(symbols(node) for vector in vectors for node in vector))


def _columns(gold: Flat, answer: Flat) -> Iterator[list[Any]]:
    """The values of one coordinate at one point, for all vectors.

    Raises:
        NotExactError: If a value is not known well enough.
        UndefinedError: If the answer has no value where the gold has one.
    """
    ours, theirs = (Add(tuple(node for vector in vectors for node in vector)) for vectors in (gold, answer))
    sampling = sampling_for(ours, theirs) if symbols(ours) | symbols(theirs) else SamplePoints(count=1)
    for sample in range(min(sampling.count, _MAX_POINTS)):
        for nodes in zip(*gold, *answer, strict=True):
            expected = _estimates(nodes[: len(gold)], sample, sampling)
            actual = None if expected is None else _estimates(nodes[len(gold) :], sample, sampling)
            if expected is None or any(one.branched for one in expected):
                continue
            if actual is None:
                raise UndefinedError("no value of the answer")
            if any(one.branched for one in actual) and sampling.lenient and sampling.is_signed(sample):
                continue
            if any(one.uneven for one in (*expected, *actual)):
                raise NotExactError("a term too small to be seen")
            yield [one.value for one in (*expected, *actual)]


def _estimates(nodes: Sequence[Node], sample: int, sampling: SamplePoints) -> list[Estimate] | None:
    try:
        return [estimate(node, CONFIRM_DIGITS, sample, sampling) for node in nodes]
    except UndefinedError:
        return None


def _normal_form(rows: Sequence[Sequence[Any]]) -> list[list[Any]]:
    """The reduced echelon form of rows, without those that are 0."""
    left = [[value / size for value in row] for row in rows if (size := max(map(abs, row)))]
    form: list[list[Any]] = []
    for place in range(len(rows[0]) if rows else 0):
        first = max(left, key=lambda row: abs(row[place]), default=None)
        if first is None or abs(first[place]) * _SCALE <= 1:
            continue
        pivot = [value / first[place] for value in first]
        left = [_reduced(row, pivot, place) for row in left if row is not first]
        form = [*(_reduced(row, pivot, place) for row in form), pivot]
    return form


def _reduced(row: list[Any], pivot: list[Any], place: int) -> list[Any]:
    return [one - row[place] * two for one, two in zip(row, pivot, strict=True)]


def _same_forms(ours: list[list[Any]], theirs: list[list[Any]]) -> bool:
    return len(ours) == len(theirs) and all(
        abs(one - two) * _SCALE <= max(abs(one), abs(two), 1)
        for row, other in zip(ours, theirs, strict=True)
        for one, two in zip(row, other, strict=True)
    )
