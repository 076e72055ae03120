"""Verifiers that combine several scorers of the same quality and report how far they disagree."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from typing import Annotated, Literal

from verifiers._settings import checked
from verifiers.bounds import AtLeast
from verifiers.composition import Composition, Parts, first_answer, reports, total_cost
from verifiers.errors import InvalidArgumentError
from verifiers.types import Outcome, Problem, Verdict

Reduction = Literal["mean", "min", "mean_minus_std"]


class Ensemble(Composition):
    """Combines several scorers of the same quality into one `SCORED` verdict (Coste et al. 2024, arXiv:2310.02743).

    `"mean"` averages the scores, `"min"` is the worst of them, and `"mean_minus_std"` is the mean less `k` standard deviations:
    completions about which the members disagree score less, which makes it harder to learn the faults of one member. The paper
    subtracts the variance instead, which does not have the unit of the scores. All members must score on one scale.

    `detail["disagreement"]` is the population standard deviation of the members' scores (0 if all agree), and `detail["mean"]`
    is their mean. If a member breaks, the verdict is a `VERIFIER_ERROR`.

    Args:
        parts: The members, by name or in order; at least two. See `verifiers.composition.Parts`.
        reduction: How the scores are combined into one.
        k: Number of standard deviations that `"mean_minus_std"` subtracts.

    Raises:
        InvalidArgumentError: If there are fewer than two members, or k is negative or not finite.
        UnknownNameError: If there is no such reduction.
    """

    @checked
    def __init__(self, parts: Parts, reduction: Reduction = "mean", k: Annotated[float, AtLeast(0)] = 1.0) -> None:
        super().__init__(parts)
        if len(self._parts) < 2:
            raise InvalidArgumentError(f"an ensemble needs at least two parts, got {list(self._parts)}")
        self._reduction = reduction
        self._k = k

    def verify_batch(self, completions: Sequence[str], problems: Sequence[Problem]) -> list[Verdict]:
        """Judge completion i against problem i."""
        return [self._reduced(verdicts) for verdicts in self._rows(completions, problems)]

    def _reduced(self, verdicts: Mapping[str, Verdict]) -> Verdict:
        detail: dict[str, object] = {"parts": reports(verdicts)}
        cost = total_cost(verdicts)
        if any(verdict.outcome is Outcome.VERIFIER_ERROR for verdict in verdicts.values()):
            return Verdict.of(Outcome.VERIFIER_ERROR, detail=detail, cost=cost)
        scores = [verdict.score for verdict in verdicts.values()]
        mean, disagreement = statistics.fmean(scores), statistics.pstdev(scores)
        detail |= {"mean": mean, "disagreement": disagreement}
        score = {"mean": mean, "min": min(scores), "mean_minus_std": mean - self._k * disagreement}[self._reduction]
        return Verdict(score, Outcome.SCORED, first_answer(verdicts), detail, cost=cost)
