"""GDPO: Group reward-Decoupled Normalization Policy Optimization (Liu et al. 2026, arXiv:2601.05242).

Where the score is a weighted sum of several rewards, GRPO's z-score of the sum lets different combinations of them fall
together, and the reward with the largest spread rule. Here each reward is normalised within the group on its own; their
weighted sum is then normalised over the batch.
"""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from agents.advantages import multi_reward
from agents.batch import Batch
from agents.grpo import GRPO, GRPOConfig
from verifiers import InvalidArgumentError


@dataclass(frozen=True)
class GDPOConfig(GRPOConfig):
    """Settings of GDPO; its advantages have no use for `scale`."""


class GDPO(GRPO):
    """GRPO for several rewards, each normalised on its own."""

    name = "gdpo"
    config: GDPOConfig

    def relative_scores(self, batch: Batch) -> Tensor:
        """The weighted sum of the parts' z-scores, normalised over the batch.

        Raises:
            InvalidArgumentError: If the verdicts have no parts.
        """
        if not batch.valid.any():
            return batch.scores.nan_to_num(0.0)
        if batch.components is None or batch.component_weights is None:
            raise InvalidArgumentError(
                'GDPO needs a score of several parts in every verdict: give the environment verifier=("weighted_sum", {...})'
            )
        return multi_reward(batch.components, batch.component_weights, batch.groups, batch.valid)
