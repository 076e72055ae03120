"""Forward passes over a whole batch without gradients, in micro-batches of similar length."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import numpy as np
import torch
from torch import Tensor

from agents.batch import Batch
from agents.distributed.ranks import active_ranks
from agents.policies.trainable import TrainablePolicy
from agents.training import contexts
from agents.training.critic import Critic

TOKENS_AT_ONCE = 2**17
"""Largest number of tokens in one forward pass of the learner, including padding; a single row may have more."""


def micro_batches(batch: Batch, size: int, keep: Tensor | None = None) -> Iterator[Tensor]:
    """Row indices of micro-batches of up to `size` rows; groups, which share a prompt, and similar lengths are kept together.

    A micro-batch has fewer rows if they would have more than `TOKENS_AT_ONCE` tokens. Rows without tokens on the loss mask,
    and those not in `keep` (bool[b]), are excluded.
    """
    wanted = _wanted(batch, keep)
    _, group = batch.groups.cpu().unique(return_inverse=True)
    lengths = torch.where(wanted, batch.lengths.cpu(), 0)  # excluded rows do not affect the order
    longest = torch.zeros(len(group), dtype=lengths.dtype).scatter_reduce(0, group, lengths, "amax")[group]
    # By the group's longest row, then by group, then by the row's own length.
    order = torch.from_numpy(np.lexsort((-lengths.numpy(), group.numpy(), -longest.numpy())))
    order = order[wanted[order]]
    while len(order):
        width = lengths[order].cummax(0).values
        rows = int((width[:size] * torch.arange(1, len(width[:size]) + 1) <= TOKENS_AT_ONCE).sum())
        indices, order = order.split([max(rows, 1), len(order) - max(rows, 1)])
        yield indices


def _wanted(batch: Batch, keep: Tensor | None) -> Tensor:
    """The rows bool[b] with tokens on the loss mask that this rank has, of those in `keep`."""
    wanted = batch.mask_here.any(dim=1).cpu()
    return wanted if keep is None else wanted & keep.cpu()


def own_micro_batches(batch: Batch, size: int, keep: Tensor | None = None) -> list[Tensor]:
    """The `micro_batches` that this rank passes; all ranks together pass each once, or each its own rows if it has no others.

    With several ranks micro-batches may be smaller than `size`, so that every rank has about as many rows.
    """
    return [rows for rows, counts in own_passes(batch, size, keep) if counts]


def own_passes(batch: Batch, size: int, keep: Tensor | None = None) -> list[tuple[Tensor, bool]]:
    """This rank's passes: the rows of each, and whether they count.

    Where weights are divided, all ranks make equally many: one that has fewer `own_micro_batches` adds passes of a row that do
    not count.
    """
    ranks = active_ranks()
    if batch.here is None:
        size = ranks.rows_at_once(int(_wanted(batch, keep).sum()), size)
        every = list(micro_batches(batch, size, keep))
        own, most = ranks.divide(every), math.ceil(len(every) / ranks.size)
    else:
        own = list(micro_batches(batch, size, keep))
        most = max(ranks.gather(len(own)))
    passes = [(rows, True) for rows in own]
    if ranks.sharding is not None:
        any_row = torch.zeros(1, dtype=torch.int64) if batch.here is None else batch.here.nonzero()[:1, 0]
        passes += [(any_row, False)] * (most - len(own))
    return passes


@torch.no_grad()
def token_logprobs(policy: TrainablePolicy, batch: Batch, micro_batch_size: int) -> Tensor:
    """Log-probabilities f32[b l] of a batch's tokens under a policy; 0 outside the loss mask."""

    def read(micro_batch: Batch, first: int) -> Tensor:
        return contexts.read(policy, micro_batch).logprobs

    logprobs = _fill(policy, batch, micro_batch_size, read)
    return torch.where(batch.loss_mask, logprobs, 0.0)


@torch.no_grad()
def state_values(policy: TrainablePolicy, critic: Critic, batch: Batch, micro_batch_size: int) -> tuple[Tensor, Tensor]:
    """Values f64[b l] of the states before each token, 0 outside the loss mask, and f64[b] after the last of each row."""

    def read(micro_batch: Batch, first: int) -> Tensor:
        return critic_values(policy, critic, micro_batch)

    values = _fill(policy, batch, micro_batch_size, read, extra=1).double()
    last = values.gather(1, batch.lengths[:, None].to(values.device)).squeeze(1)
    return torch.where(batch.loss_mask, values[:, :-1], 0.0), last


def critic_values(policy: TrainablePolicy, critic: Critic, micro_batch: Batch) -> Tensor:
    """The critic's values f32[b t+1] of one micro-batch, with a pass of the policy if the critic reads its states."""
    states = contexts.read_states(policy, micro_batch) if critic.reads_policy else None
    return contexts.values(critic, micro_batch, states)


def _fill(
    policy: TrainablePolicy, batch: Batch, size: int, read: Callable[[Batch, int], Tensor], extra: int = 0
) -> Tensor:
    rows, length = batch.tokens.shape
    outputs = torch.zeros(rows, length + extra, dtype=torch.float32)
    for indices, counts in own_passes(batch, size):
        micro_batch = batch.rows(indices).to(policy.device)
        first = micro_batch.first
        values = read(micro_batch, first).float().cpu()
        if counts:
            outputs[indices, first : micro_batch.tokens.shape[1] + extra] = values
    if batch.here is None:
        active_ranks().sum_tensors([outputs])  # each row is 0 on all ranks but one
    return outputs
