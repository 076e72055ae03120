"""One forward pass over groups of completions that share a prompt: the prompt is computed once for each group.

All tokens of a micro-batch stand in one row without padding: for each group its prefix, then its completions one after the
other. Everything but attention looks at one token at a time. Attention is told the layout by a keyword: a prefix looks at
itself, and each completion at the prefix and at itself. Gradients of all completions flow into the prefix once, summed. That
is the plain forward pass, with P + G C tokens in place of G (P + C).
"""

from __future__ import annotations

import contextlib
import contextvars
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention
from transformers import AttentionInterface, AttentionMaskInterface
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.masking_utils import sdpa_mask

IMPLEMENTATION = "rlvr_shared_prefix"
_MASKED_ATTENTION = 2.0
"""What a pair of tokens costs under a mask, over what it costs in the causal kernel."""


@dataclass(frozen=True)
class Group:
    """Where one group stands in the packed row."""

    prefix: int
    """Tokens of the prefix."""
    own: int
    """Tokens of the completions, which follow it."""
    members: int
    width: int
    """Tokens of the longest completion."""
    columns: Tensor
    """i64[members * width], the place of each token among the completions'; padding points at the last."""
    real: Tensor
    """bool[members * width], False at padding."""
    mask: Tensor
    """bool[width, prefix + width]: what a completion's tokens look at, the prefix's tokens first."""

    @property
    def even(self) -> bool:
        """Whether all completions have the same length."""
        return self.own == self.members * self.width


@dataclass(frozen=True)
class Layout:
    """A micro-batch as one packed row of n tokens, from which m token's log-probabilities are read."""

    tokens: Tensor
    """i64[1 n]."""
    positions: Tensor
    """i64[1 n], each token's place in its own row."""
    groups: tuple[Group, ...]
    sources: Tensor
    """i64[m], the place whose state predicts the token."""
    rows: Tensor
    """i64[m], the row that the token belongs to,"""
    places: Tensor
    """i64[m], and its place in that row."""


def plan(tokens: Tensor, lengths: Tensor, prefixes: Tensor) -> Layout:
    """Pack rows, those with equal prefixes together.

    Args:
        tokens: i64[b l], right-padded.
        lengths: i64[b].
        prefixes: i64[b], the tokens of each row before the first that is to be predicted; at least 1.
    """
    device = tokens.device
    host, ends, starts = tokens.cpu(), lengths.tolist(), prefixes.tolist()
    members: dict[bytes, list[int]] = {}
    for row, prefix in enumerate(starts):
        members.setdefault(host[row, :prefix].numpy().tobytes(), []).append(row)
    packed: list[Tensor] = []
    positions: list[Tensor] = []
    sources: list[Tensor] = []
    rows: list[Tensor] = []
    places: list[Tensor] = []
    groups: list[Group] = []
    at = 0
    for together in members.values():
        prefix = starts[together[0]]
        own = [ends[row] - prefix for row in together]
        groups.append(_group(prefix, own, device))
        packed.append(host[together[0], :prefix])
        positions.append(torch.arange(prefix))
        begin = at + prefix
        for row, count in zip(together, own, strict=True):
            packed.append(host[row, prefix : prefix + count])
            positions.append(torch.arange(prefix, prefix + count))
            # The first token is predicted by the prefix's last state, each other one by the state before it.
            sources.append(torch.cat([torch.tensor([at + prefix - 1]), torch.arange(begin, begin + count - 1)]))
            rows.append(torch.full((count,), row))
            places.append(torch.arange(prefix, prefix + count))
            begin += count
        at = begin
    return Layout(
        tokens=torch.cat(packed)[None].to(device),
        positions=torch.cat(positions)[None].to(device),
        groups=tuple(groups),
        sources=torch.cat(sources).to(device),
        rows=torch.cat(rows).to(device),
        places=torch.cat(places).to(device),
    )


def _group(prefix: int, lengths: list[int], device: torch.device) -> Group:
    width = max(lengths)
    own = torch.tensor(lengths)
    within = torch.arange(width)
    real = within[None] < own[:, None]
    columns = torch.where(real, (own.cumsum(0) - own)[:, None] + within[None], int(own.sum()) - 1)
    mask = torch.ones(width, prefix + width, dtype=torch.bool).tril(diagonal=prefix)
    return Group(
        prefix=prefix,
        own=int(own.sum()),
        members=len(lengths),
        width=width,
        columns=columns.reshape(-1).to(device),
        real=real.reshape(-1).to(device),
        mask=mask.to(device),
    )


