"""One forward pass over groups of completions that share a prompt: the prompt is computed once for each group.

All tokens of a micro-batch stand in one row without padding: for each group its prefix, then its completions one after the
other. Everything but attention looks at one token at a time. Attention is told the layout by a keyword: a prefix looks at
itself, and each completion at the prefix and at itself. Gradients of all completions flow into the prefix once, summed. That
is the plain forward pass, with P + G C tokens in place of G (P + C).
"""

from __future__ import annotations

import contextlib
import contextvars
import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention
from transformers import AttentionInterface, AttentionMaskInterface
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.masking_utils import sdpa_mask

from agents.policies.transformers.shared_prompt_cache import GroupLayout, attend_by_groups

IMPLEMENTATION = "rlvr_shared_prefix"
_MASKED_ATTENTION = 2.0
"""What a pair of tokens costs under a mask, over what it costs in the causal kernel."""
_PREFIX_COPY = 20.0
"""What a copy of a prefix's token costs, keys, values and gradients, in pairs of tokens under a mask; measured on a CPU."""


@dataclass(frozen=True)
class Group:
    """Where one group stands in the packed row.

    Its completions attend in blocks of a few, or all at once. Within a block each token is compared with those of the other
    completions too, under a mask, which is less work than another copy of the prefix while completions are short.
    """

    prefix: int
    """Tokens of the prefix."""
    own: int
    """Tokens of the completions, which follow it."""
    blocks: int
    width: int
    """Tokens of the longest block."""
    mask: Tensor
    """bool[blocks 1 width prefix+width]: what a block's tokens look at, the prefix's tokens first; one for all blocks where
    they are alike."""
    columns: Tensor | None = None
    """i64[blocks * width], the place of each token among the completions', where blocks differ in length; padding points at
    the block's last."""
    real: Tensor | None = None
    """bool[blocks * width], False at padding."""
    _biases: dict[torch.dtype, Tensor] = field(default_factory=dict, repr=False, compare=False)

    def bias(self, dtype: torch.dtype) -> Tensor:
        """The mask as a term of the scores, 0 or -inf.

        Made once: given a bool mask, `torch` makes one in every layer, and the backward pass keeps them all.
        """
        if dtype not in self._biases:
            *shape, columns = self.mask.shape
            # Rows that begin at multiples of 16, without which a GPU's kernel would have its own copy in every layer, too.
            room = torch.zeros(*shape, columns + -columns % 16, dtype=dtype, device=self.mask.device)
            self._biases[dtype] = room[..., :columns].masked_fill_(~self.mask, -torch.inf)
        return self._biases[dtype]


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
    targets: Tensor
    """i64[m], the place of the token itself."""
    rows: Tensor
    """i64[m], the row that the token belongs to,"""
    columns: Tensor
    """i64[m], and its place in that row."""


def plan(tokens: Tensor, lengths: Tensor, prefixes: Tensor) -> Layout:
    """Pack rows, those with equal prefixes together.

    Args:
        tokens: i64[b l], right-padded.
        lengths: i64[b].
        prefixes: i64[b], the tokens of each row before the first that is to be predicted; at least 1.
    """
    host, ends, starts = tokens.cpu().numpy(), lengths.tolist(), prefixes.tolist()
    members: dict[bytes, list[int]] = {}
    for row, prefix in enumerate(starts):
        members.setdefault(host[row, :prefix].tobytes(), []).append(row)
    shapes = [(starts[rows[0]], tuple(ends[row] - starts[row] for row in rows)) for rows in members.values()]
    # What stands in the packed row: the row each segment comes from, its first place there, its length, and the end of the
    # prefix before it, 0 for a prefix itself.
    segments: list[tuple[int, int, int, int]] = []
    at = 0
    for rows, (prefix, own) in zip(members.values(), shapes, strict=True):
        segments.append((rows[0], 0, prefix, 0))
        segments.extend((row, prefix, count, at + prefix) for row, count in zip(rows, own, strict=True))
        at += prefix + sum(own)
    row_of, first_of, counts, prefix_end = np.array(segments).T
    segment, within = _ragged(counts)
    row, column = row_of[segment], first_of[segment] + within
    # The first token is predicted by the prefix's last state, each other one by the state before it.
    source = np.where(within == 0, prefix_end[segment], np.arange(len(segment))) - 1
    predicted = np.flatnonzero(prefix_end[segment])
    groups = {shape: _group(*shape, tokens.device) for shape in set(shapes)}

    def put(values: NDArray[np.int64]) -> Tensor:
        return torch.from_numpy(values).to(tokens.device)

    return Layout(
        tokens=put(host[row, column])[None],
        positions=put(column)[None],
        groups=tuple(groups[shape] for shape in shapes),
        sources=put(source[predicted]),
        targets=put(predicted),
        rows=put(row[predicted]),
        columns=put(column[predicted]),
    )


