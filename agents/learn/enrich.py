"""Columns that a batch gets before advantages are computed: outputs of models, and numbers derived from them.

The models read a batch in one pass over its micro-batches, each of which is moved to the device once. A column may depend on
earlier columns. The order is:

    old_logprobs        log pi of the weights before the update              if the sampler has other weights or rounding
    importance          weights of tokens by pi / sampler                    if samples are corrected
    reference_logprobs  log pi_ref                                           if a reference is kept
    rewards             minus beta times the KL estimate                     if the KL term is part of the reward
    values, bootstrap   of the states before each token, and after the last  if there is a critic
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from agents.batch import Batch
from agents.deferred import torch
from agents.importance import Correction, importance_weights
from agents.kl import kl_estimate
from agents.learn.batch_passes import Reader, critic_reader, logprobs_reader, read_columns, values_and_last
from agents.learn.models import Models
from agents.settings.agent import AgentConfig
from agents.truncation import Truncation


@dataclass(frozen=True)
class Enrichment:
    """Adds to batches the model outputs that their advantages and their loss need."""

    config: AgentConfig
    models: Models
    correction: Correction
    recomputes_old: bool
    kl_coefficient: Callable[[], float]

    def __call__(self, batch: Batch) -> Batch:
        """Return a batch with all columns."""
        readers = self._readers()
        read = read_columns(self.models.policy, batch, self.config.learner.micro_batch_size, readers) if readers else {}
        return self.with_columns(batch, read)

    def with_columns(self, batch: Batch, read: Mapping[str, torch.Tensor]) -> Batch:
        """Return a batch with all columns, given the models' outputs by the names in `_readers`."""
        for enricher in (self._old, self._importance, self._reference, self._kl_reward, self._values):
            batch = enricher(batch, read)
        return batch

    def _readers(self) -> dict[str, Reader]:
        policy, critic, reference = self.models.policy, self.models.critic, self.models.reference
        readers = dict[str, Reader]()
        if self.correction is not Correction.NONE or self.recomputes_old:
            readers["old"] = logprobs_reader(policy)
        if reference is not None:
            readers["reference"] = logprobs_reader(reference.policy, reference.switched_on)
        if critic is not None:
            readers["values"] = critic_reader(policy, critic)
        return readers

    def _old(self, batch: Batch, read: Mapping[str, torch.Tensor]) -> Batch:
        return dataclasses.replace(batch, old_logprobs=read["old"]) if "old" in read else batch

    def _importance(self, batch: Batch, read: Mapping[str, torch.Tensor]) -> Batch:
        if self.correction is Correction.NONE:
            return batch
        weights = importance_weights(
            batch.old,
            batch.logprobs,
            batch.loss_mask,
            self.correction,
            cap=self.config.importance_cap,
            floor=self.config.importance_floor,
        )
        return dataclasses.replace(batch, importance=weights)

    def _reference(self, batch: Batch, read: Mapping[str, torch.Tensor]) -> Batch:
        return dataclasses.replace(batch, reference_logprobs=read["reference"]) if "reference" in read else batch

    def _kl_reward(self, batch: Batch, read: Mapping[str, torch.Tensor]) -> Batch:
        if not (self.config.has_kl_term and self.config.kl_placement == "reward"):
            return batch
        return batch.with_rewards(batch.rewards - self.kl_coefficient() * reference_kl(batch, batch.old, self.config))

    def _values(self, batch: Batch, read: Mapping[str, torch.Tensor]) -> Batch:
        if "values" not in read:
            return batch
        values, last = values_and_last(batch, read["values"])
        goes_on = batch.truncated & batch.valid & (self.config.truncation is Truncation.BOOTSTRAP)
        return dataclasses.replace(batch, values=values, bootstrap=torch.where(goes_on, last, 0.0))


def reference_kl(batch: Batch, logprobs: torch.Tensor, config: AgentConfig) -> torch.Tensor:
    """The estimate f[b t] of the divergence from the reference at each token, 0 outside the loss mask."""
    assert batch.reference_logprobs is not None
    divergence = kl_estimate(config.kl_estimator, logprobs, batch.reference_logprobs, batch.old)
    return torch.where(batch.loss_mask, divergence, 0.0)
