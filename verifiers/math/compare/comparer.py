"""Comparison of an answer's tree with the gold's tree: brings both to plain form, and dispatches on their kinds."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from verifiers.math.compare.assigned import assignments, same_assignments
from verifiers.math.compare.bound import same_up_to_names
from verifiers.math.compare.cases import is_by_cases, same_cases
from verifiers.math.compare.choices import (
    chosen_options,
    named_ratio,
    same_choices,
    same_clocks,
    same_named_ratios,
    same_ratios,
    same_sentences,
)
from verifiers.math.compare.collections import same_collections, same_matrices, same_tuples
from verifiers.math.compare.constants import as_curve
from verifiers.math.compare.context import Comparer
from verifiers.math.compare.families import families, same_families
from verifiers.math.compare.names import named_collection, names_agree, renamed
from verifiers.math.compare.plain import named_point, plain, point_name, without_braces, without_condition, without_last
from verifiers.math.compare.relations import same_relations
from verifiers.math.compare.scalars import same_scalars
from verifiers.math.compare.sets import as_set_series, same_set_series, same_sets
from verifiers.math.compare.shapes import integer_parameter, is_set_like, items, parameter
from verifiers.math.tree import (
    Bracketed,
    Choice,
    Clock,
    ListOf,
    Matrix,
    NamedSet,
    Node,
    Ratio,
    Relation,
    Sentence,
    SetOf,
    SetOperation,
    SetSeries,
    Symbol,
    Words,
    symbols,
)


def compare(comparer: Comparer, gold: Node, answer: Node) -> bool:
    """Whether two trees of any kind are equal under the comparer's options."""
    ratios = named_ratio(gold), named_ratio(answer)
    if ratios[0] is not None and ratios[1] is not None:
        return same_named_ratios(comparer, ratios[0], ratios[1])
    if (point_name(gold) is None) != (point_name(answer) is None):
        gold, answer = named_point(gold), named_point(answer)
    if not _names_one_point(comparer, point_name(gold), point_name(answer)):
        return False
    gold, answer = plain(gold), plain(answer)
    if (chosen := chosen_options(comparer, gold)) is not None and chosen == chosen_options(comparer, answer):
        return True
    indexed = all(integer_parameter(node) is not None for node in (gold, answer))
    if any(isinstance(node, SetSeries) or (indexed and is_set_like(items(node)[0])) for node in (gold, answer)):
        gold, answer = as_set_series(gold), as_set_series(answer)
    ours = families(gold, given=comparer.in_prompt, flats="flats" in comparer.topics)
    theirs = families(answer, ours, given=comparer.in_prompt) if ours is not None else None
    if ours is not None and theirs is not None and (same := same_families(ours, theirs, comparer.values)) is not None:
        return same
    if same_up_to_names(comparer, gold, answer):
        return True
    curves = as_curve(gold), as_curve(answer)
    if all(isinstance(curve, Relation) for curve in curves):
        gold, answer = curves
    named = _without_names(comparer, *_without_conditions(*_without_parameter(comparer, gold, answer)))
    if named is None:
        return False
    compare_kind = next((rule for fits, rule in _RULES if fits(named[0]) or fits(named[1])), same_scalars)
    return compare_kind(comparer, *named)


def _names_one_point(comparer: Comparer, gold: str | None, answer: str | None) -> bool:
    """Whether the letters before two points agree; the answer may omit the gold's letter if the prompt names it."""
    if gold is None or answer is None:
        return gold is None or comparer.without_prompt or comparer.in_prompt(Symbol(gold))
    return gold == answer


def _without_parameter(comparer: Comparer, gold: Node, answer: Node) -> tuple[Node, Node]:
    """A gold and an answer without a declared parameter that both have; the answer's parameter is renamed as in the gold.

    The gold may leave the declaration of a real number out: `f(x)=cx` for `f(x)=ax` for all `a`.
    """
    gold, answer = without_braces(gold), without_braces(answer)
    only = symbols(gold) - symbols(answer)
    declared = parameter(answer)
    if parameter(gold) is None and declared is not None and declared[1] == NamedSet("R") and len(only) == 1:
        (name,) = only
        given = declared[0] in symbols(gold) or any(comparer.in_prompt(Symbol(one)) for one in (name, declared[0]))
        if name.isalpha() and not (comparer.without_prompt or given):  # a variable of the problem is no constant
            return gold, without_last(renamed(answer, {declared[0]: name}))
    (ours, domain), (theirs, other_domain) = parameter(gold) or ("", gold), parameter(answer) or ("", answer)
    if not ours or not theirs or domain != other_domain or (ours != theirs and ours in symbols(answer)):
        return gold, answer
    answer = renamed(answer, {theirs: ours})
    if any(is_set_like(item) for node in (gold, answer) for item in items(node)[:-1]):
        return gold, answer  # the parameter restricts sets to integers
    return without_last(gold), without_last(answer)


def _without_conditions(gold: Node, answer: Node) -> tuple[Node, Node]:
    """A gold and an answer without a final condition that restricts nothing, if only one of them has such a condition."""
    shorter = without_condition(gold), without_condition(answer)
    return shorter if shorter[0] is gold or shorter[1] is answer else (gold, answer)


def _without_names(comparer: Comparer, gold: Node, answer: Node) -> tuple[Node, Node] | None:
    """The collections in a gold and an answer, without their names; None if the names make the answer wrong."""
    (name, value), (other, other_value) = named_collection(gold), named_collection(answer)
    if name is not None and other is not None and not names_agree(name, other):
        return None
    if (name is None) != (other is None) and not all(_is_asked(comparer, node) for node in (gold, answer)):
        return None
    return value, other_value


def _is_asked(comparer: Comparer, node: Node) -> bool:
    """Whether the prompt mentions the set operation on the left of an equals sign, or there is no such operation."""
    operation = node.operands[0] if isinstance(node, Relation) else None
    return not isinstance(operation, SetOperation) or comparer.in_prompt(operation)


def _is(*kinds: type[Node]) -> Callable[[Node], bool]:
    return lambda node: isinstance(node, kinds)


# Two answers are compared by the rule of the first condition that either of them meets.
_RULES: tuple[tuple[Callable[[Node], bool], Callable[[Comparer, Node, Node], bool]], ...] = (
    (_is(Choice), same_choices),
    (_is(Words, Sentence), same_sentences),
    (_is(Clock), same_clocks),
    (_is(Ratio), same_ratios),
    (_is(SetSeries), same_set_series),
    (is_by_cases, same_cases),
    (is_set_like, same_sets),
    (lambda node: assignments(node) is not None, same_assignments),
    (_is(ListOf, SetOf), same_collections),
    (_is(Relation), same_relations),
    (_is(Matrix), same_matrices),
    (_is(Bracketed), same_tuples),
)

comparer = partial(Comparer, compare=compare)
"""Makes a comparer of trees of all kinds."""