def _ragged(counts: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """For segments of these lengths, one after the other: the segment of each token and its place within."""
    segment = np.repeat(np.arange(len(counts)), counts)
    return segment, np.arange(len(segment)) - (counts.cumsum() - counts)[segment]


def _group(prefix: int, lengths: tuple[int, ...], device: torch.device) -> Group:
    blocks = np.array_split(np.array(lengths), _num_blocks(prefix, max(lengths), len(lengths)))
    sizes = np.array([block.sum() for block in blocks])
    width = int(sizes.max())
    if all(np.array_equal(block, blocks[0]) for block in blocks):
        return Group(prefix, sum(lengths), len(blocks), width, _block_masks(prefix, blocks[:1], width).to(device))
    within = np.arange(width)
    columns = (sizes.cumsum() - sizes)[:, None] + np.minimum(within, sizes[:, None] - 1)
    return Group(
        prefix=prefix,
        own=sum(lengths),
        blocks=len(blocks),
        width=width,
        mask=_block_masks(prefix, blocks, width).to(device),
        columns=torch.from_numpy(columns.reshape(-1)).to(device),
        real=torch.from_numpy((within < sizes[:, None]).reshape(-1)).to(device),
    )


def _num_blocks(prefix: int, length: int, members: int) -> int:
    """How many blocks, of equally many completions, are the least work: pairs in vain against copies of the prefix."""

    def work(blocks: int) -> float:
        block = members // blocks * length
        copies = 0.0 if blocks == 1 else prefix / max(block, 1)
        return block + _PREFIX_COPY * copies

    return min((blocks for blocks in range(1, members + 1) if members % blocks == 0), key=work)


def _block_masks(prefix: int, blocks: Sequence[NDArray[np.int64]], width: int) -> Tensor:
    """bool[b 1 width prefix+width]: each token looks at the prefix, and at its own completion up to itself."""
    masks = np.ones((len(blocks), 1, width, prefix + width), dtype=bool)
    earlier = np.tri(width, dtype=bool)
    for mask, lengths in zip(masks[:, 0, :, prefix:], blocks, strict=True):
        member = np.full(width, len(lengths))  # padding is nobody's
        member[: lengths.sum()] = _ragged(lengths)[0]
        mask[:] = earlier & (member[:, None] == member)
    return torch.from_numpy(masks)


def mask_entries(groups: Sequence[Group]) -> int:
    """How many entries the masks of groups have; groups of one shape share theirs."""
    return sum({id(group): group.mask.numel() for group in groups}.values())


@dataclass(frozen=True)
class Costs:
    """What a model multiplies, over all its layers."""

    token: int
    """For each token: the entries of the layers' matrices."""
    pair: int
    """For each pair of tokens that attention compares: the entries of a query, and as many of a value."""


def relative_cost(layout: Layout, rows: int, length: int, costs: Costs) -> float:
    """The work of the packed pass over that of the plain one over `rows` padded rows of `length` tokens.

    Counted in multiplications of tokens with matrices and of pairs of tokens in attention; the plain pass has a causal kernel
    that leaves half of the pairs out.
    """
    plain = rows * length * costs.token + rows * length**2 / 2 * costs.pair
    pairs = sum(
        group.prefix**2 / 2 + _MASKED_ATTENTION * group.blocks * group.width * (group.prefix + group.width)
        for group in layout.groups
    )
    return float((layout.tokens.shape[1] * costs.token + pairs * costs.pair) / plain)


def is_cheaper(layout: Layout, rows: int, length: int, costs: Costs) -> bool:
    """Whether the packed pass does less work than the plain one; see `relative_cost`."""
    return relative_cost(layout, rows, length, costs) < 1


_active: contextvars.ContextVar[bool] = contextvars.ContextVar("shared_prefix_active", default=False)


@contextlib.contextmanager
def shared_prefix_attention(model: Any) -> Iterator[None]:
    """Inside, a model that is given a layout attends by it. What the model does without one never changes."""
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
    group_layout: GroupLayout | None = None,
    **kwargs: Any,
) -> tuple[Tensor, None]:
    """`sdpa` where there is no layout; else two calls for each group. Query, key and value are f[1 h n d].

    With `group_layout`, when sampling, they are what `attend_by_groups` takes.

    Raises:
        ValueError: If there is a layout, and the model has a mask, a bias or the like of its own.
    """
    if group_layout is not None or prefix_layout is not None:
        _refuse_additions(attention_mask, kwargs)
    if group_layout is not None:
        return attend_by_groups(query, key, value, group_layout, kwargs.get("scaling")), None
    if prefix_layout is None:
        plain: tuple[Tensor, None] = sdpa_attention_forward(module, query, key, value, attention_mask, *args, **kwargs)
        return plain
    repeats = query.shape[1] // key.shape[1]
    if repeats > 1:
        key, value = key.repeat_interleave(repeats, dim=1), value.repeat_interleave(repeats, dim=1)
    queries = _cut(query, [(group.prefix, group.own) for group in prefix_layout])
    # A group in one block needs its keys in one piece, too.
    sizes = [(group.prefix + group.own,) if group.blocks == 1 else (group.prefix, group.own) for group in prefix_layout]
    scale = kwargs.get("scaling")
    outputs: list[Tensor] = []
    for group, *states in zip(prefix_layout, queries, _cut(key, sizes), _cut(value, sizes), strict=True):
        attend = _attend_together if group.blocks == 1 else _attend_in_blocks
        outputs.extend(attend(group, scale, *states))
    return torch.cat(outputs, dim=2).transpose(1, 2), None


