"""NPG: natural policy gradient (Kakade 2001, "A natural policy gradient").

The step is steepest in the space of distributions, whatever the parametrisation. The gradient g is multiplied by the inverse of
the Fisher matrix F, and conjugate gradients compute x = F^-1 g (`agents.learn.natural_gradient`). Each step is scaled to a mean
divergence KL(pi_old || pi) of `max_kl`, by the divergence's quadratic approximation (Rajeswaran et al. 2017, arXiv:1703.02660).

The divergence at each visited state is computed exactly, over all actions (the whole vocabulary). The gradient g has the biases
of PPO: whitening, values of a critic with `gae_lambda` below 1, and the mean over the batch's tokens.

Departures from the paper: the step length is normalised; whitened generalised advantage estimates of a critic replace action
values; and `damping` is added to the Fisher matrix's diagonal.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Self

from agents import learn
from agents.advantages import whiten
from agents.algorithms.value_based import VALUE_CONTROL, critic_advantages, lambda_returns
from agents.batch import Batch
from agents.deferred import torch
from agents.learn.agent import Agent
from agents.learn.learner import Loss
from agents.learn.metrics import pass_metrics
from agents.settings.agent import AgentConfig
from agents.settings.config_checks import require_defaults, require_on_policy, require_one_step
from agents.settings.learner import CriticConfig, LearnerConfig
from verifiers import Above, AtLeast, Between, InvalidArgumentError

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True)
class NPGConfig(AgentConfig):
    """Settings of the natural policy gradient.

    `max_kl` determines the step size, so the learner's learning rate, warm-up and schedule are not used; the critic has its
    own learning rate.
    """

    problems_per_step: int = 128
    group_size: int = 1
    critic: CriticConfig | None = field(default_factory=CriticConfig)
    value_steps: Annotated[int, AtLeast(0)] = 20
    """Number of optimiser steps of the critic on each batch, after the policy's step."""
    gamma: Annotated[float, Between(0, 1)] = 1.0
    """Discount factor from one token to the next."""
    gae_lambda: Annotated[float, Between(0, 1)] = 0.97
    """Decay of generalised advantage estimation (lambda)."""
    max_kl: Annotated[float, Above(0)] = 0.01
    """Mean KL divergence of one step, in nats per token."""
    damping: Annotated[float, AtLeast(0)] = 0.1
    """Multiple of the identity matrix to add to the Fisher matrix."""
    cg_iterations: Annotated[int, AtLeast(1)] = 10
    """Number of iterations of conjugate gradients."""
    control: ClassVar[Mapping[str, Any]] = {**VALUE_CONTROL, "learner": LearnerConfig()}

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.critic is None:
            raise InvalidArgumentError(f"{type(self).__name__} needs a critic: set critic=CriticConfig()")
        require_one_step(self, "the natural gradient takes one step on the whole batch")
        require_on_policy(self, "the natural gradient's metric is that of the policy that sampled")
        require_defaults(
            self.learner,
            ("learning_rate", "schedule", "warmup_steps", "skip_zero_advantages"),
            f"{type(self).__name__}: max_kl determines the step size, and critic=CriticConfig(critic_learning_rate=...) the "
            "learning rate of the critic",
        )

    def for_model(self, model: Any) -> Self:
        """Return these settings unchanged, since there is no learning rate to choose."""
        return self


class NPG(Agent):
    """Natural policy gradient."""

    name = "npg"
    needs_whole_weights = True
    config: NPGConfig

    def advantages(self, batch: Batch) -> Tensor:
        """Generalised advantage estimates, whitened."""
        advantages = critic_advantages(batch, gamma=self.config.gamma, gae_lambda=self.config.gae_lambda)
        return whiten(advantages, batch.loss_mask)

    def value_targets(self, batch: Batch) -> Tensor | None:
        """The lambda-returns: A_t + V_t, before whitening."""
        return lambda_returns(batch, gamma=self.config.gamma, gae_lambda=self.config.gae_lambda)

    def loss(self, batch: Batch, logprobs: Tensor, advantages: Tensor) -> Tensor:
        """The surrogate -ratio A, which has the policy gradient as its gradient at the old policy."""
        return -(logprobs - batch.old).exp() * advantages

    def optimize(self, batch: Batch, advantages: Tensor) -> dict[str, float]:
        """Take the natural gradient step, then fit the critic."""
        if not batch.loss_mask.any():
            return {"skipped": 1.0, "nonfinite_gradients": 0.0}
        metrics = self._surrogate(batch, advantages)
        gradient = learn.flat_gradient(self.policy)
        metrics["grad_norm"] = float(gradient.norm())
        finite = math.isfinite(metrics["grad_norm"])
        metrics["nonfinite_gradients"] = float(not finite)
        if finite and metrics["grad_norm"] > 0:
            metrics |= self._natural_step(batch, advantages, gradient, metrics["loss"])
        else:
            metrics["skipped"] = 1.0
        for _ in range(self.config.value_steps):
            nonfinite = metrics["nonfinite_gradients"]
            metrics |= self.learner.fit_critic(batch)
            metrics["nonfinite_gradients"] += nonfinite
        self.learner.steps += 1
        self.policy.weights_changed()
        return metrics

    def _natural_step(self, batch: Batch, advantages: Tensor, gradient: Tensor, before: float) -> dict[str, float]:
        product = self._fisher(batch)
        direction = learn.conjugate_gradient(product, gradient, self.config.cg_iterations)
        curvature = float(direction.dot(product(direction)))
        full = (2 * self.config.max_kl / (curvature + 1e-8)) ** 0.5 * direction
        if not bool(torch.isfinite(full).all()):
            return {"skipped": 1.0, "nonfinite_gradients": 1.0}
        old = learn.flat_parameters(self.policy)
        try:
            return self._move(batch, advantages, old, full, before)
        except BaseException:
            learn.set_flat_parameters(self.policy, old)
            self.learner.optimizer.zero_grad(set_to_none=True)
            raise

    def _fisher(self, batch: Batch) -> Callable[[Tensor], Tensor]:
        size, damping = self.config.learner.micro_batch_size, self.config.damping
        return lambda vector: learn.fisher_vector_product(self.policy, batch, vector, size) + damping * vector

    def _move(self, batch: Batch, advantages: Tensor, old: Tensor, full: Tensor, before: float) -> dict[str, float]:
        """Take the full step from the weights `old`, at which the surrogate has the value `before`."""
        learn.set_flat_parameters(self.policy, old - full)
        divergence = learn.mean_kl(self.policy, batch, old, self.config.learner.micro_batch_size)
        return {"kl_step": divergence, "skipped": 0.0}

    def _surrogate(self, batch: Batch, advantages: Tensor) -> dict[str, float]:
        """The loss of the whole batch, with entropy and KL terms. Its gradient is accumulated unless gradients are disabled."""
        sums = self.learner.backward(
            dataclasses.replace(batch, value_targets=None),
            advantages,
            Loss(self.updating.terms, self.config.aggregation, self.config.max_tokens),
        )
        return {"tokens": float(batch.loss_mask.sum()), **pass_metrics(sums)}
