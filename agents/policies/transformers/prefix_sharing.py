"""One forward pass over groups of completions that share a prompt: the prompt is computed once for each group.

All tokens of a micro-batch are packed into one row without padding: for each group its prefix, then its completions one after
the other. Everything but attention processes tokens separately. Attention receives the layout as a keyword argument: a prefix
attends to itself, and each completion to the prefix and to itself. The gradients of all completions flow into the prefix
once, summed. The result equals that of the plain forward pass, with P + G C tokens in place of G (P + C).
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
"""Cost of a pair of tokens with a mask, relative to the causal kernel."""
_PREFIX_COPY = 20.0
"""Cost of copying a prefix token (keys, values and gradients), as a multiple of the cost of a pair of tokens with a mask;
measured on a CPU."""


@dataclass(frozen=True)
class Group:
    """The layout of one group in the packed row.

    The group's completions attend in blocks of several completions, or all at once. Within a block the attention scores between
    different completions are computed and masked, which costs less than another copy of the prefix while completions are short.
    """

    prefix: int
    """Number of tokens of the prefix."""
    own: int
    """Number of tokens of the completions, which follow the prefix."""
    blocks: int
    width: int
    """Number of tokens of the longest block."""
    mask: Tensor
    """bool[blocks 1 width prefix+width]: the attention mask of each block, the prefix's tokens first; one mask for all blocks
    if the blocks are alike."""
    columns: Tensor | None = None
    """i64[blocks * width], the index of each token among the completions' tokens, if blocks differ in length; padding points to
    the block's last token."""
    real: Tensor | None = None
    """bool[blocks * width], False for padding."""
    _biases: dict[torch.dtype, Tensor] = field(default_factory=dict, repr=False, compare=False)

    def bias(self, dtype: torch.dtype) -> Tensor:
        """The mask as an additive bias, 0 or -inf.

        The bias is created once: from a bool mask, `torch` would create one in every layer and keep all of them for the
        backward pass.
        """
        if dtype not in self._biases:
            *shape, columns = self.mask.shape
            # Rows are aligned to multiples of 16; otherwise a GPU's kernel would make its own copy in every layer.
            room = torch.zeros(*shape, columns + -columns % 16, dtype=dtype, device=self.mask.device)
            self._biases[dtype] = room[..., :columns].masked_fill_(~self.mask, -torch.inf)
        return self._biases[dtype]


@dataclass(frozen=True)
class PackedLayout:
    """A micro-batch as one packed row of n tokens, with m predicted tokens."""

    tokens: Tensor
    """i64[1 n], the packed tokens."""
    positions: Tensor
    """i64[1 n], the position of each token in its original row."""
    groups: tuple[Group, ...]
    sources: Tensor
    """i64[m], the index in the packed row of the state that predicts each token."""
    targets: Tensor
    """i64[m], the index in the packed row of each predicted token."""
    rows: Tensor
    """i64[m], the original row of each predicted token."""
    columns: Tensor
    """i64[m], the position of each predicted token in its original row."""


