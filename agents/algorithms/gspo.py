"""GSPO: Group Sequence Policy Optimization (Zheng et al. 2025, arXiv:2507.18071, equations 5, 7 and 14).

GSPO is GRPO with one ratio per completion, the geometric mean of its tokens' ratios. A completion is clipped as a whole, to a
much narrower range, since means vary less. The expected gradient has the biases of GRPO with the aggregation
`sequence-mean-token-mean`. The departures from the paper are the same as for GRPO, except that the aggregation is the paper's.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from agents.algorithms.grpo import GRPO, GRPOConfig
from agents.batch import Batch
from agents.deferred import torch
from agents.losses import Aggregation, clipped_tokens, sequence_clipped_surrogate, sequence_log_ratio

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True)
class GSPOConfig(GRPOConfig):
    """Settings of GSPO."""

    aggregation: Aggregation = Aggregation.SEQUENCE_MEAN_TOKEN_MEAN
    clip_low: float = 3e-4
    clip_high: float = 4e-4


class GSPO(GRPO):
    """GRPO with one ratio for each completion."""

    name = "gspo"
    config: GSPOConfig

    def loss(self, batch: Batch, logprobs: Tensor, advantages: Tensor) -> Tensor:
        """The clipped surrogate with the completion's ratio."""
        return sequence_clipped_surrogate(
            logprobs, batch.old, advantages, batch.loss_mask, self.config.clip_low, self.config.clip_high
        )

    def clipped(self, batch: Batch, logprobs: Tensor, advantages: Tensor) -> tuple[Tensor, Tensor]:
        """Return the tokens without a gradient because their completion's ratio is clipped."""
        sequence = sequence_log_ratio(logprobs, batch.old, batch.loss_mask).expand(logprobs.shape)
        return clipped_tokens(
            sequence, torch.zeros_like(sequence), advantages, self.config.clip_low, self.config.clip_high
        )
