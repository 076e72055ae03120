r"""Flats: all sums of one vector and arbitrary multiples of other vectors, compared as sets.

Vectors are tuples of numbers or of functions. So lines, spans and general solutions of linear differential equations are flats,
whatever start, vectors and constants describe them: `C/x` and `C/(2x)` are equal. Flats are compared by the Gauss-Jordan normal
form of their values at several points: 30 digits tell flats apart, 250 digits confirm equality.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from typing import Any

from verifiers.math.tree import Add, Divide, Multiply, Negate, Node, Number, Symbol, symbols
from verifiers.math.values.exact import NotExactError, UndefinedError
from verifiers.math.values.numeric import CONFIRM_DIGITS, FILTER_DIGITS, Estimate, estimate
from verifiers.math.values.sample_points import SamplePoints, sampling_for
from verifiers.math.values.tiers import Tier, ValueComparer

MAX_VECTORS = 6
_MAX_POINTS = 24
_ZERO, _ONE = Number(Fraction(0)), Number(Fraction(1))
_START = ""  # the part of an expression without free numbers
Vector = tuple[Node, ...]
Flat = list[Vector]
"""A vector, followed by the vectors whose multiples are added to it. The length of the first vector matters only if a
coordinate is 1.
"""


def flat(vector: Vector, free: Sequence[str]) -> Flat | None:
    """The flat of a vector whose coordinates depend on free numbers; None if a coordinate is not linear in them as written."""
    coordinates = [_parts(coordinate, frozenset(free)) for coordinate in vector]
    rows = [[parts.get(name, _ZERO) for parts in coordinates if parts is not None] for name in (_START, *free)]
    return None if None in coordinates else [tuple(row) for row in rows]


def _parts(node: Node, free: frozenset[str]) -> dict[str, Node] | None:
    """The coefficients of the free numbers in an expression, and the rest; None if the expression is not linear in them."""
    if not symbols(node) & free:
        return {_START: node}
    if isinstance(node, Symbol):
        return {node.name: _ONE}
    if isinstance(node, Negate):
        return _each(node.value, free, Negate)
    if isinstance(node, Divide) and isinstance(node.denominator, Divide):
        numerator = Multiply((node.numerator, node.denominator.denominator))
        return _parts(Divide(numerator, node.denominator.numerator), free)
    if isinstance(node, Divide) and isinstance(node.denominator, Negate):
        return _parts(Negate(Divide(node.numerator, node.denominator.value)), free)
    if isinstance(node, Divide) and not symbols(node.denominator) & free:
        return _each(node.numerator, free, lambda part: Divide(part, node.denominator))
    if isinstance(node, Multiply):
        first, *others = sorted(node.factors, key=lambda factor: not symbols(factor) & free)
        alone = not any(symbols(factor) & free for factor in others)
        return _each(first, free, lambda part: Multiply((part, *others))) if alone else None
    terms = [_parts(term, free) for term in node.terms] if isinstance(node, Add) else [None]
    known = [parts for parts in terms if parts is not None]
    names = dict.fromkeys(name for parts in known for name in parts)
    sums = {name: Add(tuple(parts[name] for parts in known if name in parts)) for name in names}
    return None if None in terms else dict(sums)


def _each(node: Node, free: frozenset[str], change: Callable[[Node], Node]) -> dict[str, Node] | None:
    parts = _parts(node, free)
    return None if parts is None else {name: change(part) for name, part in parts.items()}


def same_flats(gold: Flat, answer: Flat, values: ValueComparer) -> bool:
    """Whether two flats are equal at the points where the gold is real."""
    if max(len(gold), len(answer)) > MAX_VECTORS or len(gold[0]) != len(answer[0]):
        return False
    values.use(Tier.NUMERIC)
    try:
        return all(
            _same_to(gold, answer, *precision) for precision in ((FILTER_DIGITS, 10**15), (CONFIRM_DIGITS, 10**200))
        )
    except (NotExactError, UndefinedError):
        return False


def _same_to(gold: Flat, answer: Flat, digits: tuple[int, int], scale: int) -> bool:
    """Whether two flats have the same normal form up to one part in `scale`.

    Raises:
        NotExactError: If a value is not known accurately enough.
        UndefinedError: If the answer has no value at a point where the gold has one.
    """
    columns = list(_columns(gold, answer, digits))
    rows = list(zip(*columns, strict=True))
    ours, theirs = rows[: len(gold)], rows[len(gold) :]
    enough = digits == FILTER_DIGITS or len(columns) > len(gold) * len(gold[0]) or not _symbols(gold)
    return enough and all(
        _same_forms(_normal_form(ours[at:], scale), _normal_form(theirs[at:], scale), scale) for at in (1, 0)
    )


def _symbols(vectors: Flat) -> frozenset[str]:
    return frozenset().union(*(symbols(node) for vector in vectors for node in vector))


def _columns(gold: Flat, answer: Flat, digits: tuple[int, int]) -> Iterator[list[Any]]:
    """The values of one coordinate for all vectors, at each point at which all coordinates have values.

    Raises:
        NotExactError: If a value is not known accurately enough.
        UndefinedError: If the answer has no value at a point where the gold has one.
    """
    ours, theirs = (Add(tuple(node for vector in vectors for node in vector)) for vectors in (gold, answer))
    constant = not symbols(ours) | symbols(theirs)
    sampling = SamplePoints(count=1) if constant else sampling_for(ours, theirs)
    more = 0 if constant or sampling.integers else len(gold)  # with positive coordinates
    for sample in range(-more, min(sampling.count, 3 if digits == FILTER_DIGITS else _MAX_POINTS)):
        expected = _estimates([node for vector in gold for node in vector], digits, sample, sampling)
        if expected is None or any(one.branched for one in expected):
            continue
        actual = _estimates([node for vector in answer for node in vector], digits, sample, sampling)
        if actual is None:
            raise UndefinedError("no value of the answer")
        if any(one.branched for one in actual) and sampling.lenient and sampling.is_signed(sample):
            continue
        if digits == CONFIRM_DIGITS and any(one.uneven for one in (*expected, *actual)):
            raise NotExactError("a term too small to be seen")
        both = [one.value for one in (*expected, *actual)]
        yield from (both[place :: len(gold[0])] for place in range(len(gold[0])))


def _estimates(
    nodes: Sequence[Node], digits: tuple[int, int], sample: int, sampling: SamplePoints
) -> list[Estimate] | None:
    try:
        return [estimate(node, digits, sample, sampling) for node in nodes]
    except UndefinedError:
        return None


def _normal_form(rows: Sequence[Sequence[Any]], scale: int) -> list[list[Any]]:
    """The reduced echelon form of rows, without rows of zeros."""
    left = [[value / size for value in row] for row in rows if row and (size := max(map(abs, row)))]
    form: list[list[Any]] = []
    for place in range(len(rows[0]) if rows else 0):
        sizes = [abs(row[place]) for row in left]
        if not sizes or max(sizes) * scale <= 1:
            continue
        first = left.pop(sizes.index(max(sizes)))
        pivot = [value / first[place] for value in first]
        left, form = ([_reduced(row, pivot, place) for row in some] for some in (left, form))
        form.append(pivot)
    return form


def _reduced(row: list[Any], pivot: list[Any], place: int) -> list[Any]:
    return [one - row[place] * two for one, two in zip(row, pivot, strict=True)]


def _same_forms(ours: list[list[Any]], theirs: list[list[Any]], scale: int) -> bool:
    return len(ours) == len(theirs) and all(
        abs(one - two) * scale <= max(abs(one), abs(two), 1)
        for row, other in zip(ours, theirs, strict=True)
        for one, two in zip(row, other, strict=True)
    )