def _refuse_additions(attention_mask: Tensor | None, keywords: Mapping[str, Any]) -> None:
    """A layout says all of what looks at what; anything else that a model gives to attention would be lost without a word."""
    own = {"attention_mask": attention_mask, **keywords}
    # Positions are known to the keys and queries already, and models pass them on regardless.
    added = [name for name, value in own.items() if isinstance(value, Tensor) and name != "position_ids"]
    if added:
        raise ValueError(
            f"its attention is given {' and '.join(added)} by the model itself, which shared prompts leave no room for; "
            "shared_prefix=False reads each row by itself"
        )


def _cut(states: Tensor, sizes: Sequence[tuple[int, ...]]) -> list[tuple[Tensor, ...]]:
    """Cut f[1 h n d] into some parts for each group.

    At once, since the gradient of each single slice would be a tensor of all tokens, zero but for the slice.
    """
    pieces = iter(states.split([size for group in sizes for size in group], dim=2))
    return [tuple(itertools.islice(pieces, len(group))) for group in sizes]


def _attend_together(
    group: Group, scale: float | None, query: tuple[Tensor, ...], key: tuple[Tensor, ...], value: tuple[Tensor, ...]
) -> tuple[Tensor, Tensor]:
    """The outputs f[1 h t d] of a group's prefix and of its completions, whose keys stand as they are wanted."""
    head = (query[0], key[0][:, :, : group.prefix], value[0][:, :, : group.prefix])
    return (
        scaled_dot_product_attention(*head, is_causal=True, scale=scale),
        scaled_dot_product_attention(query[1], key[0], value[0], attn_mask=group.bias(value[0].dtype), scale=scale),
    )


def _attend_in_blocks(
    group: Group, scale: float | None, query: tuple[Tensor, ...], key: tuple[Tensor, ...], value: tuple[Tensor, ...]
) -> tuple[Tensor, Tensor]:
    """The same for more than one block: the prefix's keys and values are copied to each."""
    first = scaled_dot_product_attention(query[0], key[0], value[0], is_causal=True, scale=scale)
    keys, values = (
        torch.cat([head.expand(group.blocks, -1, -1, -1), _by_blocks(own, group)], dim=2) for head, own in (key, value)
    )
    own_query = _by_blocks(query[1], group)
    second = scaled_dot_product_attention(own_query, keys, values, attn_mask=group.bias(values.dtype), scale=scale)
    together = second.transpose(0, 1).flatten(1, 2)
    return first, (together if group.real is None else together[:, group.real])[None]


def _by_blocks(states: Tensor, group: Group) -> Tensor:
    """f[1 h n d] -> f[b h c d]: a group's completions in blocks, padded on the right."""
    taken = states[0] if group.columns is None else states[0].index_select(1, group.columns)
    blocks: Tensor = taken.unflatten(1, (group.blocks, group.width)).transpose(0, 1)
    return blocks


AttentionInterface.register(IMPLEMENTATION, _attention)
AttentionMaskInterface.register(IMPLEMENTATION, _mask)
