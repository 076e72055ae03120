"""MaxRL: Maximum Likelihood Reinforcement Learning (Tajwar et al. 2026, arXiv:2602.02710).

Reinforcement learning maximises the probability p of a right completion; supervised learning maximises log p. The gradient of
log p is the gradient of p divided by p, which equals the sum over j of (1 - p)^(j-1) grad p. The first term of this sum is the
plain policy gradient. In a group of G completions, the mean of (R_i - mean) / mean grad log pi(y_i) is an unbiased estimate of
the first G - 1 terms. Problems that are seldom solved get a larger weight.

Departures from the paper: the paper's estimator without the baseline also includes term G, but has a higher variance. The loss
is PPO's clipped surrogate, which has the same gradient on-policy.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from agents.advantages import maximum_likelihood
from agents.algorithms.group_relative import ClippedGroupAgent, ClippedGroupConfig, at_every_token
from agents.batch import Batch
from agents.losses import Aggregation
from agents.settings.config_checks import require_plain_scores
from agents.types import Trajectory
from verifiers import InvalidArgumentError

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True)
class MaxRLConfig(ClippedGroupConfig):
    """Settings of MaxRL; scores must not be negative."""

    aggregation: Aggregation = Aggregation.SEQUENCE_MEAN_TOKEN_SUM

    def __post_init__(self) -> None:
        super().__post_init__()
        require_plain_scores(self, "MaxRL divides by a mean that must be positive")


class MaxRL(ClippedGroupAgent):
    """GRPO whose advantages maximise the log-likelihood of right completions."""

    name = "maxrl"
    config: MaxRLConfig

    def check_episode(self, trajectory: Trajectory) -> None:
        """Reject a negative score."""
        if trajectory.score < 0:
            problem = f"problem {trajectory.problem_id!r}" if trajectory.problem_id else "an episode"
            raise InvalidArgumentError(
                "MaxRL needs scores of at least 0 (1 for a right completion, 0 for a wrong one), but that of "
                f"{problem} is {trajectory.score:.6g}: choose rewards that are never negative, or another agent, such as grpo"
            )

    def advantages(self, batch: Batch) -> Tensor:
        """(R - mean) / mean within the group."""
        return at_every_token(maximum_likelihood(batch.scores, batch.groups, batch.valid), batch)
