"""Expands plus-minus signs into the values that they denote."""

from __future__ import annotations

import itertools

from verifiers.math import tree
from verifiers.math.tree import Add, ListOf, Negate, Node, PlusMinus, Quantity, Relation, SetOf, Symbol, rewrite, walk

_MAX_SIGNED_ITEMS = 50
_MAX_FREE_SIGNS = 3


def expand_signs(node: Node) -> Node:
    """Expand every plus-minus into two values; all plus-minus signs in one item are given the same choice."""
    if isinstance(node, ListOf | SetOf):
        if len(node.items) > _MAX_SIGNED_ITEMS:
            return node
        items = tuple(signed for item in node.items for signed in _both_signs(item))
        alone = expand_signs(node.items[0]) if isinstance(node, SetOf) and len(node.items) == 1 else None
        if isinstance(alone, ListOf) and alone.joiner == "and":
            return alone  # a condition
        return ListOf(items, node.joiner) if isinstance(node, ListOf) else SetOf(items)
    if isinstance(node, tree.SetOperation):
        return tree.SetOperation(node.kind, expand_signs(node.left), expand_signs(node.right))
    if isinstance(node, Quantity) and len(values := _both_signs(node.value)) == 2:
        return ListOf(tuple(Quantity(value, node.unit) for value in values), "or")
    values = _both_signs(node)
    joiner = "and" if isinstance(node, Relation) and "!=" in node.operators else "or"
    return values[0] if len(values) == 1 else ListOf(values, joiner)


def _both_signs(node: Node) -> tuple[Node, ...]:
    if not any(isinstance(subtree, PlusMinus) for subtree in walk(node)):
        return (node,)
    if isinstance(node, Relation) and node.operators == ("=",) and isinstance(node.operands[0], Symbol):
        return tuple(Relation(("=",), (node.operands[0], value)) for value in _both_signs(node.operands[1]))
    if isinstance(node, Add) and _signs_are_free(node):
        return tuple(Add(terms) for terms in itertools.product(*map(_both_signs, node.terms)))
    return _with_sign(node, 1), _with_sign(node, -1)


def _signs_are_free(node: Add) -> bool:
    """Whether a sum of terms with plus-minus signs takes each sign independently; a minus-plus would link the signs."""
    signed = [term for term in node.terms if any(isinstance(subtree, PlusMinus) for subtree in walk(term))]
    signs = {subtree.sign for term in signed for subtree in walk(term) if isinstance(subtree, PlusMinus)}
    return 2 <= len(signed) <= _MAX_FREE_SIGNS and signs == {1}


def _with_sign(node: Node, sign: int) -> Node:
    def choose(subtree: Node) -> Node | None:
        if not isinstance(subtree, PlusMinus):
            return None
        value = _with_sign(subtree.value, sign)
        return value if subtree.sign == sign else Negate(value)

    return rewrite(node, choose)
