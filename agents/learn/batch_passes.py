"""Forward passes over a whole batch without gradients, in micro-batches of similar length."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from agents.batch import Batch
from agents.deferred import torch
from agents.distributed.ranks import active_ranks
from agents.learn import contexts
from agents.policies.trainable import TrainablePolicy

if TYPE_CHECKING:
    from torch import Tensor

    from agents.learn.critic import Critic

TOKENS_AT_ONCE = 2**17
"""Largest number of tokens in one forward pass of the learner, including padding; a single row may have more."""


def micro_batches(batch: Batch, size: int, keep: Tensor | None = None) -> Iterator[Tensor]:
    """Row indices of micro-batches of up to `size` rows.

    Rows of a group, which share a prompt, and rows of similar length are kept together. A micro-batch has fewer rows if `size`
    rows would have more than `TOKENS_AT_ONCE` tokens. Rows without tokens on the loss mask, and rows not in `keep` (bool[b]),
    are excluded.
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
    """The rows bool[b] of `keep` in which this rank has tokens on the loss mask."""
    wanted = batch.mask_here.any(dim=1).cpu()
    return wanted if keep is None else wanted & keep.cpu()


def own_micro_batches(batch: Batch, size: int, keep: Tensor | None = None) -> list[Tensor]:
    """The `micro_batches` that this rank passes through a model.

    All ranks together pass each micro-batch through the model once; a rank that has only its own rows passes these.

    With several ranks micro-batches may be smaller than `size`, so that every rank has about as many rows.
    """
    return [rows for rows, counts in own_passes(batch, size, keep) if counts]


def own_passes(batch: Batch, size: int, keep: Tensor | None = None) -> list[tuple[Tensor, bool]]:
    """The rows of each of this rank's passes, and whether the pass counts.

    If weights are divided, all ranks make equally many passes: a rank with fewer `own_micro_batches` adds passes of one row
    that do not count.
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


@dataclass(frozen=True)
class Reader:
    """Reads one number for each token of a batch from a model."""

    read: Callable[[Batch], Tensor]
    """A function from a micro-batch on the device to f[b t+extra], the numbers of its tokens from `first` on."""
    extra: int = 0
    """1 if the reader also reads the state after the last token, else 0."""


def logprobs_reader(
    policy: TrainablePolicy, switched_on: Callable[[], AbstractContextManager[Any]] = nullcontext
) -> Reader:
    """A reader of log-probabilities under a policy; it reads within `switched_on`, where the policy has the right weights."""

    def read(micro_batch: Batch) -> Tensor:
        with switched_on():
            return torch.where(
                micro_batch.loss_mask[:, micro_batch.first :], contexts.read(policy, micro_batch).logprobs, 0.0
            )

    return Reader(read)


def critic_reader(policy: TrainablePolicy, critic: Critic) -> Reader:
    """A reader of a critic's values."""
    return Reader(lambda micro_batch: critic_values(policy, critic, micro_batch), extra=1)


def read_columns(
    policy: TrainablePolicy, batch: Batch, micro_batch_size: int, readers: Mapping[str, Reader]
) -> dict[str, Tensor]:
    """For each reader, the numbers f32[b l+extra] of a batch's tokens, on the CPU; 0 before the first token on the loss mask.

    Each micro-batch is moved to the policy's device once.
    """
    rows, length = batch.tokens.shape
    columns = {name: torch.zeros(rows, length + reader.extra, dtype=torch.float32) for name, reader in readers.items()}
    for indices, counts in own_passes(batch, micro_batch_size):
        micro_batch = batch.rows(indices).to(policy.device)
        for name, reader in readers.items():
            with torch.no_grad():
                values = reader.read(micro_batch).float().cpu()
            if counts:
                columns[name][indices, micro_batch.first : micro_batch.tokens.shape[1] + reader.extra] = values
    if batch.here is None:
        active_ranks().sum_tensors(list(columns.values()))  # each row is 0 on all ranks but one
    return columns


def token_logprobs(policy: TrainablePolicy, batch: Batch, micro_batch_size: int) -> Tensor:
    """Log-probabilities f32[b l] of a batch's tokens under a policy; 0 outside the loss mask."""
    return read_columns(policy, batch, micro_batch_size, {"logprobs": logprobs_reader(policy)})["logprobs"]


def values_and_last(batch: Batch, column: Tensor) -> tuple[Tensor, Tensor]:
    """Split a column of a `critic_reader`: values f64[b l], 0 outside the loss mask, and f64[b] of the state after each row."""
    values = column.double()
    last = values.gather(1, batch.lengths[:, None].to(values.device)).squeeze(1)
    return torch.where(batch.loss_mask, values[:, :-1], 0.0), last


def critic_values(policy: TrainablePolicy, critic: Critic, micro_batch: Batch) -> Tensor:
    """The critic's values f32[b t+1] of one micro-batch, with a pass of the policy if the critic reads its states."""
    states = contexts.read_states(policy, micro_batch) if critic.reads_policy else None
    return contexts.values(critic, micro_batch, states)
