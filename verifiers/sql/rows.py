"""Compares the rows of two results as a list or as a multiset; floats may differ by rounding."""

from __future__ import annotations

import functools
import math
from collections import Counter
from collections.abc import Sequence

Row = tuple[object, ...]

REL_TOL = 1e-12
"""Relative difference of floats that rounding can explain: a sum in two orders of its terms differs by less."""
_MOST_PAIRS = 2_000
"""Maximum number of rows that are matched pairwise when they are not exactly equal."""


def same_rows(expected: Sequence[Row], found: Sequence[Row], *, ordered: bool, rel_tol: float = REL_TOL) -> bool:
    """Whether two results have the same rows, in the same order if `ordered`; names of columns are ignored.

    Two floats are the same up to a relative difference of `rel_tol`. An integer equals a float of exactly its value, and a
    number never equals a text.
    """
    same_row = functools.partial(_same_row, rel_tol)
    if len(expected) != len(found):
        return False
    if ordered:
        return all(map(same_row, expected, found))
    lacking, surplus = Counter(expected), Counter(found)
    rest, candidates = list((lacking - surplus).elements()), list((surplus - lacking).elements())
    if len(rest) > _MOST_PAIRS:
        return all(map(same_row, sorted(rest, key=_order), sorted(candidates, key=_order)))
    for row in rest:
        match = next((number for number, other in enumerate(candidates) if same_row(row, other)), None)
        if match is None:
            return False
        del candidates[match]
    return True


def _same_row(rel_tol: float, first: Row, second: Row) -> bool:
    return len(first) == len(second) and all(map(functools.partial(_same_value, rel_tol), first, second))


def _same_value(rel_tol: float, first: object, second: object) -> bool:
    if isinstance(first, float) and isinstance(second, float):
        return math.isclose(first, second, rel_tol=rel_tol)
    if isinstance(first, int | float) and isinstance(second, int | float):
        return first == second
    return type(first) is type(second) and first == second


def _order(row: Row) -> list[tuple[str, object]]:
    return [
        ("number", value) if isinstance(value, int | float) else (type(value).__name__, value or "") for value in row
    ]
