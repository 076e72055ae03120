"""Episodes that continued in a new context (`rlvr_envs.Reply.context`), divided into the rows that a model has to read.

The policy saw the tokens of one context at a time, so a model reads each context as a row of its own, as if nothing came before
it. Its outputs are put back at the tokens' positions in the episode: advantages, losses, means and counts refer to whole
episodes. An episode in one context is read as it is.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import TYPE_CHECKING

from agents.batch import Batch
from agents.deferred import torch
from agents.policies.trainable import TokenOutputs, TrainablePolicy

if TYPE_CHECKING:
    from jaxtyping import Float
    from torch import Tensor

    from agents.learn.critic import Critic


@dataclass(frozen=True)
class ContextRows:
    """The contexts of a batch's episodes, one per row."""

    whole: Batch
    """The b episodes."""
    batch: Batch
    """The c contexts, right-padded, in the order of the episodes; the data of an episode are repeated for each of its
    contexts."""
    episodes: Tensor
    """i64[c], the row of each context's episode."""
    starts: Tensor
    """i64[c], the position of each context's first token in its episode."""

    def put_back(self, values: Float[Tensor, "c t ..."], *, extra: int = 0) -> Float[Tensor, "b t ..."]:
        """Move values of the contexts' tokens to the same tokens of the episodes; 0 elsewhere.

        Args:
            values: The values from position `batch.first` on, with `extra` more columns for the state after the last token.
            extra: 1 to add the value of the state after an episode's last token, else 0.

        Returns:
            The values from position `whole.first` on.
        """
        first, width = self.whole.first, self.whole.tokens.shape[1]
        positions = torch.arange(values.shape[1], device=values.device) + self.batch.first
        lengths = self.batch.lengths[:, None]
        last = self.starts[:, None] + lengths == self.whole.lengths[self.episodes][:, None]
        columns = self.starts[:, None] + positions - first
        kept = ((positions < lengths) | (last & (positions < lengths + extra))) & (columns >= 0)
        rows = self.episodes[:, None].expand_as(columns)[kept]
        shape = (len(self.whole), width - first + extra, *values.shape[2:])
        return values.new_zeros(shape).index_put((rows, columns[kept]), values[kept])


def split(batch: Batch) -> ContextRows | None:
    """The contexts of a batch's episodes as rows; None if every episode has only one context."""
    if batch.contexts is None:
        return None
    columns = torch.arange(batch.tokens.shape[1], device=batch.tokens.device)
    begins = torch.ones_like(batch.contexts, dtype=torch.bool)
    begins[:, 1:] = batch.contexts[:, 1:] != batch.contexts[:, :-1]
    begins &= columns < batch.lengths[:, None]
    episodes, starts = begins.nonzero(as_tuple=True)
    same = episodes[1:] == episodes[:-1]
    ends = batch.lengths[episodes].clone()
    ends[:-1] = torch.where(same, starts[1:], ends[:-1])
    lengths = ends - starts
    positions = columns[: int(lengths.max())]
    inside = positions < lengths[:, None]
    taken = torch.where(inside, starts[:, None] + positions, 0)

    def rows_of(value: Tensor) -> Tensor:
        rows = value[episodes[:, None], taken]
        return torch.where(inside.view(*inside.shape, *[1] * (rows.dim() - 2)), rows, torch.zeros_like(rows))

    rows = batch.map(rows_of, lambda value: value[episodes])
    return ContextRows(batch, dataclasses.replace(rows, lengths=lengths, contexts=None), episodes, starts)


def read(policy: TrainablePolicy, micro_batch: Batch, *, with_states: bool = False) -> TokenOutputs:
    """The same as `TrainablePolicy.read`, with each token read in its own context; 0 at the first token of a context."""
    parts = split(micro_batch)
    if parts is None:
        return policy.read(micro_batch, with_states=with_states)
    outputs = policy.read(parts.batch, with_states=with_states)
    states = None if outputs.states is None else parts.put_back(outputs.states, extra=1)
    return TokenOutputs(parts.put_back(outputs.logprobs), parts.put_back(outputs.entropy), states, outputs.shared)


def read_states(policy: TrainablePolicy, micro_batch: Batch) -> Float[Tensor, "b t+1 d"]:
    """The same as `TrainablePolicy.read_states`, with each token read in its own context."""
    parts = split(micro_batch)
    if parts is None:
        return policy.read_states(micro_batch)
    parts = dataclasses.replace(parts, batch=_with_last_states(parts.batch))
    return parts.put_back(policy.read_states(parts.batch), extra=1)


def _with_last_states(batch: Batch) -> Batch:
    """Put the last token of each context without trained tokens on the loss mask, as a policy may skip untrained rows."""
    columns = torch.arange(batch.tokens.shape[1], device=batch.tokens.device)
    last = (columns == batch.lengths[:, None] - 1) & ~batch.loss_mask.any(dim=1, keepdim=True)
    return dataclasses.replace(batch, loss_mask=batch.loss_mask | last)


def values(critic: Critic, micro_batch: Batch, states: Float[Tensor, "b t+1 d"] | None) -> Float[Tensor, "b t+1"]:
    """The same as `Critic.values`: the value of the state before each token, which is the token's own context so far."""
    parts = None if critic.reads_policy else split(micro_batch)
    if parts is None:
        return critic.values(micro_batch, states)
    return parts.put_back(critic.values(parts.batch, None), extra=1)
