"""OPO: On-Policy RL with Optimal reward baseline (Hao et al. 2025, arXiv:2505.23585).

The baseline of least variance weighs each completion's score by the square of its gradient, which grows about as its length:
so scores are compared with the length-weighted mean of their group. Exactly on-policy: one optimiser step for each batch, no
clipping, no KL term, no entropy bonus. Completions that `truncation="mask"` takes out have no gradient, so they have no
weight in the mean either.
"""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from agents.advantages import length_weighted
from agents.agent import Agent
from agents.batch import Batch
from agents.checks import require_groups, require_one_step
from agents.config import AgentConfig
from agents.losses import Aggregation, policy_gradient


@dataclass(frozen=True)
class OPOConfig(AgentConfig):
    """Settings of OPO."""

    aggregation: Aggregation = Aggregation.SEQUENCE_MEAN_TOKEN_SUM

    def __post_init__(self) -> None:
        super().__post_init__()
        require_groups(self.group_size)
        require_one_step(self, "OPO is exactly on-policy")


class OPO(Agent):
    """REINFORCE with the length-weighted mean of the group as baseline."""

    name = "opo"
    config: OPOConfig
    compares_groups = True

    def advantages(self, batch: Batch) -> Tensor:
        """The score less the length-weighted mean of its group, the same for every token of a completion."""
        lengths = batch.loss_mask.sum(dim=1)
        return length_weighted(batch.scores, lengths, batch.groups, batch.valid)[:, None].expand(batch.tokens.shape)

    def loss(self, batch: Batch, logprobs: Tensor, advantages: Tensor) -> Tensor:
        """-A log pi(y_t), summed over the completion."""
        return policy_gradient(logprobs, advantages)
