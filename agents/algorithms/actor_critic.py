"""Actor-critic (Barto, Sutton and Anderson 1983; Sutton and Barto 2018, section 13.5).

The critic's value V of the state before a token is the baseline, and V of the state after the token estimates the rest of the
return. The advantage is the TD error, A_t = r_t + g V_(t+1) - V_t, which has less variance than the whole return but is biased
if the critic is wrong. The critic learns the one-step return r_t + g V_(t+1). With eligibility traces, as in the paper, later
errors contribute with a weight that decays by `trace_decay` for each token: A_t = sum over k of (g trace_decay)^k times the
error k tokens later.

A2C differs by an entropy bonus, whole returns by default, and n-step errors.

Departures from the paper: the default is `trace_decay=0.95`. With the paper's value, 0, the first tokens of a completion learn
only through a critic that is still untrained: from the early checkpoint of benchmarks/learning_curves.py (Addition, 25 steps of
128 completions, one seed) greedy accuracy fell from 0.42 to 0.10 with 0, and rose to 0.66 with `trace_decay=1`. Also, traces
are in their forward view (GAE, arXiv:1506.02438), Adam replaces plain gradient steps, each batch has whole episodes with the
values before the update, and the book's factor gamma^t is omitted.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from agents.algorithms.value_based import VALUE_CONTROL, critic_advantages, lambda_returns
from agents.batch import Batch
from agents.learn.agent import Agent
from agents.losses import policy_gradient
from agents.settings.agent import AgentConfig
from agents.settings.config_checks import NO_RATIO, require_one_step
from agents.settings.learner import CriticConfig
from verifiers import Between, InvalidArgumentError

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True)
class ActorCriticConfig(AgentConfig):
    """Settings of the actor-critic."""

    problems_per_step: int = 128
    group_size: int = 1
    critic: CriticConfig | None = field(default_factory=CriticConfig)
    gamma: Annotated[float, Between(0, 1)] = 1.0
    """Discount factor from one token to the next."""
    trace_decay: Annotated[float, Between(0, 1)] = 0.95
    """Decay of the eligibility traces (lambda); 0 uses one-step errors, which need an accurate critic."""

    control: ClassVar[Mapping[str, Any]] = VALUE_CONTROL

    def __post_init__(self) -> None:
        super().__post_init__()
        require_one_step(self, NO_RATIO)
        if self.critic is None:
            raise InvalidArgumentError("an actor-critic needs a critic: set critic=CriticConfig()")


class ActorCritic(Agent):
    """Policy gradient with TD errors of a critic."""

    name = "actor-critic"
    config: ActorCriticConfig

    def advantages(self, batch: Batch) -> Tensor:
        """The TD error r_t + g V_(t+1) - V_t or, with traces, the decayed sum of this error and all later errors."""
        return critic_advantages(batch, gamma=self.config.gamma, gae_lambda=self.config.trace_decay)

    def value_targets(self, batch: Batch) -> Tensor | None:
        """The one-step return r_t + g V_(t+1) or, with traces, the lambda-return."""
        return lambda_returns(batch, gamma=self.config.gamma, gae_lambda=self.config.trace_decay)

    def loss(self, batch: Batch, logprobs: Tensor, advantages: Tensor) -> Tensor:
        """-A_t log pi(y_t)."""
        return policy_gradient(logprobs, advantages)
