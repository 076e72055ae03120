"""Comparison of an answer's tree with the gold's, dispatched on the kind of the gold."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from verifiers.math.compare.choices import (
    named_ratio,
    same_choices,
    same_clocks,
    same_named_ratios,
    same_ratios,
    same_sentences,
)
from verifiers.math.compare.collections import MAX_ITEMS, same_collections
from verifiers.math.compare.families import families, same_families
from verifiers.math.compare.matrices import same_matrices, same_tuples
from verifiers.math.compare.names import assignments, named_collection, names_agree, renamed
from verifiers.math.compare.plain import plain, point_name, without_condition
from verifiers.math.compare.relations import same_relations
from verifiers.math.compare.scalars import same_scalars
from verifiers.math.compare.sets import same_sets
from verifiers.math.compare.shapes import is_set_like, parameter
from verifiers.math.options import ComparisonOptions
from verifiers.math.tree import (
    Bracketed,
    Choice,
    Clock,
    ListOf,
    Matrix,
    Node,
    Ratio,
    Relation,
    Sentence,
    SetOf,
    SetOperation,
    Symbol,
    Words,
    symbols,
)
from verifiers.math.values.tiers import Algebra, ValueComparer


@dataclass(slots=True)
class Comparer:
    """Compares one answer with one gold.

    Raises (from `same`):
        GoldError: If the gold has no value.
        UndecidedError: If no method can decide.
    """

    options: ComparisonOptions
    algebra: Algebra
    choices: dict[str, Node] = field(default_factory=dict)
    """The content of each letter of a multiple-choice problem."""
    option: Callable[[str], Node | None] = lambda letter: None
    """Returns the content of a letter in the problem's choices or prompt."""
    in_prompt: Callable[[Node], bool] = lambda node: False
    """Returns whether an expression occurs in the problem's prompt."""
    without_prompt: bool = True
    """Whether there is no prompt, which could say what `m+n` is."""
    about_ratios: bool = False
    """Whether the problem asks for a ratio, so that `1:30` is a ratio and not a time of day."""
    values: ValueComparer = field(init=False)

    def __post_init__(self) -> None:
        self.values = ValueComparer(self.options, self.algebra)

    def same(self, gold: Node, answer: Node) -> bool:
        """Whether the answer equals the gold under the options."""
        if gold == answer:
            return True
        ratios = named_ratio(gold), named_ratio(answer)
        if ratios[0] is not None and ratios[1] is not None:
            return same_named_ratios(self, ratios[0], ratios[1])
        if not self._names_one_point(point_name(gold), point_name(answer)):
            return False
        gold, answer = plain(gold), plain(answer)
        if (same := self._same_families(gold, answer)) is not None:
            return same
        (ours, domain), (theirs, other_domain) = parameter(gold) or ("", gold), parameter(answer) or ("", answer)
        if ours and theirs and domain == other_domain and ours not in symbols(answer):
            answer = renamed(answer, {theirs: ours})
        if without_condition(gold) is gold or without_condition(answer) is answer:
            gold, answer = without_condition(gold), without_condition(answer)
        (name, value), (other, other_value) = named_collection(gold), named_collection(answer)
        if name is not None and other is not None and not names_agree(name, other):
            return False
        if (name is None) != (other is None) and not (self._is_asked(gold) and self._is_asked(answer)):
            return False
        gold, answer = value, other_value
        compare = next((compare for fits, compare in _COMPARISONS if fits(gold) or fits(answer)), same_scalars)
        return compare(self, gold, answer)

    def in_order(self, gold: Sequence[Node], answer: Sequence[Node]) -> bool:
        """Whether two lists hold the same items in the same order."""
        return len(gold) == len(answer) and all(self._same_item(*pair) for pair in zip(gold, answer, strict=True))

    def unordered(self, gold: Sequence[Node], answer: Sequence[Node]) -> bool:
        """Whether two lists hold the same items in any order."""
        if len(gold) != len(answer) or len(gold) > MAX_ITEMS:
            return False
        left = list(answer)
        for item in gold:
            match = next((index for index, other in enumerate(left) if self._same_item(item, other)), None)
            if match is None:
                return False
            del left[match]
        return True

    def _same_item(self, gold: Node, answer: Node) -> bool:
        """As `same`, but inside a container a set of one item does not equal the item, nor a sentence its equation."""
        alike = all(isinstance(gold, cls) == isinstance(answer, cls) for cls in (SetOf, Sentence))
        return alike and self.same(gold, answer)

    def _is_asked(self, node: Node) -> bool:
        """Whether there is no set operation before an equals sign, or the prompt mentions it."""
        operation = node.operands[0] if isinstance(node, Relation) else None
        return not isinstance(operation, SetOperation) or self.in_prompt(operation)

    def _names_one_point(self, gold: str | None, answer: str | None) -> bool:
        """Whether two letters before coordinates agree; the answer may omit the gold's unless the prompt lacks it."""
        if gold is None or answer is None:
            return gold is None or self.without_prompt or self.in_prompt(Symbol(gold))
        return gold == answer

    def _same_families(self, gold: Node, answer: Node) -> bool | None:
        """Compare solutions with a free integer if the gold states one; None for other trees."""
        ours = families(gold)
        theirs = families(answer, said=False) if ours is not None else None
        if ours is None or theirs is None:
            return None
        if ours.label is not None and theirs.label is not None and not names_agree(ours.label, theirs.label):
            return False
        return same_families(ours, theirs, self.values)


def _is(*kinds: type[Node]) -> Callable[[Node], bool]:
    return lambda node: isinstance(node, kinds)


# The comparison of two answers is that of the first condition that either of them meets.
_COMPARISONS: tuple[tuple[Callable[[Node], bool], Callable[[Comparer, Node, Node], bool]], ...] = (
    (_is(Choice), same_choices),
    (_is(Words, Sentence), same_sentences),
    (_is(Clock), same_clocks),
    (_is(Ratio), same_ratios),
    (is_set_like, same_sets),
    (lambda node: isinstance(node, ListOf | SetOf) or bool(assignments(node)), same_collections),
    (_is(Relation), same_relations),
    (_is(Matrix), same_matrices),
    (_is(Bracketed), same_tuples),
)