def plan(tokens: Tensor, lengths: Tensor, prefixes: Tensor) -> PackedLayout:
    """Pack rows, with rows of equal prefixes together.

    Args:
        tokens: i64[b l], right-padded.
        lengths: i64[b].
        prefixes: i64[b], the number of tokens of each row before the first one to predict; at least 1.
    """
    host, ends, starts = tokens.cpu().numpy(), lengths.tolist(), prefixes.tolist()
    members: dict[bytes, list[int]] = {}
    for row, prefix in enumerate(starts):
        members.setdefault(host[row, :prefix].tobytes(), []).append(row)
    shapes = [(starts[rows[0]], tuple(ends[row] - starts[row] for row in rows)) for rows in members.values()]
    # Segments of the packed row: the original row, the first column in it, the length, and the end of the preceding prefix
    # (0 for a prefix itself).
    segments: list[tuple[int, int, int, int]] = []
    at = 0
    for rows, (prefix, own) in zip(members.values(), shapes, strict=True):
        segments.append((rows[0], 0, prefix, 0))
        segments.extend((row, prefix, count, at + prefix) for row, count in zip(rows, own, strict=True))
        at += prefix + sum(own)
    row_of, first_of, counts, prefix_end = np.array(segments).T
    segment, within = _ragged(counts)
    row, column = row_of[segment], first_of[segment] + within
    # The first token is predicted by the prefix's last state, all others by the state before them.
    source = np.where(within == 0, prefix_end[segment], np.arange(len(segment))) - 1
    predicted = np.flatnonzero(prefix_end[segment])
    groups = {shape: _group(*shape, tokens.device) for shape in set(shapes)}

    def put(values: NDArray[np.int64]) -> Tensor:
        return torch.from_numpy(values).to(tokens.device)

    return PackedLayout(
        tokens=put(host[row, column])[None],
        positions=put(column)[None],
        groups=tuple(groups[shape] for shape in shapes),
        sources=put(source[predicted]),
        targets=put(predicted),
        rows=put(row[predicted]),
        columns=put(column[predicted]),
    )


