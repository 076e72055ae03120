"""PPO: Proximal Policy Optimization (Schulman et al. 2017, arXiv:1707.06347, algorithm 1, equations 7, 9 and 11).

Each batch is used for several optimiser steps. The clipped surrogate has no gradient once a token's probability has changed by
more than the clip range in the direction of the advantage. Advantages are generalised advantage estimates with a critic trained
beside the policy. For language models, `kl_coefficient` subtracts the estimated divergence from the reference policy from each
token's reward, with a weight that `kl_target` can adapt (Ouyang et al. 2022, arXiv:2203.02155).

One training step, and the functions that implement it:

    episodes       problems of the step, and seeds                       rollouts.problem_order.episodes_of_step
    trajectories   tokens ~ pi_old, scored by the verifier               rollouts.loop.rollout
    batch          padded tensors of tokens, rewards, masks              batch.make_batch
    pi_old         log-probabilities of the sampled tokens               learn.enrich.Enrichment
    V              values before each token                              learn.batch_passes.critic_reader
    r              rewards - beta * KL estimate                          learn.enrich.Enrichment, kl.kl_estimate
    A              sum of (gamma lambda)^k TD errors, then whitened      advantages.gae, advantages.whiten
    G              A + V before whitening: the critic's targets          algorithms.value_based.lambda_returns
    for each epoch, for each minibatch of completions:
        ratio      exp(log pi - log pi_old)                              policies.transformers.scoring.Scorer.read
        L          -min(ratio A, clip(ratio) A) + value and other terms  losses.clipped_surrogate, losses.squared_value_error
        gradient   of the mean of L over the minibatch's tokens          learn.learner.Learner.backward
        step       clip the gradient's norm, AdamW                       learn.learner.Learner.step

Three things bias the expected gradient: whitening, values of a critic with `gae_lambda` below 1, and the mean over the batch's
tokens. Without these (`whiten=False`, `gae_lambda=1`, `aggregation="sequence-mean-token-sum"`), the expected gradient is exact
on-policy.

Departures from the paper: advantages are whitened over the whole batch (Engstrom et al. 2020, arXiv:2005.12729, list such
implementation choices; most implementations whiten each minibatch). Value targets are not whitened. The default is one pass
over a batch, in four minibatches, while the paper makes 3 to 15 passes. From the early checkpoints of
benchmarks/learning_curves.py (one seed, 20 and 25 steps), greedy accuracy with one pass went from 0.82 to 0.92 on Sort and from
0.42 to 0.60 on Addition. With four passes, greedy accuracy went to 0.78 and 0.47 in three times the time, and the sampled
reward was the same within 0.03.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from agents.advantages import whiten
from agents.algorithms.value_based import VALUE_CONTROL, critic_advantages, lambda_returns
from agents.batch import Batch
from agents.kl import KLEstimator
from agents.learn.agent import Agent
from agents.losses import clipped_surrogate, clipped_tokens
from agents.settings.agent import AgentConfig
from agents.settings.learner import CriticConfig
from verifiers import Above, AtLeast, Between, InvalidArgumentError

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True)
class PPOConfig(AgentConfig):
    """Settings of PPO."""

    problems_per_step: int = 128
    group_size: int = 1
    epochs: int = 1
    """Number of passes over each batch; the paper makes 3 to 15."""
    minibatches: int = 4
    critic: CriticConfig | None = field(default_factory=lambda: CriticConfig(value_clip=0.2))
    kl_placement: Literal["loss", "reward"] = "reward"
    kl_estimator: KLEstimator = KLEstimator.K1
    gamma: Annotated[float, Between(0, 1)] = 1.0
    """Discount factor from one token to the next."""
    gae_lambda: Annotated[float, Between(0, 1)] = 0.95
    """Decay of generalised advantage estimation (lambda)."""
    whiten: bool = True
    """Whether advantages are normalised to mean 0 and standard deviation 1 over the batch's tokens."""
    clip_low: Annotated[float, Between(0, 1)] = 0.2
    """Lower clip range: the probability ratio is clipped at 1 - `clip_low`."""
    clip_high: Annotated[float, AtLeast(0, infinite=True)] = 0.2
    """Upper clip range: the probability ratio is clipped at 1 + `clip_high`."""
    dual_clip: Annotated[float | None, Above(1, infinite=True)] = None
    """Upper limit of the ratio of tokens with a negative advantage (Ye et al. 2020, arXiv:1912.09729), such as 3; None sets no
    limit."""

    control: ClassVar[Mapping[str, Any]] = {**VALUE_CONTROL, "epochs": 10}

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.critic is None:
            raise InvalidArgumentError("PPO needs a critic: set critic=CriticConfig(), or use GRPO, which has none")


class PPO(Agent):
    """Proximal Policy Optimization."""

    name = "ppo"
    config: PPOConfig

    def advantages(self, batch: Batch) -> Tensor:
        """Generalised advantage estimates, whitened."""
        advantages = critic_advantages(batch, gamma=self.config.gamma, gae_lambda=self.config.gae_lambda)
        return whiten(advantages, batch.loss_mask) if self.config.whiten else advantages

    def value_targets(self, batch: Batch) -> Tensor | None:
        """The lambda-returns: A_t + V_t, before whitening."""
        return lambda_returns(batch, gamma=self.config.gamma, gae_lambda=self.config.gae_lambda)

    def loss(self, batch: Batch, logprobs: Tensor, advantages: Tensor) -> Tensor:
        """The clipped surrogate."""
        config = self.config
        return clipped_surrogate(logprobs, batch.old, advantages, config.clip_low, config.clip_high, config.dual_clip)

    def clipped(self, batch: Batch, logprobs: Tensor, advantages: Tensor) -> tuple[Tensor, Tensor] | None:
        """Return the tokens at which the surrogate has no gradient."""
        return clipped_tokens(logprobs, batch.old, advantages, self.config.clip_low, self.config.clip_high)
