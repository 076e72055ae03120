"""Faults that were found and mended elsewhere, put back by code of this project's own: the court finds each from code alone.

The addresses say what was wrong; nothing of that code is copied.
"""

from __future__ import annotations

import torch
from torch import Tensor

from agents.advantages import leave_one_out
from agents.experiments.court import Estimator, Record


def _mean_loss(record: Record, advantages: Tensor) -> Tensor:
    return -torch.where(record.mask, advantages * record.logprobs, 0.0).sum() / record.valid.sum()


def _own(record: Record) -> Tensor:
    return leave_one_out(record.scores, record.groups, record.valid)[:, None]


def temperature_left_out(record: Record) -> Tensor:
    """Log-probabilities of the logits as they are, where the sampler divided them by the temperature."""
    logprobs = record.logits.log_softmax(-1).gather(-1, record.tokens[..., None])[..., 0]
    return -torch.where(record.mask, _own(record) * logprobs, 0.0).sum() / record.valid.sum()


def returns_end_at_answers(record: Record) -> Tensor:
    """Rewards to go that begin anew at every token outside the mask."""
    total, later = torch.zeros_like(record.rewards), torch.zeros(len(record.rewards), dtype=torch.float64)
    for at in range(record.rewards.shape[1] - 1, -1, -1):
        later = (record.rewards[:, at] + later) * record.mask[:, at]
        total[:, at] = later
    return total


def gae_over_answers(record: Record) -> Tensor:
    """Generalised advantages with lambda 0.9 whose steps are all tokens, with the values that stand at the environment's."""
    values, advantages = record.values, torch.zeros_like(record.values)
    later, after = torch.zeros(len(values), dtype=torch.float64), torch.zeros(len(values), dtype=torch.float64)
    for at in range(values.shape[1] - 1, -1, -1):
        inside = at < record.lengths
        later = torch.where(inside, record.rewards[:, at] + after - values[:, at] + 0.9 * later, 0.0)
        after = torch.where(inside, values[:, at], 0.0)
        advantages[:, at] = later
    return advantages


def k3_in_the_loss(record: Record) -> Tensor:
    """The estimate exp(-d) + d - 1 of the divergence from the reference, differentiated as it is."""
    difference = record.logprobs - record.reference_logprobs
    estimate = torch.where(record.mask, (-difference).exp() + difference - 1, 0.0).sum() / record.valid.sum()
    return _mean_loss(record, _own(record)) + record.kl_coefficient * estimate


def mean_of_each_micro_batch(record: Record) -> Tensor:
    """Each micro-batch's loss divided by its own number of tokens."""
    return -torch.where(record.mask, _own(record) * record.logprobs, 0.0).sum() / record.mask.sum()


def mean_of_each_completion(record: Record) -> Tensor:
    """Each completion's loss divided by its own number of tokens."""
    return _mean_loss(record, _own(record) / record.mask.sum(1, keepdim=True).clamp(min=1))


ADDRESSES = {
    "temperature_left_out": "https://github.com/huggingface/trl/pull/3029",
    "returns_end_at_answers": "https://github.com/verl-project/verl/pull/6376",
    "gae_over_answers": "https://github.com/verl-project/verl/pull/2337",
    "k3_in_the_loss": "https://github.com/OpenRLHF/OpenRLHF/pull/1309",
    "mean_of_each_micro_batch": "https://github.com/allenai/open-instruct/pull/1161",
    "mean_of_each_completion": "https://github.com/huggingface/trl/pull/3138",
}
ESTIMATORS = [
    Estimator("temperature_left_out", loss=temperature_left_out),
    Estimator("returns_end_at_answers", advantages=returns_end_at_answers),
    Estimator("gae_over_answers", advantages=gae_over_answers),
    Estimator("k3_in_the_loss", loss=k3_in_the_loss),
    Estimator("mean_of_each_micro_batch", loss=mean_of_each_micro_batch),
    Estimator("mean_of_each_completion", loss=mean_of_each_completion),
]
