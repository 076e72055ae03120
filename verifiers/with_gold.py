"""A verifier that trains on a proxy's score and also records the gold verifier's score."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from verifiers.composition import Composition, PartSpec, report, total_cost
from verifiers.types import Problem, Verdict


class WithGold(Composition):
    """Gives a proxy's verdict, with the gold verifier's verdict in `detail["gold"]` to show whether a run hacks the proxy.

    A proxy stands in for the intended reward in training: a reward model, a score that favours length, a verifier with a bug.
    The score, the outcome and the token scores come from the proxy alone. Training runs log the mean of the gold scores
    and their correlation with the proxy's (`gold_reward`, `gold_correlation`; Gao et al. 2023, arXiv:2210.10760). If the gold
    verifier breaks, the proxy's verdict is kept, and the gold score is None.

    Args:
        proxy: The verifier whose verdict counts.
        gold: The verifier whose score is only recorded.
    """

    def __init__(self, proxy: PartSpec, gold: PartSpec) -> None:
        super().__init__({"proxy": proxy, "gold": gold})

    def verify_batch(self, completions: Sequence[str], problems: Sequence[Problem]) -> list[Verdict]:
        """Judge completion i against problem i."""
        return [_beside(verdicts) for verdicts in self._rows(completions, problems)]


def _beside(verdicts: Mapping[str, Verdict]) -> Verdict:
    proxy = verdicts["proxy"]
    detail = {**proxy.detail, "gold": report(verdicts["gold"])}
    return Verdict(proxy.score, proxy.outcome, proxy.answer, detail, proxy.token_scores, total_cost(verdicts))
