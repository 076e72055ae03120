"""OPO: On-Policy RL with Optimal reward baseline (Hao et al. 2025, arXiv:2505.23585).

The minimum-variance baseline weights each completion's score by the squared norm of the completion's gradient, which grows
roughly with the length. So scores are compared with the length-weighted mean of the group. OPO is exactly on-policy. There is
one optimiser step per batch, and no clipping, KL term or entropy bonus.

Departures from the paper: KL term and entropy bonus are available, as for every agent, but off by default. Groups of equal
scores get exactly 0. As in the paper, the baseline includes the completion's own score, which biases the gradient: its size by
a share of about 1 / `group_size`, and its direction if lengths differ. Completions that `truncation="mask"` excludes have no
gradient, and therefore no weight in the mean.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from agents.advantages import length_weighted
from agents.algorithms.group_relative import GroupAgent, GroupConfig, at_every_token
from agents.batch import Batch
from agents.losses import Aggregation, policy_gradient
from agents.settings.config_checks import require_on_policy, require_one_step

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True)
class OPOConfig(GroupConfig):
    """Settings of OPO."""

    aggregation: Aggregation = Aggregation.SEQUENCE_MEAN_TOKEN_SUM

    def __post_init__(self) -> None:
        super().__post_init__()
        require_one_step(self, "OPO is exactly on-policy")
        require_on_policy(self, "OPO is exactly on-policy")


class OPO(GroupAgent):
    """REINFORCE with the length-weighted mean of the group as baseline."""

    name = "opo"
    config: OPOConfig

    def advantages(self, batch: Batch) -> Tensor:
        """The score minus the length-weighted mean of its group."""
        return at_every_token(
            length_weighted(batch.scores, batch.loss_mask.sum(dim=1), batch.groups, batch.valid), batch
        )

    def loss(self, batch: Batch, logprobs: Tensor, advantages: Tensor) -> Tensor:
        """-A log pi(y_t), summed over the completion."""
        return policy_gradient(logprobs, advantages)
