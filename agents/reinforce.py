"""REINFORCE (Williams 1992, "Simple statistical gradient-following algorithms for connectionist reinforcement learning").

The gradient of the expected return is E[sum_t (G_t - b) grad log pi(y_t)], estimated from on-policy episodes, where G_t is
the discounted reward from token t on (the causal form; the paper credits every decision with the whole return) and b a
baseline that does not depend on the episode's own tokens.

With a discount below 1 the factor discount^t of that gradient is left out, as is usual.

Departures from the paper: Adam in place of plain gradient ascent, and a batch of episodes for each update. The batch-mean
baseline includes the episode itself, which scales the gradient by (n - 1) / n and leaves its direction unbiased.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from torch import Tensor

from agents.advantages import batch_mean_baseline, returns_to_go
from agents.agent import Agent, AgentConfig
from agents.batch import Batch
from agents.losses import Aggregation, policy_gradient
from verifiers import InvalidArgumentError, unknown_name


@dataclass(frozen=True)
class ReinforceConfig(AgentConfig):
    """Settings of REINFORCE."""

    group_size: int = 1
    aggregation: Aggregation = Aggregation.SEQUENCE_MEAN_TOKEN_SUM
    discount: float = 1.0
    """Per token."""
    baseline: Literal["none", "batch-mean"] = "batch-mean"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.baseline not in ("none", "batch-mean"):
            raise unknown_name("baseline", self.baseline, ["none", "batch-mean"])
        if not 0 <= self.discount <= 1:
            raise InvalidArgumentError(f"discount is in [0, 1], got {self.discount}")


class Reinforce(Agent):
    """REINFORCE with reward-to-go."""

    name = "reinforce"
    config: ReinforceConfig

    def advantages(self, batch: Batch) -> Tensor:
        """The return from each token on, less the baseline."""
        returns = returns_to_go(batch.rewards, batch.loss_mask, self.config.discount)
        if self.config.baseline == "none":
            return returns
        return returns - batch_mean_baseline(batch.scores, batch.valid)

    def loss(self, batch: Batch, logprobs: Tensor, advantages: Tensor) -> Tensor:
        """-A_t log pi(y_t)."""
        return policy_gradient(logprobs, advantages)
