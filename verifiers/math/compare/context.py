"""Context shared by the comparisons of all kinds of answers: options, values of expressions, and the prompt."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from verifiers.math.options import ComparisonOptions
from verifiers.math.tree import Node, Sentence, SetOf
from verifiers.math.values.tiers import Algebra, ValueComparer

MAX_ITEMS = 100
"""Maximum number of items of a list or a set."""


@dataclass(slots=True)
class Comparer:
    """Compares one answer with one gold; `verifiers.math.compare.comparer.comparer` makes one.

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
    """Whether the problem has no prompt; a prompt could say what `m+n` means."""
    topics: frozenset[str] = frozenset()
    """Topics of the prompt: `"ratios"` (`1:30` isn't a time of day), `"flats"`, `"constants"` (the constants are arbitrary)."""
    compare: Callable[[Comparer, Node, Node], bool] = field(kw_only=True)
    """The comparison of two trees of any kind, which the comparisons of containers apply to their items."""
    inside: bool = field(default=False, init=False)
    """Whether the items of a container are being compared; items may share names of constants."""
    values: ValueComparer = field(init=False)

    def __post_init__(self) -> None:
        self.values = ValueComparer(self.options, self.algebra)

    def same(self, gold: Node, answer: Node) -> bool:
        """Whether the answer equals the gold under the options."""
        return gold == answer or self.compare(self, gold, answer)

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
        """Compare like `same`, but inside a container a set of one item is not its item, and a sentence not its equation."""
        alike = all(isinstance(gold, cls) == isinstance(answer, cls) for cls in (SetOf, Sentence))
        outer, self.inside = self.inside, True
        try:
            return alike and self.same(gold, answer)
        finally:
            self.inside = outer
