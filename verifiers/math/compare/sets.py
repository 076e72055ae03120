"""Comparison of sets of real numbers, and of sets whose ends are not constants."""

from __future__ import annotations

from verifiers.math.compare.collections import joined_otherwise
from verifiers.math.compare.context import Comparer
from verifiers.math.compare.matrices import same_tuples
from verifiers.math.compare.names import without_labels
from verifiers.math.compare.real_sets import NoSetError, real_set
from verifiers.math.compare.relations import reversed_chain, same_inequalities
from verifiers.math.compare.shapes import integer_parameter, is_interval, is_set_builder
from verifiers.math.forms import unordered
from verifiers.math.tree import (
    Add,
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
    Words,
    symbols,
)
from verifiers.math.values.exact import signed_number, substitute

_INFINITY = Constant("inf")
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
