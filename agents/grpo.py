"""GRPO: Group Relative Policy Optimization (Shao et al. 2024, "DeepSeekMath", arXiv:2402.03300, section 4.1).

For each problem a group of completions is sampled. The advantage of every token of a completion is its score's z-score
within the group; the loss is PPO's clipped surrogate, with no critic.

Departures from the paper: no KL term and no reference policy; the losses are averaged over all tokens of the step and not
first over each completion's (arXiv:2503.20783 shows that this favours short right and long wrong completions; set
`aggregation="sequence-mean-token-mean"` for the paper's form); groups whose scores are all equal get exactly 0.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from torch import Tensor

from agents.advantages import group_centered, group_z_score
from agents.agent import Agent, AgentConfig
from agents.batch import Batch
from agents.losses import clipped_surrogate
from verifiers import InvalidArgumentError, unknown_name


@dataclass(frozen=True)
class GRPOConfig(AgentConfig):
    """Settings of GRPO."""

    scale: Literal["group-std", "none"] = "group-std"
    """Divide by the group's standard deviation, or not (Dr. GRPO)."""
    clip_low: float = 0.2
    """The ratio to the sampling policy counts from 1 - `clip_low`"""
    clip_high: float = 0.2
    """to 1 + `clip_high`."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.scale not in ("group-std", "none"):
            raise unknown_name("scale", self.scale, ["group-std", "none"])
        if self.group_size < 2:
            raise InvalidArgumentError(
                f"group_size is at least 2, since scores are compared in groups; got {self.group_size}"
            )
        if not (0 <= self.clip_low <= 1 and self.clip_high >= 0):
            raise InvalidArgumentError(
                f"clip_low is in [0, 1] and clip_high at least 0, got clip_low={self.clip_low}, clip_high={self.clip_high}"
            )


class GRPO(Agent):
    """Group Relative Policy Optimization."""

    name = "grpo"
    config: GRPOConfig

    def advantages(self, batch: Batch) -> Tensor:
        """The score relative to the group, the same for every token of a completion."""
        relative = group_z_score if self.config.scale == "group-std" else group_centered
        return relative(batch.scores, batch.groups, batch.valid)[:, None].expand(batch.tokens.shape)

    def loss(self, batch: Batch, logprobs: Tensor, advantages: Tensor) -> Tensor:
        """PPO's clipped surrogate."""
        return clipped_surrogate(logprobs, batch.logprobs, advantages, self.config.clip_low, self.config.clip_high)
