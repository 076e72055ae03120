"""Base classes of agents that compare the completions of one problem, with and without PPO's clipped surrogate."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Literal

from agents.advantages import group_centered, group_centered_batch_std, group_z_score
from agents.batch import Batch
from agents.learn.agent import Agent
from agents.losses import clipped_surrogate, clipped_tokens
from agents.settings.agent import AgentConfig
from agents.settings.config_checks import require_groups
from agents.turns import Relative, turn_group_relative
from verifiers import AtLeast, Between

if TYPE_CHECKING:
    from torch import Tensor


Scale = Literal["group-std", "batch-std", "none"]
"""Divisor of the difference between a score and the group's mean: the standard deviation of the group or of the batch
(arXiv:2508.08221), or none (Dr. GRPO)."""
Credit = Literal["completion", "turn"]
"""The rewards that the tokens of a turn are credited with: all rewards of the completion, or only the rewards from the turn
onwards."""
_RELATIVE = {"group-std": group_z_score, "batch-std": group_centered_batch_std, "none": group_centered}


@dataclass(frozen=True)
class GroupConfig(AgentConfig):
    """Settings of an agent that compares scores in groups."""

    def __post_init__(self) -> None:
        super().__post_init__()
        require_groups(self.group_size)


class GroupAgent(Agent):
    """An agent whose advantages are relative to the group."""

    config: GroupConfig
    compares_groups = True
    advantages_from_rewards = True


@dataclass(frozen=True)
class ClippedGroupConfig(GroupConfig):
    """Settings of an agent that compares scores in groups and clips the ratio to the sampling policy."""

    clip_low: Annotated[float, Between(0, 1)] = 0.2
    """Lower clip range: the probability ratio is clipped at 1 - `clip_low`."""
    clip_high: Annotated[float, AtLeast(0, infinite=True)] = 0.2
    """Upper clip range: the probability ratio is clipped at 1 + `clip_high`."""


class ClippedGroupAgent(GroupAgent):
    """A `GroupAgent` with PPO's clipped surrogate, so that a batch can be used for several optimiser steps."""

    config: ClippedGroupConfig

    def loss(self, batch: Batch, logprobs: Tensor, advantages: Tensor) -> Tensor:
        """PPO's clipped surrogate."""
        return clipped_surrogate(logprobs, batch.old, advantages, self.config.clip_low, self.config.clip_high)

    def clipped(self, batch: Batch, logprobs: Tensor, advantages: Tensor) -> tuple[Tensor, Tensor] | None:
        """Return the tokens at which the surrogate has no gradient."""
        return clipped_tokens(logprobs, batch.old, advantages, self.config.clip_low, self.config.clip_high)


def relative_to(scale: Scale) -> Relative:
    """The function that subtracts the group's mean from a score and divides according to `scale`."""
    return _RELATIVE[scale]


def at_every_token(advantages: Tensor, batch: Batch) -> Tensor:
    """Expand the advantages f64[b] of completions to f64[b l], the same for every token."""
    return advantages[:, None].expand(batch.tokens.shape)


def credited(batch: Batch, credit: Credit, relative: Relative) -> Tensor:
    """The advantage f64[b l] of each token: the rewards that the token is credited with, relative to the group."""
    if credit == "turn":
        return turn_group_relative(batch.rewards, batch.loss_mask, batch.groups, batch.valid, relative=relative)
    return at_every_token(relative(batch.scores, batch.groups, batch.valid), batch)
