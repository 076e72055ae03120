"""GDPO: Group reward-Decoupled Normalization Policy Optimization (Liu et al. 2026, arXiv:2601.05242).

Where the score is a weighted sum of several rewards, GRPO's z-score of the sum lets different combinations of them fall
together, and the reward with the largest spread rule. Here each reward is normalised within the group on its own; their
weighted sum is then normalised over the batch. Departures from the paper are those of GRPO.
"""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from agents.advantages import multi_reward
from agents.batch import Batch
from agents.checks import require_plain_scores
from agents.grpo import GRPO, GRPOConfig
from agents.types import Trajectory
from verifiers import InvalidArgumentError


@dataclass(frozen=True)
class GDPOConfig(GRPOConfig):
    """Settings of GDPO; its advantages have no use for `scale`."""

    def __post_init__(self) -> None:
        super().__post_init__()
        require_plain_scores(self, "GDPO compares the parts of a score, not their sum")


_WITHOUT_PARTS = (
    "GDPO needs a score of several parts, the same in every verdict: give the environment "
    'verifier=("weighted_sum", {"parts": {...}})'
)


class GDPO(GRPO):
    """GRPO for several rewards, each normalised on its own."""

    name = "gdpo"
    config: GDPOConfig

    def check_episode(self, trajectory: Trajectory) -> None:
        """Refuse a score without parts."""
        if not trajectory.broken and not trajectory.reward_parts:
            raise InvalidArgumentError(_WITHOUT_PARTS)

    def relative_scores(self, batch: Batch) -> Tensor:
        """The weighted sum of the parts' z-scores, normalised over the batch.

        Raises:
            InvalidArgumentError: If the verdicts have no parts.
        """
        if not batch.valid.any():
            return batch.scores.nan_to_num(0.0)
        if batch.components is None or batch.component_weights is None:
            raise InvalidArgumentError(_WITHOUT_PARTS)
        return multi_reward(batch.components, batch.component_weights, batch.groups, batch.valid)
