"""Determinants as expressions, by expansion along the first row."""

from __future__ import annotations

from fractions import Fraction

from verifiers.math.tree import Add, Divide, Multiply, Negate, Node, Number

MAX_ORDER = 5
"""Largest order that is expanded: n! products come out."""
_ONE = Number(Fraction(1))
_ZERO = Number(Fraction(0))


def determinant(rows: tuple[tuple[Node, ...], ...]) -> Node | None:
    """The determinant of a square matrix; None for other shapes and past `MAX_ORDER`."""
    if len(rows) > MAX_ORDER or any(len(row) != len(rows) for row in rows):
        return None
    return _expanded(rows)


def _expanded(rows: tuple[tuple[Node, ...], ...]) -> Node:
    if len(rows) == 1:
        return rows[0][0]
    terms: list[Node] = []
    for column, entry in enumerate(rows[0]):
        if entry == _ZERO:
            continue
        minor = _expanded(tuple(row[:column] + row[column + 1 :] for row in rows[1:]))
        term = Multiply((entry, minor))
        terms.append(Negate(term) if column % 2 else term)
    # Written as a quotient, so that no determinant passes for a number that was carried out.
    return Divide(Add(tuple(terms) or (_ZERO,)), _ONE)
