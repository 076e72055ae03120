"""GRPO: Group Relative Policy Optimization (Shao et al. 2024, "DeepSeekMath", arXiv:2402.03300, section 4.1).

For each problem a group of completions is sampled. The advantage of every token is the z-score of its completion's score within
the group. The loss is PPO's clipped surrogate, without a critic.

Departures from the paper: the losses are averaged over all tokens of the step. The paper averages over each completion's tokens
first, which favours short right and long wrong completions (arXiv:2503.20783); `aggregation="sequence-mean-token-mean"` does
this. Both means, and the division by the group's standard deviation, bias the direction of the expected gradient;
`scale="none"` with `aggregation="sequence-mean-token-sum"` has the direction of the exact gradient. Groups of equal scores get
exactly 0. There is no KL term unless `kl_coefficient` is set (0.04 in the paper). The paper's k3 estimate, as a term of the
loss, gives the gradient of the reverse divergence, KL(reference || policy); `kl_estimator="k3-ratio"` gives the gradient of
KL(policy || reference).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from agents.algorithms.group_relative import (
    ClippedGroupAgent,
    ClippedGroupConfig,
    Credit,
    Scale,
    credited,
    relative_to,
)
from agents.batch import Batch

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True)
class GRPOConfig(ClippedGroupConfig):
    """Settings of GRPO."""

    scale: Scale = "group-std"
    """Divisor of the difference between a score and the group's mean: the standard deviation of the group or of the batch
    (arXiv:2508.08221), or none (Dr. GRPO)."""
    credit: Credit = "completion"
    """Credit of a token, relative to the group: `completion` is the score of the whole completion, and `turn` is the rewards
    from the token's turn onwards, for environments of several turns with rewards between turns."""


class GRPO(ClippedGroupAgent):
    """Group Relative Policy Optimization."""

    name = "grpo"
    config: GRPOConfig

    def advantages(self, batch: Batch) -> Tensor:
        """The completion's score, or the rewards from the token's turn onwards, as a z-score within the group."""
        return credited(batch, self.config.credit, relative_to(self.config.scale))
