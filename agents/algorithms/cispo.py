"""CISPO: Clipped Importance Sampling Policy Optimization (MiniMax 2025, "MiniMax-M1", arXiv:2506.13585, equations 4 and 5).

PPO's clipping of the surrogate removes the gradient of exactly the tokens whose probability has changed most. CISPO caps the
importance weight instead, so that every token keeps its gradient: -min(ratio, is_cap) A log pi, in which the weight is a
constant. The expected gradient has the biases of GRPO.

Departure from the paper: DAPO's dynamic sampling and length penalty, which the paper uses, are omitted. The penalty is
available as `truncation="soft-overlong"`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from agents.algorithms.group_relative import (
    Credit,
    GroupAgent,
    GroupConfig,
    Scale,
    credited,
    relative_to,
)
from agents.batch import Batch
from agents.deferred import torch
from agents.losses import cispo
from verifiers import Above

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True)
class CISPOConfig(GroupConfig):
    """Settings of CISPO."""

    scale: Scale = "group-std"
    """Divisor of the difference between a score and the group's mean: the standard deviation of the group or of the batch, or
    none."""
    credit: Credit = "completion"
    """Credit of a token, relative to the group: `completion` is the score of the whole completion, and `turn` is the rewards
    from the token's turn onwards, for environments of several turns with rewards between turns."""
    is_cap: Annotated[float, Above(0, infinite=True)] = 5.0
    """Largest importance weight. The limit is on the ratio itself, not on its distance from 1."""


class CISPO(GroupAgent):
    """GRPO with capped importance weights in place of the clipped surrogate."""

    name = "cispo"
    config: CISPOConfig

    def advantages(self, batch: Batch) -> Tensor:
        """The completion's score, or the rewards from the token's turn onwards, as a z-score within the group."""
        return credited(batch, self.config.credit, relative_to(self.config.scale))

    def loss(self, batch: Batch, logprobs: Tensor, advantages: Tensor) -> Tensor:
        """-min(ratio, is_cap) A_t log pi(y_t)."""
        return cispo(logprobs, batch.old, advantages, self.config.is_cap)

    def clipped(self, batch: Batch, logprobs: Tensor, advantages: Tensor) -> tuple[Tensor, Tensor]:
        """Return the tokens at which the weight is capped; they keep their gradient."""
        capped = (logprobs - batch.old).exp() > self.config.is_cap
        return torch.zeros_like(capped), capped
