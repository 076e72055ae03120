"""`Learner`: from a loss to new weights. Micro-batches, gradient clipping and the schedule exist here once."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor

from agents.batch import Batch
from agents.losses import Aggregation, token_weights
from agents.policy import CausalLMPolicy
from verifiers import InvalidArgumentError, unknown_name

TokenLoss = Callable[[Batch, Tensor, Tensor], Tensor]
"""(micro-batch, log-probabilities f32[b t], advantages f64[b t]) -> loss f[b t] of each token."""

SCHEDULES = ("constant", "linear", "cosine")


@dataclass(frozen=True)
class LearnerConfig:
    """How weights are updated.

    Raises:
        InvalidArgumentError: If a value is out of range.
    """

    learning_rate: float = 1e-6
    weight_decay: float = 0.0
    beta1: float = 0.9
    beta2: float = 0.999
    max_grad_norm: float = 1.0
    """Gradients are scaled down to this global norm."""
    schedule: Literal["constant", "linear", "cosine"] = "constant"
    """Of the learning rate, from its full value to 0 at `schedule_steps`."""
    warmup_steps: int = 0
    schedule_steps: int | None = None
    """Optimiser steps of a whole run; needed unless the schedule is constant."""
    micro_batch_size: int = 64
    """Completions in one forward and backward pass; has no effect on the result beyond rounding."""

    def __post_init__(self) -> None:
        for name in ("learning_rate", "max_grad_norm", "micro_batch_size"):
            if not getattr(self, name) > 0:
                raise InvalidArgumentError(f"{name} is greater than 0, got {getattr(self, name)}")
        for name in ("weight_decay", "warmup_steps"):
            if not getattr(self, name) >= 0:
                raise InvalidArgumentError(f"{name} is at least 0, got {getattr(self, name)}")
        for name in ("beta1", "beta2"):
            if not 0 <= getattr(self, name) < 1:
                raise InvalidArgumentError(f"{name} is in [0, 1), got {getattr(self, name)}")
        if self.schedule not in SCHEDULES:
            raise unknown_name("schedule", self.schedule, SCHEDULES)
        if self.schedule != "constant" and self.schedule_steps is None:
            raise InvalidArgumentError(f"the {self.schedule} schedule needs schedule_steps")

    def learning_rate_at(self, step: int) -> float:
        """The learning rate of optimiser step `step`, the first being 0: a pure function, so resuming needs no state."""
        warm = min(1.0, (step + 1) / (self.warmup_steps + 1))
        if self.schedule == "constant" or self.schedule_steps is None:
            return self.learning_rate * warm
        progress = min(1.0, max(0, step - self.warmup_steps) / max(1, self.schedule_steps - self.warmup_steps))
        left = 1 - progress if self.schedule == "linear" else 0.5 * (1 + math.cos(math.pi * progress))
        return self.learning_rate * warm * left


class Learner:
    """Updates a policy's weights with AdamW.

    Args:
        policy: Whose weights learn.
        config: How.

    Raises:
        InvalidArgumentError: If the policy's temperature is 0.
    """

    def __init__(self, policy: CausalLMPolicy, config: LearnerConfig) -> None:
        if policy.temperature == 0:
            raise InvalidArgumentError("a policy at temperature 0 has no distribution to learn: give it one above 0")
        self.policy = policy
        self.config = config
        self.steps = 0
        """Optimiser steps done."""
        self.optimizer = torch.optim.AdamW(
            policy.parameters(),
            lr=config.learning_rate,
            betas=(config.beta1, config.beta2),
            weight_decay=config.weight_decay,
        )

    def step(
        self,
        batch: Batch,
        advantages: Tensor,
        loss: TokenLoss,
        *,
        aggregation: Aggregation,
        max_tokens: int | None = None,
    ) -> dict[str, float]:
        """Make one optimiser step.

        The weights of tokens come from the whole batch, so the gradient does not depend on micro-batches. A completion
        whose advantages are all 0 and which adds nothing to the gradient still counts in the denominators.

        Args:
            batch: b completions.
            advantages: f64[b l].
            loss: The loss of each token.
            aggregation: What is averaged over what.
            max_tokens: See `token_weights`.

        Returns:
            Metrics of this step; `loss` and `grad_norm` (before clipping) among them. A step whose gradient is not finite,
            or that has nothing to learn from, changes no weight and has `skipped` 1.
        """
        if not batch.loss_mask.any():
            return {"skipped": 1.0}
        weights = token_weights(
            batch.loss_mask, aggregation, num_completions=int(batch.valid.sum()), max_tokens=max_tokens
        )
        self.optimizer.zero_grad(set_to_none=True)
        sums: dict[str, float] = {}
        for rows in self._micro_batches(batch):
            part = batch.rows(rows)
            width = part.tokens.shape[1]
            for name, value in self._backward(part, advantages[rows, :width], weights[rows, :width], loss).items():
                sums[name] = (
                    _larger(sums.get(name, 0.0), value) if name.startswith("max_") else sums.get(name, 0.0) + value
                )
        return _averages(sums) | self._update()

    def _micro_batches(self, batch: Batch) -> Iterator[Tensor]:
        """Rows of similar length go together, for little padding; rows without a token to learn are left out."""
        order = batch.lengths.argsort(descending=True, stable=True).cpu()
        order = order[batch.loss_mask.any(dim=1).cpu()[order]]
        yield from order.split(self.config.micro_batch_size)

    def _backward(self, part: Batch, advantages: Tensor, weights: Tensor, loss: TokenLoss) -> dict[str, float]:
        part = part.to(self.policy.model.device)
        first = part.first
        legal = part.legal_tokens(first, self.policy.vocab_size)
        logprobs, entropy = self.policy.logprobs_and_entropy(part.tokens, first, legal)
        tail = _from(part, first)
        mask = tail.loss_mask
        # Off the mask log-probabilities mean nothing and may be infinite, so they are taken out before the loss sees them.
        logprobs = torch.where(mask, logprobs, 0.0)
        per_token = loss(tail, logprobs, advantages[:, first:].to(logprobs.device))
        total = (torch.where(mask, per_token, 0.0).double() * weights[:, first:].to(logprobs.device)).sum()
        total.backward()
        with torch.no_grad():
            difference = torch.where(mask, logprobs - tail.logprobs, 0.0).double()
            return {
                "loss": float(total),
                "tokens": float(mask.sum()),
                "entropy_sum": float(torch.where(mask, entropy, 0.0).sum()),
                "k3_sum": float((difference.expm1() - difference).sum()),
                "max_abs_logprob_difference": float(difference.abs().max()),
            }

    def _update(self) -> dict[str, float]:
        rate = self.config.learning_rate_at(self.steps)
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        norm = float(torch.nn.utils.clip_grad_norm_(self.policy.parameters(), self.config.max_grad_norm))
        finite = math.isfinite(norm)
        if finite:
            self.optimizer.step()
        self.steps += 1
        self.policy.weights_changed()
        return {"grad_norm": norm, "learning_rate": rate, "skipped": float(not finite)}

    def state_dict(self) -> dict[str, Any]:
        """All that the next step depends on, beside the weights."""
        return {"steps": self.steps, "version": self.policy.version, "optimizer": self.optimizer.state_dict()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from a state of `state_dict`."""
        self.optimizer.load_state_dict(state["optimizer"])
        self.steps = state["steps"]
        self.policy.weights_changed()
        self.policy.version = state["version"]


def _from(batch: Batch, first: int) -> Batch:
    """Cut the per-token tensors to positions `first` and later."""
    parts: Sequence[str] = ("tokens", "loss_mask", "logprobs", "rewards")
    return Batch(
        **{name: getattr(batch, name)[:, first:] for name in parts},
        lengths=batch.lengths,
        scores=batch.scores,
        valid=batch.valid,
        groups=batch.groups,
    )


def _larger(one: float, other: float) -> float:
    """The larger number, or NaN if either is."""
    return other if math.isnan(other) else one if math.isnan(one) else max(one, other)


def _averages(sums: dict[str, float]) -> dict[str, float]:
    tokens = max(sums.get("tokens", 0.0), 1.0)
    return {
        "loss": sums.get("loss", 0.0),
        "tokens": sums.get("tokens", 0.0),
        "entropy": sums.get("entropy_sum", 0.0) / tokens,
        "kl_behaviour": sums.get("k3_sum", 0.0) / tokens,
        "max_abs_logprob_difference": sums.get("max_abs_logprob_difference", 0.0),
    }
