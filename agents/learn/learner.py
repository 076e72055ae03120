"""`Learner`: optimiser steps, with micro-batches, gradient clipping and the learning-rate schedule."""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from agents.batch import Batch
from agents.deferred import torch
from agents.distributed.parts import divided_like, load_weights
from agents.distributed.ranks import active_ranks
from agents.distributed.weights import is_sharded, sum_gradients
from agents.interrupts import interrupts_deferred
from agents.learn import contexts
from agents.learn.batch_passes import own_micro_batches, own_passes
from agents.learn.metrics import pass_metrics, pass_sums
from agents.losses import squared_value_error, token_weights
from agents.policies.trainable import TokenOutputs, TrainablePolicy
from agents.settings.choices import Aggregation
from agents.settings.learner import CriticConfig, LearnerConfig
from verifiers import InvalidArgumentError
from verifiers.devices import float64_device

if TYPE_CHECKING:
    from torch import Tensor

    from agents.learn.critic import Critic


TokenLoss = Callable[[Batch, TokenOutputs, "Tensor"], Mapping[str, "Tensor"]]
"""Maps (micro-batch, the policy's outputs at its t tokens, advantages f64[b t]) to terms f[b t], whose sum is the loss."""

ClippedTokens = Callable[[Batch, "Tensor", "Tensor"], "tuple[Tensor, Tensor] | None"]
"""Maps (micro-batch, log-probabilities f[b t], advantages f64[b t]) to where the loss is clipped from below and above, bool[b
t] each.
"""


@dataclass(frozen=True)
class Loss:
    """The loss that an optimiser step minimises: the losses of tokens and their aggregation."""

    terms: TokenLoss
    """The terms of each token's loss."""
    aggregation: Aggregation
    """How the losses of the tokens are reduced to one loss."""
    max_tokens: int | None = None
    """The constant length of some aggregations; see `agents.losses.token_weights`."""
    clipped: ClippedTokens | None = None
    """Returns where the loss is clipped, for metrics."""
    vanishes_without_advantage: bool = False
    """Whether the gradient of a token's loss is 0 if its advantage is 0."""
    ratios_are_one: bool = False
    """For batches without `old_logprobs`: whether probability ratios are relative to the same pass that computes them (True) or
    to the sampler's log-probabilities (False)."""


