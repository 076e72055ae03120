"""Advantage actor-critic: A2C, the synchronous form of A3C (Mnih et al. 2016, arXiv:1602.01783, algorithm S3).

A2C with one-step errors is the plain actor-critic; see `actor_critic.py`.

The critic's value V of the state before a token is the baseline, and V of the state n tokens later estimates the rest of the
return: A_t = r_t + ... + g^(n-1) r_(t+n-1) + g^n V_(t+n) - V_t. `steps_ahead=1` gives the TD error. Without `steps_ahead`,
generalised advantage estimation (Schulman et al. 2015, arXiv:1506.02438) mixes the errors of all n; `gae_lambda=1` gives the
whole return minus the value.

Inexact values bias the expected gradient unless `gae_lambda` is 1. The mean over the batch's tokens also biases the gradient if
lengths differ.

Departures from the paper: Adam instead of RMSprop, whole episodes in each batch, and one update per batch of episodes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from agents.advantages import n_step
from agents.algorithms.value_based import VALUE_CONTROL, critic_advantages
from agents.batch import Batch
from agents.learn.agent import Agent
from agents.losses import Aggregation, policy_gradient
from agents.settings.agent import AgentConfig
from agents.settings.config_checks import NO_RATIO, require_defaults, require_one_step
from agents.settings.learner import CriticConfig
from verifiers import AtLeast, Between, InvalidArgumentError

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True)
class A2CConfig(AgentConfig):
    """Settings of A2C."""

    problems_per_step: int = 128
    group_size: int = 1
    aggregation: Aggregation = Aggregation.TOKEN_MEAN
    entropy_coefficient: float = 0.01
    critic: CriticConfig | None = field(default_factory=CriticConfig)
    gamma: Annotated[float, Between(0, 1)] = 1.0
    """Discount factor from one token to the next."""
    gae_lambda: Annotated[float, Between(0, 1)] = 1.0
    """Decay of generalised advantage estimation (lambda)."""
    steps_ahead: Annotated[int | None, AtLeast(1)] = None
    """Number of steps n of n-step advantages, which replace `gae_lambda`; None uses generalised advantage estimation."""

    control: ClassVar[Mapping[str, Any]] = {**VALUE_CONTROL, "gae_lambda": 0.95}

    def __post_init__(self) -> None:
        super().__post_init__()
        require_one_step(self, NO_RATIO)
        if self.critic is None:
            raise InvalidArgumentError("an actor-critic needs a critic: set critic=CriticConfig()")
        if self.steps_ahead is not None:
            require_defaults(self, ("gae_lambda",), "steps_ahead selects n-step advantages, which do not use it")


class A2C(Agent):
    """Advantage actor-critic."""

    name = "a2c"
    config: A2CConfig

    def advantages(self, batch: Batch) -> Tensor:
        """The n-step error of the critic, or the mixture of these errors over all n."""
        config = self.config
        if config.steps_ahead is None:
            return critic_advantages(batch, gamma=config.gamma, gae_lambda=config.gae_lambda)
        assert batch.values is not None
        return n_step(
            batch.rewards,
            batch.values,
            batch.loss_mask,
            config.steps_ahead,
            gamma=config.gamma,
            bootstrap=batch.bootstrap,
        )

    def value_targets(self, batch: Batch) -> Tensor | None:
        """The targets of the values: A_t + V_t."""
        assert batch.values is not None
        return self.advantages(batch) + batch.values

    def loss(self, batch: Batch, logprobs: Tensor, advantages: Tensor) -> Tensor:
        """-A_t log pi(y_t)."""
        return policy_gradient(logprobs, advantages)
