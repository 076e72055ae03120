"""REINFORCE++ (Hu et al. 2025, arXiv:2501.03262).

REINFORCE++ is REINFORCE with those parts of PPO that need no critic. The estimated divergence from the reference policy is
subtracted from the reward of each token. Advantages are the returns from each token on, whitened over all tokens of the batch.
The loss is the clipped surrogate. The variant with a baseline (`group_size` above 1 and `group_baseline=True`) first subtracts
the mean score of the group from each score, for tasks with many completions per problem.

Two things bias the direction of the expected gradient: whitening by the mean and the standard deviation of the batch, and the
mean over the batch's tokens.

Departure from the paper: no KL term unless `kl_coefficient` is set.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Literal

from agents.advantages import group_centered, returns_to_go, whiten
from agents.batch import Batch
from agents.kl import KLEstimator
from agents.learn.agent import Agent
from agents.losses import clipped_surrogate, clipped_tokens
from agents.policies.trainable import TrainablePolicy
from agents.settings.agent import AgentConfig
from agents.settings.config_checks import require_defaults, require_groups
from agents.types import Sampler
from verifiers import AtLeast, Between

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True)
class ReinforcePlusPlusConfig(AgentConfig):
    """Settings of REINFORCE++."""

    problems_per_step: int = 128
    group_size: int = 1
    kl_placement: Literal["loss", "reward"] = "reward"
    kl_estimator: KLEstimator = KLEstimator.K1
    gamma: Annotated[float, Between(0, 1)] = 1.0
    """Discount factor from one token to the next."""
    group_baseline: bool = False
    """Whether to subtract the group's mean score from each score (REINFORCE++-baseline)."""
    clip_low: Annotated[float, Between(0, 1)] = 0.2
    """Lower clip range: the probability ratio is clipped at 1 - `clip_low`."""
    clip_high: Annotated[float, AtLeast(0, infinite=True)] = 0.2
    """Upper clip range: the probability ratio is clipped at 1 + `clip_high`."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.group_baseline:
            require_groups(self.group_size)
            require_defaults(self, ("gamma",), "group_baseline=True compares whole scores, without a discount")


class ReinforcePlusPlus(Agent):
    """REINFORCE with whitened advantages and a clipped loss."""

    name = "reinforce++"
    advantages_from_rewards = True
    config: ReinforcePlusPlusConfig

    def __init__(
        self, policy: TrainablePolicy, config: ReinforcePlusPlusConfig, *, sampler: Sampler | None = None
    ) -> None:
        super().__init__(policy, config, sampler=sampler)
        self.compares_groups = config.group_baseline

    def advantages(self, batch: Batch) -> Tensor:
        """The returns from each token on, or the scores relative to the group, whitened over the batch's tokens."""
        if self.config.group_baseline:
            relative = group_centered(batch.scores, batch.groups, batch.valid)
            return whiten(relative[:, None].expand(batch.tokens.shape), batch.loss_mask)
        return whiten(returns_to_go(batch.rewards, batch.loss_mask, self.config.gamma), batch.loss_mask)

    def loss(self, batch: Batch, logprobs: Tensor, advantages: Tensor) -> Tensor:
        """PPO's clipped surrogate."""
        return clipped_surrogate(logprobs, batch.old, advantages, self.config.clip_low, self.config.clip_high)

    def clipped(self, batch: Batch, logprobs: Tensor, advantages: Tensor) -> tuple[Tensor, Tensor] | None:
        """Return the tokens at which the surrogate has no gradient."""
        return clipped_tokens(logprobs, batch.old, advantages, self.config.clip_low, self.config.clip_high)
