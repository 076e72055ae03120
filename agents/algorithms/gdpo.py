"""GDPO: Group reward-Decoupled Normalization Policy Optimization (Liu et al. 2026, arXiv:2601.05242).

If the score is a weighted sum of several rewards, GRPO's z-score of the sum cannot tell their combinations apart, and the
reward with the largest spread dominates. GDPO normalises each reward within the group separately, and then normalises their
weighted sum over the batch. Departures from the paper are those of GRPO.
"""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from agents.advantages import multi_reward
from agents.algorithms.config_checks import require_plain_scores
from agents.algorithms.group_relative import ClippedGroupAgent, ClippedGroupConfig
from agents.batch import Batch
from agents.policies.trainable import TrainablePolicy
from agents.types import Sampler, Trajectory
from verifiers import InvalidArgumentError


@dataclass(frozen=True)
class GDPOConfig(ClippedGroupConfig):
    """Settings of GDPO."""

    def __post_init__(self) -> None:
        super().__post_init__()
        require_plain_scores(self, "GDPO compares the parts of a score rather than their sum")


_WITHOUT_PARTS = (
    "GDPO needs a score of several parts, the same in every verdict: give the environment "
    'verifier=("weighted_sum", {"parts": {...}})'
)


class GDPO(ClippedGroupAgent):
    """GRPO for several rewards, each normalised separately."""

    name = "gdpo"
    config: GDPOConfig

    def __init__(self, policy: TrainablePolicy, config: GDPOConfig, *, sampler: Sampler | None = None) -> None:
        super().__init__(policy, config, sampler=sampler)
        self._weights: dict[str, float] | None = None  # of each part, from the first verdict

    def check_episode(self, trajectory: Trajectory) -> None:
        """Reject a score without parts, or with other parts or weights than before."""
        if trajectory.errored:
            return
        if not trajectory.reward_parts:
            raise InvalidArgumentError(_WITHOUT_PARTS)
        weights = {name: weight for name, (_, weight) in trajectory.reward_parts.items()}
        if self._weights is None:
            self._weights = weights
        # The order matters: a batch stores them by index.
        if list(weights.items()) != list(self._weights.items()):
            raise InvalidArgumentError(
                f"{_WITHOUT_PARTS}; problem {trajectory.problem_id!r} has the weights {weights}, and earlier ones have "
                f"{self._weights}"
            )

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