def is_cheaper(layout: Layout, rows: int, length: int, config: Any) -> bool:
    """Whether the packed pass does less work than the plain one over `rows` padded rows of `length` tokens.

    Counted in multiplications of a token with the layers' matrices and of pairs of tokens in attention; the plain pass has a
    causal kernel that leaves half of the pairs out.
    """
    width = config.hidden_size
    linear = 12 * width  # for each token and each entry of its state: attention's four and the feed-forward's eight
    plain = rows * length * linear + rows * length**2 / 2 * 2
    pairs = sum(
        group.prefix**2 / 2 + _MASKED_ATTENTION * group.members * group.width * (group.prefix + group.width)
        for group in layout.groups
    )
    return bool(layout.tokens.shape[1] * linear + pairs * 2 < plain)


_active: contextvars.ContextVar[bool] = contextvars.ContextVar("shared_prefix_active", default=False)


@contextlib.contextmanager
def shared_prefix_attention(model: Any) -> Iterator[None]:
    """Inside, a model that is given `prefix_layout` attends by it. What the model does without one never changes."""
    if model.config._attn_implementation != IMPLEMENTATION:
        # It stays set: the backward pass of checkpointed layers looks it up again.
        model.set_attn_implementation(IMPLEMENTATION)
    token = _active.set(True)
    try:
        yield
    finally:
        _active.reset(token)


def _mask(*args: Any, **kwargs: Any) -> Any:
    return None if _active.get() else sdpa_mask(*args, **kwargs)


def _attention(
    module: torch.nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    *args: Any,
    prefix_layout: tuple[Group, ...] | None = None,
    **kwargs: Any,
) -> tuple[Tensor, None]:
    """`sdpa` where there is no layout; else two calls for each group. Query, key and value are f[1 h n d]."""
    if prefix_layout is None:
        found: tuple[Tensor, None] = sdpa_attention_forward(module, query, key, value, attention_mask, *args, **kwargs)
        return found
    repeats = query.shape[1] // key.shape[1]
    if repeats > 1:
        key, value = key.repeat_interleave(repeats, dim=1), value.repeat_interleave(repeats, dim=1)
    # Cut at once, since the gradient of each single slice would be a tensor of all tokens, zero but for the slice.
    sizes = [size for group in prefix_layout for size in (group.prefix, group.own)]
    parts = [states.split(sizes, dim=2) for states in (query, key, value)]
    outputs: list[Tensor] = []
    for number, group in enumerate(prefix_layout):
        heads, tails = (tuple(each[2 * number + which] for each in parts) for which in (0, 1))
        outputs.extend(_group_attention(heads, tails, group, kwargs.get("scaling")))
    return torch.cat(outputs, dim=2).transpose(1, 2), None


def _group_attention(
    heads: tuple[Tensor, ...], tails: tuple[Tensor, ...], group: Group, scale: float | None
) -> tuple[Tensor, Tensor]:
    """The outputs f[1 h t d] of a group's prefix and of its completions, from the query, key and value of each."""
    first = scaled_dot_product_attention(heads[0], heads[1], heads[2], is_causal=True, scale=scale)
    query, key, value = (_members(each, group) for each in tails)
    key, value = (
        torch.cat([head.expand(group.members, -1, -1, -1), tail], dim=2)
        for head, tail in ((heads[1], key), (heads[2], value))
    )
    second = scaled_dot_product_attention(query, key, value, attn_mask=group.mask, scale=scale)
    together = second.transpose(0, 1).flatten(1, 2)
    return first, (together if group.even else together[:, group.real])[None]


def _members(states: Tensor, group: Group) -> Tensor:
    """f[1 h n d] -> f[g h c d]: a group's completions, padded on the right."""
    taken = states[0] if group.even else states[0].index_select(1, group.columns)
    found: Tensor = taken.unflatten(1, (group.members, group.width)).transpose(0, 1)
    return found


AttentionInterface.register(IMPLEMENTATION, _attention)
AttentionMaskInterface.register(IMPLEMENTATION, _mask)
