"""Comparison up to the names of bound symbols: of parameters with their sets, and of the index of a set-builder."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

from verifiers.math.compare.context import Comparer
from verifiers.math.compare.names import renamed
from verifiers.math.compare.shapes import INEQUALITIES, is_set_like, items
from verifiers.math.tree import Bracketed, ListOf, NamedSet, Node, Relation, Symbol, symbols

_MOST_NAMES = 4


@dataclass(frozen=True, slots=True)
class _Declared:
    """Members that depend on bound symbols, the set of each symbol (None if it has none), and the conditions on them."""

    members: Node
    names: dict[str, Node | None]
    conditions: tuple[Node, ...]


def same_up_to_names(comparer: Comparer, gold: Node, answer: Node) -> bool:
    r"""Whether two nodes with several bound symbols, or conditions on them, are equal under some renaming of the answer's.

    So `(m, n), m, n \\in \\mathbb{Z}` is `(k, l), k, l \\in \\mathbb{Z}`.
    """
    ours, theirs = _declared(gold), _declared(answer)
    if ours is None or theirs is None or len(ours.names) != len(theirs.names):
        return False
    if symbols(theirs.members) - theirs.names.keys() & ours.names.keys():
        return False
    for order in itertools.permutations(theirs.names):
        names = dict(zip(order, ours.names, strict=True))
        alike = all(ours.names[one] == theirs.names[other] for other, one in names.items())
        if (
            alike
            and comparer.unordered(ours.conditions, [renamed(node, names) for node in theirs.conditions])
            and comparer.same(ours.members, renamed(theirs.members, names))
        ):
            return True
    return False


def _declared(node: Node) -> _Declared | None:
    """Members and the bound symbols that the last items declare; None if these are a single symbol without conditions."""
    braces = isinstance(node, Bracketed) and node.opening == "{" and len(node.items) == 2
    if not (braces or isinstance(node, ListOf)) or not isinstance(node, ListOf | Bracketed):
        return None
    rest = [node.items[0], *items(node.items[1])] if braces else [*node.items]
    names: dict[str, Node | None] = {}
    conditions: list[Node] = []
    domain: Node | None = None
    while len(rest) > 1:
        last = rest[-1]
        name, within = last.operands[0 :: len(last.operands) - 1] if isinstance(last, Relation) else (last, None)
        if (
            isinstance(last, Relation)
            and last.operators == ("in",)
            and isinstance(within, NamedSet)
            and isinstance(name, Symbol)
        ):
            domain = names[name.name] = within
        elif isinstance(last, Symbol) and domain is not None:
            names[last.name] = domain
        elif isinstance(last, Relation) and set(last.operators) <= INEQUALITIES and len(symbols(last)) == 1:
            conditions.append(last)
        else:
            break
        rest.pop()
    on = frozenset().union(*map(symbols, conditions))
    if braces and not names and len(on) == 1:
        names = dict.fromkeys(on)
    several = len(names) > 1 or (names and conditions)
    if not several or len(names) > _MOST_NAMES or not on <= names.keys() or any(map(is_set_like, rest)):
        return None
    return _Declared(
        rest[0] if len(rest) == 1 else ListOf(tuple(rest), node.joiner if isinstance(node, ListOf) else ","),
        names,
        tuple(conditions),
    )
