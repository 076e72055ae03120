"""Comparison of lists, finite sets, tuples and matrices; the items of a list may be values of one name."""

from __future__ import annotations

from collections.abc import Sequence

from verifiers.math.compare.constants import same_values
from verifiers.math.compare.context import MAX_ITEMS, Comparer
from verifiers.math.compare.names import label, names_agree, renamed, shared_label, solved, without_labels
from verifiers.math.compare.plain import point_name
from verifiers.math.compare.relations import restates
from verifiers.math.compare.shapes import as_matrix, bracket_kind, items, items_in_brackets, vector_entries
from verifiers.math.tree import (
    Bracketed,
    ListOf,
    Matrix,
    Multiply,
    Node,
    Relation,
    Sentence,
    SetOf,
    Symbol,
    Unknown,
    Words,
    symbols,
    walk,
)
from verifiers.math.values.exact import rational_or_none


def same_collections(comparer: Comparer, gold: Node, answer: Node) -> bool:
    """Compare the members of lists and sets in any order, unless the options or the members imply an order."""
    if comparer.options.brackets == "lenient" and (isinstance(gold, Bracketed) or isinstance(answer, Bracketed)):
        return comparer.in_order(items_in_brackets(gold), items_in_brackets(answer))
    if (forms := _same_forms(comparer, gold, answer)) is not None:
        return forms
    if joined_otherwise(gold, answer) or not _labels_agree(gold, answer):
        return False
    if (by_name := _named_points(comparer, items(gold), items(answer))) is not None:
        return by_name
    left = without_labels(items(gold)) if isinstance(gold, ListOf | SetOf) else (gold,)
    right = without_labels(items(answer)) if len(_names(left)) < 2 else items(answer)
    if isinstance(gold, SetOf) or isinstance(answer, SetOf):
        left = _distinct(comparer, left) if isinstance(gold, SetOf) else left
        right = _distinct(comparer, right) if isinstance(answer, SetOf) else right
    if _is_ordered(left) or (comparer.options.ordered and isinstance(gold, ListOf)):
        return comparer.in_order(left, right)
    return comparer.unordered(left, right)


def _same_forms(comparer: Comparer, gold: Node, answer: Node) -> bool | None:
    """Compare a gold and an answer of which one lists several forms of one value, joined by `or`; None for other lists.

    The value of an answer is the form that equals the gold; the other forms restate it, in another unit or rounded.
    """
    if any(len(_names(items(node))) > 1 for node in (gold, answer)):
        return None
    if isinstance(answer, ListOf) and answer.joiner == "or" and not isinstance(gold, ListOf | SetOf):
        same = [item for item in answer.items if comparer.same(gold, item)]
        value = next((gold if isinstance(item, Relation) else item for item in same), None)
        return value is not None and all(item in same or restates(comparer, value, item) for item in answer.items)
    if isinstance(gold, ListOf) and gold.joiner == "or" and not isinstance(answer, ListOf | SetOf):
        first, *others = gold.items
        return all(comparer.same(first, item) for item in others) and comparer.same(first, answer)
    return None


def _labels_agree(gold: Node, answer: Node) -> bool:
    """Whether an answer's names of items agree with the gold's names; the answer may omit a single name, but not several."""
    ours, theirs = items(gold), items(answer)
    if any(isinstance(item, Relation) and ":" in item.operators for item in theirs):
        return False  # a sentence names the things with these values
    if isinstance(answer, ListOf) and answer.joiner == "or" and len(_names(theirs)) > 1 and not _names(ours):
        return False
    name = shared_label(ours)
    if name is None:
        return True
    others = {solved(item)[0] for item in theirs if isinstance(item, Relation)}
    return all(other is not None and names_agree(name, other) for other in others)


def _is_ordered(nodes: Sequence[Node]) -> bool:
    """Whether the order of a list matters: it has an ellipsis, or verdicts on several parts, such as `true, false, true`."""
    wordy = any(isinstance(item, Sentence | Words) for item in nodes)
    return wordy or (all(isinstance(item, Symbol) for item in nodes) and len(set(nodes)) < len(nodes))


def _distinct(comparer: Comparer, items: tuple[Node, ...]) -> tuple[Node, ...]:
    distinct: list[Node] = []
    for item in items[:MAX_ITEMS]:
        if not any(_equal_items(comparer, item, other) for other in distinct):
            distinct.append(item)
    return (*distinct, *items[MAX_ITEMS:])


def _equal_items(comparer: Comparer, one: Node, two: Node) -> bool:
    ours, theirs = rational_or_none(one), rational_or_none(two)
    return comparer.same(one, two) if ours is None or theirs is None else ours == theirs


def _names(nodes: Sequence[Node]) -> set[str | None]:
    """The names before the items, such as `x` of `x=2`."""
    return {label(node.operands[0]) for node in nodes if isinstance(node, Relation)}


def _named_points(comparer: Comparer, gold: Sequence[Node], answer: Sequence[Node]) -> bool | None:
    """Compare points such as `A(1,2), B(3,4)` by letter, or in order if one side has no letters; None for other items."""
    ours, theirs = ([point_name(item) for item in items_] for items_ in (gold, answer))
    if None not in ours and None not in theirs and len(set(ours)) == len(ours) > 1:
        named = dict(zip(theirs, answer, strict=True))
        return set(ours) == named.keys() and all(
            comparer.same(item, named[name]) for name, item in zip(ours, gold, strict=True)
        )
    named_alone = [names for names in (ours, theirs) if None not in names and len(set(names)) == len(names) > 1]
    return comparer.in_order(gold, answer) if named_alone else None


def joined_otherwise(gold: Node, answer: Node) -> bool:
    r"""Whether only one of two lists joins its items by `or`, and this changes the meaning.

    Letters are statements, as in `p \\land q`. Values of one name are alternatives however they are joined, and so are
    conditions on one variable after a comma.
    """
    if not (isinstance(gold, ListOf) and isinstance(answer, ListOf)) or (gold.joiner == "or") == (
        answer.joiner == "or"
    ):
        return False
    said = {gold.joiner, answer.joiner} == {"and", "or"}
    both = [*gold.items, *answer.items]
    relations = [item for item in both if isinstance(item, Relation)]
    if len(relations) < len(both):
        return said and all(isinstance(part, Symbol | Multiply | Unknown) for item in both for part in walk(item))
    if all(relation.operators == ("=",) for relation in relations):
        names = _names(relations)
        return len(names) > 1 or None in names
    congruences = any("modulo" in relation.operators for relation in relations)  # several moduli are a system
    return said or congruences or len(frozenset().union(*map(symbols, relations))) > 1


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
    """Rename the variables of a set given by a condition as in the gold, such as (a, b) to (x, y)."""
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
