"""Comparison of definitions by cases: as functions, whichever way they divide the line."""

from __future__ import annotations

from verifiers.math.compare.collections import same_collections
from verifiers.math.compare.context import Comparer
from verifiers.math.compare.sets import NoSetError, RealSet, real_set
from verifiers.math.tree import Bracketed, ListOf, Node, Relation, SetOperation, Words, walk
from verifiers.math.values.exact import substitute

_CONDITIONS = Relation | ListOf | SetOperation


def is_by_cases(node: Node) -> bool:
    """Whether a node is a definition by cases: values in a list, each with a condition."""
    return isinstance(node, ListOf) and node.joiner == "and" and all(_is_case(item) for item in node.items)


def _is_case(node: Node) -> bool:
    return isinstance(node, Bracketed) and len(node.items) == 2 and isinstance(node.items[1], _CONDITIONS)


def same_cases(comparer: Comparer, gold: Node, answer: Node) -> bool:
    """Whether two definitions by cases have the same domain, and the same value where any two of their cases meet.

    Definitions whose conditions are no sets of real numbers are compared case by case.
    """
    if is_by_cases(gold) and is_by_cases(answer) and not any(isinstance(node, Words) for node in walk(answer)):
        try:
            return _same_functions(comparer, _cases(gold), _cases(answer))
        except NoSetError:
            pass
    return same_collections(comparer, gold, answer)


def _cases(node: Node) -> list[tuple[Node, RealSet]]:
    """Each value with the set on which it holds.

    Raises:
        NoSetError: If a condition is no set of real numbers.
    """
    assert isinstance(node, ListOf)
    return [(item.items[0], real_set(item.items[1])) for item in node.items if isinstance(item, Bracketed)]


def _same_functions(comparer: Comparer, gold: list[tuple[Node, RealSet]], answer: list[tuple[Node, RealSet]]) -> bool:
    names = {domain.variable for _, domain in (*gold, *answer)} - {None}
    if len(names) != 1:
        raise NoSetError("conditions on several variables")
    (name,) = names
    ours, theirs = (_union([domain for _, domain in cases]) for cases in (gold, answer))
    if ours.combined("difference", theirs).marks or theirs.combined("difference", ours).marks:
        return False
    for value, domain in gold:
        for other, others in answer:
            common = domain.combined("intersection", others)
            points = [mark.end.node for mark in common.marks if mark.at and not mark.after]
            isolated = len(points) == len(common.marks)
            pairs = [(substitute(value, str(name), at), substitute(other, str(name), at)) for at in points]
            if not all(comparer.same(*pair) for pair in (pairs if isolated else [(value, other)])):
                return False
    return True


def _union(sets: list[RealSet]) -> RealSet:
    whole = sets[0]
    for one in sets[1:]:
        whole = whole.combined("union", one)
    return whole
