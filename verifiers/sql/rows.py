"""Whether two results are the same: rows as a list or as a multiset, and numbers up to rounding."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

Row = tuple[object, ...]

_TOLERANCE = 1e-6
_MOST_PAIRS = 2_000
"""How many rows are matched one with another, where they are not equal to the last digit."""


def same_rows(expected: Sequence[Row], found: Sequence[Row], *, ordered: bool) -> bool:
    """Whether two results have the same rows, in the same order if that is asked for; names of columns play no part.

    Numbers are the same up to a relative or absolute difference of 1e-6, an integer is the same as a float, and no number is
    the same as a text.
    """
    if len(expected) != len(found):
        return False
    if ordered:
        return all(map(_same_row, expected, found))
    lacking, surplus = Counter(expected), Counter(found)
    rest, candidates = list((lacking - surplus).elements()), list((surplus - lacking).elements())
    if len(rest) > _MOST_PAIRS:
        return all(map(_same_row, sorted(rest, key=_order), sorted(candidates, key=_order)))
    for row in rest:
        match = next((number for number, other in enumerate(candidates) if _same_row(row, other)), None)
        if match is None:
            return False
        del candidates[match]
    return True


def _same_row(first: Row, second: Row) -> bool:
    return len(first) == len(second) and all(map(_same_value, first, second))


def _same_value(first: object, second: object) -> bool:
    if isinstance(first, int | float) and isinstance(second, int | float):
        exact = isinstance(first, int) and isinstance(second, int)
        return first == second or (not exact and math.isclose(first, second, rel_tol=_TOLERANCE, abs_tol=_TOLERANCE))
    return type(first) is type(second) and first == second


def _order(row: Row) -> list[tuple[str, object]]:
    return [
        ("number", value) if isinstance(value, int | float) else (type(value).__name__, value or "") for value in row
    ]
