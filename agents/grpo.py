"""GRPO: Group Relative Policy Optimization (Shao et al. 2024, "DeepSeekMath", arXiv:2402.03300, section 4.1).

For each problem a group of completions is sampled. The advantage of every token of a completion is its score's z-score
within the group; the loss is PPO's clipped surrogate, with no critic.

Departures from the paper: the losses are averaged over all tokens of the step; the paper averages over each completion's
tokens first, which favours short right and long wrong completions (arXiv:2503.20783), and which
`aggregation="sequence-mean-token-mean"` brings back. Groups whose scores are all equal get exactly 0. There is no KL term
unless `kl_coefficient` is set (the paper: 0.04). The paper's k3 estimate as a term of the loss gives the gradient of the other
direction of the divergence, KL(reference || policy); `kl_estimator="k3-ratio"` gives that of KL(policy || reference).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from torch import Tensor

from agents.advantages import group_centered, group_centered_batch_std, group_z_score
from agents.agent import Agent
from agents.batch import Batch
from agents.checks import require_choice, require_clip, require_groups
from agents.config import AgentConfig
from agents.losses import clipped_surrogate, clipped_tokens

Scale = Literal["group-std", "batch-std", "none"]
_RELATIVE = {"group-std": group_z_score, "batch-std": group_centered_batch_std, "none": group_centered}


@dataclass(frozen=True)
class GRPOConfig(AgentConfig):
    """Settings of GRPO."""

    scale: Scale = "group-std"
    """Divide by the group's standard deviation, by that of the batch (arXiv:2508.08221), or not (Dr. GRPO)."""
    clip_low: float = 0.2
    """The ratio to the sampling policy counts from 1 - `clip_low`"""
    clip_high: float = 0.2
    """to 1 + `clip_high`."""

    def __post_init__(self) -> None:
        super().__post_init__()
        require_choice("scale", self.scale, get_args(Scale))
        require_groups(self.group_size)
        require_clip(self.clip_low, self.clip_high)


class GRPO(Agent):
    """Group Relative Policy Optimization."""

    name = "grpo"
    config: GRPOConfig
    compares_groups = True

    def advantages(self, batch: Batch) -> Tensor:
        """The score relative to the group, the same for every token of a completion."""
        return self.relative_scores(batch)[:, None].expand(batch.tokens.shape)

    def relative_scores(self, batch: Batch) -> Tensor:
        """The advantage f64[b] of each completion."""
        return _RELATIVE[self.config.scale](batch.scores, batch.groups, batch.valid)

    def loss(self, batch: Batch, logprobs: Tensor, advantages: Tensor) -> Tensor:
        """PPO's clipped surrogate."""
        return clipped_surrogate(logprobs, batch.old, advantages, self.config.clip_low, self.config.clip_high)

    def clipped(self, batch: Batch, logprobs: Tensor, advantages: Tensor) -> tuple[Tensor, Tensor] | None:
        """Where the surrogate has no gradient."""
        return clipped_tokens(logprobs, batch.old, advantages, self.config.clip_low, self.config.clip_high)