class Learner:
    """Updates the weights of a policy, and of its critic if it has one, with AdamW.

    Args:
        policy: The policy to train.
        config: Settings of the optimiser.
        critic: The critic to train together with the policy, if any.
        critic_config: Settings of the critic.

    Raises:
        InvalidArgumentError: If the policy's temperature is 0.
    """

    def __init__(
        self,
        policy: TrainablePolicy,
        config: LearnerConfig,
        critic: Critic | None = None,
        critic_config: CriticConfig | None = None,
    ) -> None:
        if policy.temperature == 0:
            raise InvalidArgumentError("a policy at temperature 0 can't be trained: set a temperature above 0")
        self.policy = policy
        self.config = config = config.for_model(policy.model)
        self.critic = critic
        self.critic_config = critic_config or CriticConfig()
        self.steps = 0
        """Number of optimiser steps done."""
        self.run_steps: int | None = None
        """Number of optimiser steps of the whole run, for schedules if `schedule_steps` is None; None if unknown."""
        groups: list[dict[str, Any]] = [{"params": policy.parameters(), "lr": config.learning_rate}]
        if critic is not None:
            groups.append({"params": list(critic.parameters()), "lr": self.critic_config.learning_rate})
        self._full_rates = [group["lr"] for group in groups]
        self.optimizer = torch.optim.AdamW(
            groups,
            betas=(config.beta1, config.beta2),
            weight_decay=config.weight_decay,
            # On a CPU the fused kernel makes one pass over the weights instead of one for each operation.
            fused=True if policy.fast and policy.device.type == "cpu" else None,
        )

    def step(self, batch: Batch, advantages: Tensor, loss: Loss) -> dict[str, float]:
        """Make one optimiser step.

        The weights of tokens come from the whole batch, so the gradient does not depend on micro-batches. Skipped completions
        with zero advantages still count in the denominators. The values of a critic are fitted to `batch.value_targets` by
        the mean over all tokens, whatever the aggregation.

        Args:
            batch: The b completions of the step.
            advantages: Their advantages, f64[b l].
            loss: The loss to minimise.

        After an error no gradient is left and nothing else has changed; SIGINT and SIGTERM are deferred while weights change.
        Only an error inside the optimiser itself, such as a GPU running out of memory, may leave partially updated weights.

        Returns:
            Metrics of this step, including `loss` and `grad_norm` (before clipping). A step whose gradient is not finite, or
            without any token on the loss mask, changes no weight and has `skipped` 1; `nonfinite_gradients` distinguishes
            the two.
        """
        if not batch.loss_mask.any():
            return {"skipped": 1.0, "nonfinite_gradients": 0.0}
        sums = self.backward(batch, advantages, loss)
        with self._no_gradient_after_errors(), interrupts_deferred():
            return {"tokens": float(batch.loss_mask.sum()), **pass_metrics(sums), **self.update()}

    @contextmanager
    def _no_gradient_after_errors(self) -> Iterator[None]:
        try:
            yield
        except BaseException:
            self.optimizer.zero_grad(set_to_none=True)
            raise

    def backward(self, batch: Batch, advantages: Tensor, loss: Loss) -> list[dict[str, float]]:
        """Compute the gradient of a whole batch's loss; see `step`, which then updates the weights.

        Returns:
            Sums over each micro-batch, for `pass_metrics`. Like the gradient, they cover all ranks.
        """
        completions = int(batch.valid.sum())
        weights = token_weights(
            batch.loss_mask, loss.aggregation, num_completions=completions, max_tokens=loss.max_tokens
        )
        num_tokens = int(batch.loss_mask.sum())
        self.optimizer.zero_grad(set_to_none=True)
        sums: list[dict[str, float]] = []
        with self._no_gradient_after_errors():
            keep = self._rows_with_gradient(advantages, loss)
            for rows, counts in own_passes(batch, self.config.micro_batch_size, keep):
                micro_batch = batch.rows(rows)
                width = micro_batch.tokens.shape[1]
                passed = self._backward(
                    micro_batch, advantages[rows, :width], weights[rows, :width], num_tokens, loss, counts=counts
                )
                sums += [passed] if counts else []
            return self._over_all_ranks(sums)

    def _over_all_ranks(self, sums: list[dict[str, float]]) -> list[dict[str, float]]:
        """Sum the gradients of all ranks, and return the sums of all ranks' micro-batches."""
        ranks = active_ranks()
        sum_gradients(ranks, self._parameters())
        return list(itertools.chain.from_iterable(ranks.gather(sums)))

    def _parameters(self) -> list[torch.nn.Parameter]:
        """The weights in the order of the optimiser's state."""
        return [parameter for group in self.optimizer.param_groups for parameter in group["params"]]

    def _rows_with_gradient(self, advantages: Tensor, loss: Loss) -> Tensor | None:
        """The completions bool[b] whose loss may have a gradient; None for all."""
        skips = self.config.skip_zero_advantages and loss.vanishes_without_advantage and self.critic is None
        return (advantages != 0).any(dim=1) if skips else None

    def _backward(
        self,
        micro_batch: Batch,
        advantages: Tensor,
        weights: Tensor,
        num_tokens: int,
        loss: Loss,
        *,
        counts: bool = True,
    ) -> dict[str, float]:
        micro_batch = micro_batch.to(self.policy.device)
        first = micro_batch.first
        reads = self.critic is not None and self.critic.reads_policy
        outputs = contexts.read(self.policy, micro_batch, with_states=reads)
        wide = float64_device(self.policy.device)
        tail = sampled = micro_batch.to(wide).positions_from(first)
        mask = tail.loss_mask
        # Outside the mask log-probabilities are meaningless and may be infinite, so they are replaced before the loss.
        outputs = dataclasses.replace(
            outputs,
            logprobs=torch.where(mask, outputs.logprobs.to(wide), 0.0),
            entropy=torch.where(mask, outputs.entropy.to(wide), 0.0),
        )
        if loss.ratios_are_one and sampled.old_logprobs is None:
            tail = dataclasses.replace(sampled, old_logprobs=outputs.logprobs.detach())
        advantages, scale = advantages[:, first:].to(wide), weights[:, first:].to(wide)
        terms = {
            name: (torch.where(mask, term, 0.0).double() * scale).sum()
            for name, term in loss.terms(tail, outputs, advantages).items()
        }
        total = torch.stack(list(terms.values())).sum()
        fits = self.critic is not None and tail.value_targets is not None
        sums = {f"loss/{name}": float(term.detach()) for name, term in terms.items()} if fits or len(terms) > 1 else {}
        if self.critic is not None and tail.value_targets is not None:
            values = contexts.values(self.critic, micro_batch, outputs.states)[:, :-1]
            error = self._value_error(tail, values.to(wide))
            total = total + self.critic_config.value_coefficient * error.sum() / num_tokens
            sums["loss/value"] = float(error.detach().sum()) / num_tokens
        if total.requires_grad:
            (total if counts else 0 * total).backward()
        if not counts:
            return {}
        with torch.no_grad():
            where = None if loss.clipped is None else loss.clipped(tail, outputs.logprobs, advantages)
            return {"loss": float(total), **sums, **pass_sums(tail, outputs, where, sampled)}

    def _value_error(self, tail: Batch, values: Tensor) -> Tensor:
        """The error f64[b t] of the critic's values, 0 outside the mask."""
        assert tail.value_targets is not None
        clip = self.critic_config.value_clip
        old = None if clip is None else tail.values
        error = squared_value_error(values.double(), tail.value_targets, old, clip)
        return torch.where(tail.loss_mask, error, 0.0)

    def fit_critic(self, batch: Batch) -> dict[str, float]:
        """Make one optimiser step of only the critic's own weights, at its full learning rate.

        Returns:
            `loss/value`, the mean error before the step, `grad_norm/critic`, `learning_rate/critic`, and
            `nonfinite_gradients`, 1 if the step was skipped.
        """
        assert self.critic is not None
        self.optimizer.zero_grad(set_to_none=True)
        num_tokens = int(batch.loss_mask.sum())
        total = 0.0
        with self._no_gradient_after_errors():
            for rows in own_micro_batches(
                batch, self.config.micro_batch_size
            ):  # no agent with divided weights calls this
                micro_batch = batch.rows(rows).to(self.policy.device)
                first = micro_batch.first
                states = None
                if self.critic.reads_policy:
                    with torch.no_grad():
                        states = contexts.read_states(self.policy, micro_batch)
                values = contexts.values(self.critic, micro_batch, states)[:, :-1]
                wide = float64_device(self.policy.device)
                tail = micro_batch.to(wide).positions_from(first)
                error = self._value_error(tail, values.to(wide)).sum() / num_tokens
                error.backward()
                total += float(error.detach())
            total = sum(sums["loss/value"] for sums in self._over_all_ranks([{"loss/value": total}]))
            norm = _clip(list(self.critic.parameters()), self.config.max_grad_norm)
            if math.isfinite(norm):
                with interrupts_deferred():
                    self.optimizer.step()
        return {
            "loss/value": total,
            "grad_norm/critic": norm,
            "learning_rate/critic": self.optimizer.param_groups[-1]["lr"],
            "nonfinite_gradients": float(not math.isfinite(norm)),
        }

    def update(self) -> dict[str, float]:
        """Make an optimiser step with the current gradients; see `step`, which computes them first."""
        rate = self.config.learning_rate_at(self.steps, self.run_steps)
        for group, full in zip(self.optimizer.param_groups, self._full_rates, strict=True):
            group["lr"] = full * rate / self._full_rates[0]
        norm = _clip(self.policy.parameters(), self.config.max_grad_norm)
        metrics = {"grad_norm": norm, "learning_rate": rate}
        if self.critic is not None:
            metrics["grad_norm/critic"] = _clip(list(self.critic.parameters()), self.config.max_grad_norm)
        norms = (norm, metrics.get("grad_norm/critic", 0.0))
        # Skip a gradient that is 0 everywhere, since AdamW's moments of earlier gradients would still change the weights.
        finite = all(map(math.isfinite, norms))
        learns = finite and any(norms)
        if learns:
            self.optimizer.step()
        self.steps += 1
        self.policy.weights_changed()
        return {**metrics, "skipped": float(not learns), "nonfinite_gradients": float(not finite)}

    def state_dict(self) -> dict[str, Any]:
        """The state of the learner, except the policy's weights."""
        return {
            "steps": self.steps,
            "version": self.policy.version,
            "optimizer": self.optimizer.state_dict(),
            "critic": None if self.critic is None else self.critic.state_dict(),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore a state that `state_dict` returned."""
        # Keep the kernel that this process chose: the state has the kernel of the process that saved.
        kernel = {"fused": self.optimizer.defaults["fused"]}
        groups = [group | kernel for group in state["optimizer"]["param_groups"]]
        moments = state["optimizer"]["state"]
        parameters = self._parameters()
        moments = {
            number: {name: divided_like(value, parameters[number]) for name, value in values.items()}
            for number, values in moments.items()
        }
        self.optimizer.load_state_dict({"state": moments, "param_groups": groups})
        if self.critic is not None:
            load_weights(self.critic, state["critic"])
        self.steps = state["steps"]
        self.policy.weights_changed()
        self.policy.version = state["version"]


def _clip(parameters: Sequence[torch.nn.Parameter], norm: float) -> float:
    """Scale gradients down to a global norm, and return the norm that they had before."""
    before: Any = torch.nn.utils.clip_grad_norm_(parameters, norm)
    return float(before.full_tensor() if is_sharded(before) else before)
