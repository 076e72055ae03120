"""`Updating`: turns a batch of episodes into new weights."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from agents.batch import Batch
from agents.deferred import torch
from agents.importance import Correction
from agents.kl import AdaptiveKLController
from agents.learn.algorithm import Algorithm, require_equal_minibatches, require_per_token
from agents.learn.enrich import Enrichment, reference_kl
from agents.learn.learner import Learner, Loss
from agents.learn.metrics import merge
from agents.learn.models import Models
from agents.learn.progress import Progress
from agents.policies.trainable import TokenOutputs
from agents.seeding import mix
from agents.types import Trajectory

if TYPE_CHECKING:
    from torch import Tensor


OnAdvantages = Callable[[Sequence[Trajectory], "Tensor"], None]
"""Called with the trajectories of an update and their advantages f64[b l], before the optimiser steps."""


class Updating:
    """Enriches batches, takes their optimiser steps, and adapts the regularisers.

    Args:
        algorithm: The advantages and the loss.
        models: The policy, its critic and its reference.
        learner: Makes optimiser steps.
        progress: The counts of steps, which schedules follow.
        correction: How samples of another policy are corrected.
        one_gradient: Whether an update with one epoch and one minibatch computes only one gradient.
    """

    def __init__(
        self,
        algorithm: Algorithm,
        models: Models,
        learner: Learner,
        progress: Progress,
        *,
        correction: Correction,
        one_gradient: bool,
    ) -> None:
        self._algorithm, self._models, self._progress = algorithm, models, progress
        self.learner = learner
        self.on_advantages: OnAdvantages | None = None
        """Called with the advantages of each batch; None for no call."""
        self.config = config = algorithm.config
        self._kl_in_reward = config.has_kl_term and config.kl_placement == "reward"
        self._kl_in_loss = config.has_kl_term and config.kl_placement == "loss"
        once = one_gradient and config.epochs == config.minibatches == 1
        # The one pass that computes the loss is then made with the weights before the update, so that every ratio is 1.
        self._ratios_are_one = models.policy.is_half and once and not self._kl_in_reward
        # In half precision, sampling and training passes round differently; ratios are relative to the training pass.
        recomputes_old = models.policy.is_half and not self._ratios_are_one
        self.enrich = Enrichment(config, models, correction, recomputes_old, self.kl_coefficient)
        """Adds to a batch the model outputs that its advantages and its loss need."""
        self.kl_controller = (
            None
            if config.kl_target is None
            else AdaptiveKLController(config.kl_coefficient, config.kl_target, config.kl_horizon)
        )

    def prepare(self, batch: Batch) -> Batch:
        """Return a batch with all columns that its advantages and its loss need."""
        self._models.policy.release_cache()  # the learner needs its memory
        return self.enrich(self._algorithm.truncated(self._algorithm.usable(batch)))

    def optimize(self, batch: Batch, advantages: Tensor) -> dict[str, float]:
        """Take the optimiser steps of one batch: `epochs` passes over it, each divided into `minibatches`."""
        steps = []
        for rows in self._minibatches(len(batch)):
            minibatch = batch.rows(rows)
            steps.append(self.learner.step(minibatch, advantages[rows, : minibatch.tokens.shape[1]], self.loss()))
        return merge(steps)

    def finish(self, batch: Batch, metrics: dict[str, float]) -> None:
        """Adapt the regularisers after an update, before its step is counted, and add metrics about this to the update's."""
        config = self.config
        self._algorithm.after_update(batch)
        if self._models.reference is not None:
            if config.has_kl_term:
                metrics["kl_coefficient"] = self.kl_coefficient()
            if config.reference_sync_every and (self._progress.steps + 1) % config.reference_sync_every == 0:
                self._models.reference.sync(self._models.policy, config.reference_sync_mix)
        # Without a trained token, or with diverged weights, there is no divergence to control.
        if self.kl_controller is not None and not math.isnan(metrics.get("kl", math.nan)):
            self.kl_controller.update(metrics["kl"], int(batch.valid.sum()))
        if config.entropy_coefficient or config.entropy_coefficient_end:
            metrics["entropy_coefficient"] = self.entropy_coefficient()

    # The loss

    def loss(self) -> Loss:
        """The loss that optimiser steps minimise in this training step."""
        config = self.config
        alone = not self._kl_in_loss and self.entropy_coefficient() == 0
        return Loss(
            self.terms,
            config.aggregation,
            config.max_tokens,
            self._algorithm.clipped,
            vanishes_without_advantage=alone and self._algorithm.vanishes_without_advantage,
            ratios_are_one=self._ratios_are_one,
        )

    def terms(self, batch: Batch, outputs: TokenOutputs, advantages: Tensor) -> dict[str, Tensor]:
        """The named terms whose sum is the loss f[b t] of each token."""
        loss = self._algorithm.loss(batch, outputs.logprobs, advantages)
        require_per_token(self._algorithm, "loss", loss, outputs.logprobs)
        terms = {"policy": loss if batch.importance is None else batch.importance * loss}
        if self._kl_in_loss:
            terms["kl"] = self.kl_coefficient() * reference_kl(batch, outputs.logprobs, self.config)
        coefficient = self.entropy_coefficient()
        if coefficient != 0:
            terms["entropy"] = -coefficient * outputs.entropy
        return terms

    def kl_coefficient(self) -> float:
        """The weight of the KL term at this step."""
        if self.kl_controller is not None:
            return self.kl_controller.coefficient
        return self.config.kl_schedule(self.learner.run_steps)(self._progress.steps)

    def entropy_coefficient(self) -> float:
        """The weight of the entropy bonus at this step."""
        return self.config.entropy_schedule(self.learner.run_steps)(self._progress.steps)

    def _minibatches(self, rows: int) -> list[Tensor]:
        """Row indices of each optimiser step, shuffled if an epoch has several."""
        config = self.config
        if config.minibatches == 1:
            return [torch.arange(rows)] * config.epochs
        require_equal_minibatches(rows, config.minibatches)
        origin = mix(mix(np.array([config.seed % 2**64], dtype=np.uint64)) ^ np.uint64(self._progress.steps))
        generator = np.random.Generator(np.random.PCG64(int(origin[0])))
        orders = [generator.permutation(rows) for _ in range(config.epochs)]
        minibatches = [indices for order in orders for indices in np.split(order, config.minibatches)]
        return [torch.from_numpy(np.sort(indices)) for indices in minibatches]

    # In checkpoints

    def state(self) -> dict[str, Any]:
        """The state as tensors and plain data, for `load`, without the policy's weights."""
        reference = self._models.reference
        return {
            "learner": self.learner.state_dict(),
            "reference": None if reference is None else reference.state_dict(),
            "kl_coefficient": None if self.kl_controller is None else self.kl_controller.coefficient,
        }

    def load(self, state: Mapping[str, Any]) -> None:
        """Restore a state that `state` returned."""
        self.learner.load_state_dict(state["learner"])
        if self._models.reference is not None:
            self._models.reference.load_state_dict(state["reference"])
        if self.kl_controller is not None:
            self.kl_controller.coefficient = state["kl_coefficient"]

    def components(self) -> dict[str, list[str] | None]:
        """The controller of the KL term's weight, as a component without weights."""
        return {"KL controller": None if self.kl_controller is None else []}