def _ragged(counts: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """For consecutive segments of these lengths, the segment of each token and the token's index within this segment."""
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
    """The cheapest number of equal blocks of completions: a trade-off between masked pairs and copies of the prefix."""

    def work(blocks: int) -> float:
        block = members // blocks * length
        copies = 0.0 if blocks == 1 else prefix / max(block, 1)
        return block + _PREFIX_COPY * copies

    return min((blocks for blocks in range(1, members + 1) if members % blocks == 0), key=work)


def _block_masks(prefix: int, blocks: Sequence[NDArray[np.int64]], width: int) -> Tensor:
    """The masks bool[b 1 width prefix+width] by which each token attends to the prefix and to its own completion so far."""
    masks = np.ones((len(blocks), 1, width, prefix + width), dtype=bool)
    earlier = np.tri(width, dtype=bool)
    for mask, lengths in zip(masks[:, 0, :, prefix:], blocks, strict=True):
        member = np.full(width, len(lengths))  # padding belongs to no completion
        member[: lengths.sum()] = _ragged(lengths)[0]
        mask[:] = earlier & (member[:, None] == member)
    return torch.from_numpy(masks)


def mask_entries(groups: Sequence[Group]) -> int:
    """The number of entries in the masks of groups; groups of the same shape share one mask."""
    return sum({id(group): group.mask.numel() for group in groups}.values())


@dataclass(frozen=True)
class Costs:
    """Numbers of multiplications of a model, over all its layers."""

    token: int
    """Multiplications for each token: the entries of the layers' matrices."""
    pair: int
    """Multiplications for each pair of tokens in attention: the entries of a query and of a value."""


def relative_cost(layout: PackedLayout, rows: int, length: int, costs: Costs) -> float:
    """The cost of the packed pass relative to the plain one over `rows` padded rows of `length` tokens.

    The cost is counted in multiplications of tokens with matrices and of pairs of tokens in attention; the causal kernel of the
    plain pass skips half of the pairs.
    """
    plain = rows * length * costs.token + rows * length**2 / 2 * costs.pair
    pairs = sum(
        group.prefix**2 / 2 + _MASKED_ATTENTION * group.blocks * group.width * (group.prefix + group.width)
        for group in layout.groups
    )
    return float((layout.tokens.shape[1] * costs.token + pairs * costs.pair) / plain)


def is_cheaper(layout: PackedLayout, rows: int, length: int, costs: Costs) -> bool:
    """Whether the packed pass is cheaper than the plain one; see `relative_cost`."""
    return relative_cost(layout, rows, length, costs) < 1


_active: contextvars.ContextVar[bool] = contextvars.ContextVar("shared_prefix_active", default=False)


@contextlib.contextmanager
def shared_prefix_attention(model: Any) -> Iterator[None]:
    """A context in which a model follows the layout with which it is called; calls without a layout are not affected."""
    if model.config._attn_implementation != IMPLEMENTATION:
        # The setting stays, since the backward pass of checkpointed layers needs it again.
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
    """Attention by `sdpa`; with a layout, in two calls for each group. Query, key and value are f[1 h n d].

    With `group_layout`, in sampling, query, key and value are the arguments of `attend_by_groups`.

    Raises:
        ValueError: If there is a layout and the model passes a mask, a bias or the like of its own.
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
    # A group with one block needs its keys in one piece.
    sizes = [(group.prefix + group.own,) if group.blocks == 1 else (group.prefix, group.own) for group in prefix_layout]
    scale = kwargs.get("scaling")
    outputs: list[Tensor] = []
    for group, *states in zip(prefix_layout, queries, _cut(key, sizes), _cut(value, sizes), strict=True):
        attend = _attend_together if group.blocks == 1 else _attend_in_blocks
        outputs.extend(attend(group, scale, *states))
    return torch.cat(outputs, dim=2).transpose(1, 2), None


def _refuse_additions(attention_mask: Tensor | None, keywords: Mapping[str, Any]) -> None:
    """Reject masks and biases passed by the model, which a layout would silently ignore."""
    own = {"attention_mask": attention_mask, **keywords}
    # Positions are already part of keys and queries, and models pass them on regardless.
    added = [name for name, value in own.items() if isinstance(value, Tensor) and name != "position_ids"]
    if added:
        raise ValueError(
            f"the model itself passes {' and '.join(added)} to its attention, which is not supported with shared prompts; "
            "shared_prefix=False processes each row separately"
        )


def _cut(states: Tensor, sizes: Sequence[tuple[int, ...]]) -> list[tuple[Tensor, ...]]:
    """Split f[1 h n d] into several pieces for each group.

    The split is one call, since the gradient of each single slice would be a tensor of all tokens, zero except for the slice.
    """
    pieces = iter(states.split([size for group in sizes for size in group], dim=2))
    return [tuple(itertools.islice(pieces, len(group))) for group in sizes]


def _attend_together(
    group: Group, scale: float | None, query: tuple[Tensor, ...], key: tuple[Tensor, ...], value: tuple[Tensor, ...]
) -> tuple[Tensor, Tensor]:
    """The outputs f[1 h t d] of a group's prefix and of its completions, in one block."""
    head = (query[0], key[0][:, :, : group.prefix], value[0][:, :, : group.prefix])
    return (
        scaled_dot_product_attention(*head, is_causal=True, scale=scale),
        scaled_dot_product_attention(query[1], key[0], value[0], attn_mask=group.bias(value[0].dtype), scale=scale),
    )


def _attend_in_blocks(
    group: Group, scale: float | None, query: tuple[Tensor, ...], key: tuple[Tensor, ...], value: tuple[Tensor, ...]
) -> tuple[Tensor, Tensor]:
    """The outputs f[1 h t d] of a group with several blocks; the prefix's keys and values are copied to each block."""
    first = scaled_dot_product_attention(query[0], key[0], value[0], is_causal=True, scale=scale)
    keys, values = (
        torch.cat([head.expand(group.blocks, -1, -1, -1), _by_blocks(own, group)], dim=2) for head, own in (key, value)
    )
    own_query = _by_blocks(query[1], group)
    second = scaled_dot_product_attention(own_query, keys, values, attn_mask=group.bias(values.dtype), scale=scale)
    together = second.transpose(0, 1).flatten(1, 2)
    return first, (together if group.real is None else together[:, group.real])[None]


def _by_blocks(states: Tensor, group: Group) -> Tensor:
    """Arrange f[1 h n d], a group's completions, in blocks f[b h c d], padded on the right."""
    taken = states[0] if group.columns is None else states[0].index_select(1, group.columns)
    blocks: Tensor = taken.unflatten(1, (group.blocks, group.width)).transpose(0, 1)
    return blocks


AttentionInterface.register(IMPLEMENTATION, _attention)
AttentionMaskInterface.register(IMPLEMENTATION, _mask)
