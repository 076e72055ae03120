"""Comparison of matrices, vectors, and tuples."""

from __future__ import annotations

from verifiers.math.compare.constants import same_values
from verifiers.math.compare.context import Comparer
from verifiers.math.compare.names import renamed
from verifiers.math.compare.shapes import as_matrix, bracket_kind, items_in_brackets, vector_entries
from verifiers.math.tree import Bracketed, Matrix, Node, Symbol, symbols


def same_matrices(comparer: Comparer, gold: Node, answer: Node) -> bool:
    """Compare matrices entry by entry; a single row or column may be written as a tuple, unless vectors are strict."""
    gold, answer = as_matrix(gold), as_matrix(answer)
    if isinstance(gold, Matrix) and isinstance(answer, Matrix):
        shape = [len(row) for row in gold.rows] == [len(row) for row in answer.rows]
        same = shape and same_values(comparer, gold, answer)[0]
        return same or (shape and comparer.in_order(sum(gold.rows, ()), sum(answer.rows, ())))
    matrix, other = (gold, answer) if isinstance(gold, Matrix) else (answer, gold)
    assert isinstance(matrix, Matrix)
    entries = vector_entries(matrix)
    if entries is None or comparer.options.vectors == "strict" or not isinstance(other, Bracketed):
        return False
    if bracket_kind(other) not in ("()", "[]"):
        return False
    coordinates = other.items
    return comparer.in_order(entries, coordinates) if matrix is gold else comparer.in_order(coordinates, entries)


def same_tuples(comparer: Comparer, gold: Node, answer: Node) -> bool:
    """Compare tuples in order, with the same brackets unless these are lenient."""
    if comparer.options.brackets == "lenient":
        return comparer.in_order(items_in_brackets(gold), items_in_brackets(answer))
    if not (isinstance(gold, Bracketed) and isinstance(answer, Bracketed)):
        return False
    if bracket_kind(gold) != bracket_kind(answer):
        return False
    answer = _with_names_of(gold, answer) if gold.opening == "{" else answer
    return comparer.in_order(gold.items, answer.items)


def _with_names_of(gold: Bracketed, answer: Bracketed) -> Bracketed:
    """Rename the elements of a set by condition as in the gold: the pair (a, b) of one set is the (x, y) of another."""
    ours, theirs = (items_in_brackets(node.items[0]) for node in (gold, answer))
    names = [
        (one.name, two.name)
        for one, two in zip(ours, theirs, strict=False)
        if isinstance(one, Symbol) and isinstance(two, Symbol)
    ]
    bound = {two: one for one, two in names}
    free = (symbols(gold) - set(bound.values())) | (symbols(answer) - bound.keys())
    if not len(ours) == len(theirs) == len(bound) == len({*bound.values()}) or free & {*bound, *bound.values()}:
        return answer
    return Bracketed(answer.opening, tuple(renamed(item, bound) for item in answer.items), answer.closing)
