"""A KV cache for rows that start and end at different times; a trial finds what a model's cache can do.

All rows end at the same column, so that one forward pass appends one token to each row; columns before a row's first token are
padding, which the attention mask hides. Rows with the same prompt share its keys and values while this is faster; see
`agents.policies.transformers.shared_prompt_cache`.
"""

from __future__ import annotations

import contextlib
import enum
from typing import Any

import torch
from torch import Tensor
from transformers import DynamicCache
from transformers.cache_utils import DynamicLayer, DynamicSlidingWindowLayer

from agents.policies.transformers.model_capabilities import agree, some_tokens, takes_positions
from agents.policies.transformers.preallocated_layer import GrowingLayer
from agents.policies.transformers.prefix_sharing import shared_prefix_attention
from agents.policies.transformers.shared_prompt_cache import GroupLayer, GroupLayout


class CacheKind(enum.Enum):
    """The operations that a model's cache supports."""

    MERGED = "merged"
    """Plain keys and values in every layer: rows can be dropped and added."""
    SELECTED = "selected"
    """Keys and values, some of a sliding window: rows can be dropped, but all rows are recomputed when other rows start."""
    NONE = "none"
    """No KV cache (recurrent and hybrid models, and models without any cache): the whole prefix is recomputed at every
    token."""


@torch.no_grad()
def cache_kind(model: Any) -> CacheKind:
    """Determine by a trial with two tokens which operations a model's cache supports."""
    cache = DynamicCache(config=model.config)
    tokens = torch.zeros(1, 2, dtype=torch.long, device=model.device)
    try:
        model(input_ids=tokens, past_key_values=cache, use_cache=True)
        filled = cache.get_seq_length() == 2
    except (AttributeError, IndexError, TypeError, ValueError):  # the model needs another kind of cache: none is used
        return CacheKind.NONE
    # By exact type: a subclass may keep more, such as a recurrent state, whose rows would not be selected.
    layer_types = {type(layer) for layer in cache.layers}
    if not filled or not layer_types <= {DynamicLayer, DynamicSlidingWindowLayer}:
        return CacheKind.NONE
    return CacheKind.MERGED if layer_types == {DynamicLayer} else CacheKind.SELECTED


class Grouping(enum.Enum):
    """Whether the common prompt of several rows is stored once; see `can_group`."""

    NEVER = "never"
    IF_CHEAPER = "if cheaper"
    """The prompt is stored once until other rows are added, or until separate rows are faster."""
    ALWAYS = "always"
    """The prompt is stored once until other rows are added."""


@torch.no_grad()
def can_group(model: Any, kind: CacheKind) -> bool:
    """Whether prompts can be stored once per group, by a trial on a few tokens; requires that `can_share` is true.

    Only on a CPU so far: decoding on a GPU is dominated by kernel launches, and grouping needs more launches.
    """
    if kind is not CacheKind.MERGED or not takes_positions(model) or model.device.type != "cpu":
        return False
    tokens = some_tokens(model, 4, 3)

    def read(grouping: Grouping) -> Tensor:
        cache = RowCache(model, kind, positions=True, grouping=grouping)
        cache.prefill([tokens[0], tokens[1, :2]], torch.tensor([0, 1, 0]))  # uneven groups of uneven prompts
        return torch.stack([cache.append(column) for column in tokens[2:]]).float().log_softmax(dim=-1)

    try:
        grouped = read(Grouping.ALWAYS)
    except (TypeError, ValueError, IndexError, RuntimeError):  # further keywords or such a cache are not supported
        return False
    return agree(grouped, read(Grouping.NEVER), model.dtype)


class RowCache:
    """Keys and values of some rows, each a prefix of processed tokens.

    Args:
        model: A `transformers` causal LM.
        kind: The operations that the model's cache supports; not `NONE`.
        positions: Whether the model accepts position ids; see `takes_positions`.
        grouping: When common prompts are stored once.
    """

    def __init__(self, model: Any, kind: CacheKind, *, positions: bool, grouping: Grouping = Grouping.NEVER) -> None:
        self.model = model
        """The model; it may be replaced by another model that computes the same."""
        self._kind = kind
        self._takes_positions = positions
        self._grouping = grouping
        self.lengths: list[int] = []
        """Number of tokens in each row of the cache."""
        self._cache: Any = None  # a DynamicCache; Any, since its layers' types are too general
        self._layout: GroupLayout | None = None  # while prompts are stored once

    @property
    def mergeable(self) -> bool:
        """Whether rows can be added, because all layers have plain keys and values."""
        return self._cache is None or self._kind is CacheKind.MERGED

    def prefill(self, prompts: list[Tensor], repeats: Tensor) -> Tensor:
        """Process prompts i64[l_i] as new rows of an empty cache, and return the logits [r v] after each row's prompt.

        Args:
            prompts: Distinct token prefixes.
            repeats: i64[r], the prompt of each new row; each prompt is computed once.
        """
        width = max(len(prompt) for prompt in prompts)
        tokens = torch.zeros(len(prompts), width, dtype=torch.long)
        for row, prompt in enumerate(prompts):
            tokens[row, width - len(prompt) :] = prompt
        lengths = [len(prompt) for prompt in prompts]
        self._cache = DynamicCache(config=self.model.config)
        logits = self._forward(tokens, lengths, width)
        indices = repeats.to(logits.device)
        self.lengths = [lengths[row] for row in repeats.tolist()]
        if self._kind is not CacheKind.MERGED:
            if len(prompts) < len(repeats):
                self._cache.batch_select_indices(indices)
            return logits[indices]
        for layer in self._cache.layers:
            layer.keys, layer.values = _as_attended(layer.keys), _as_attended(layer.values)
        if not self._start_groups(repeats.tolist(), lengths):
            self._cache.layers = [
                GrowingLayer.spread(layer.keys, layer.values, indices) for layer in self._cache.layers
            ]
        return logits[indices]

    def _start_groups(self, groups: list[int], prompts: list[int]) -> bool:
        """Store each prompt once if `grouping` requires it, and return whether it does."""
        if len(prompts) == len(groups):
            return False
        layers = self._cache.layers
        _, heads, columns, size = layers[0].keys.shape
        layout = GroupLayout(groups, prompts, heads * size, layers[0].keys.device)
        if not self._pays(layout, columns):
            return False
        self._layout = layout
        self._cache.layers = [GroupLayer(layer.keys, layer.values, layout) for layer in layers]
        return True

    def _pays(self, layout: GroupLayout, columns: int) -> bool:
        """Whether to process the next token by groups with this number of columns."""
        if self._grouping is Grouping.IF_CHEAPER:
            return layout.pays(columns + layout.members)
        return self._grouping is Grouping.ALWAYS

    def append(self, tokens: Tensor) -> Tensor:
        """Process one more token i64[r] in every row, and return the logits [r v] after these tokens."""
        self.lengths = [length + 1 for length in self.lengths]
        if self._layout is not None and not self._pays(self._layout, self._columns()):
            self._leave_groups()
        return self._forward(tokens[:, None], self.lengths, self._columns() + 1)

    def keep(self, rows: list[int]) -> None:
        """Keep only these rows, in this order, and drop columns that none of them needs."""
        if self._cache is None or rows == list(range(len(self.lengths))):
            return
        self.lengths = [self.lengths[row] for row in rows]
        if not rows:
            self._cache = self._layout = None
        elif self._layout is not None:
            self._keep_in_groups(self._layout, rows)
        else:
            self._cache.batch_select_indices(torch.tensor(rows, device=self.model.device))
            spare = self._columns() - max(self.lengths)
            if spare and self.mergeable:
                for layer in self._cache.layers:
                    layer.keys, layer.values = layer.keys[:, :, spare:], layer.values[:, :, spare:]

    def _keep_in_groups(self, layout: GroupLayout, rows: list[int]) -> None:
        num_groups = layout.num_groups
        groups = layout.keep(rows)
        if len(groups) < num_groups:
            self._cache.batch_select_indices(torch.tensor(groups, device=self.model.device))

    def extend(self, other: RowCache) -> None:
        """Append the rows of another cache."""
        if self._cache is None:
            self._cache, self.lengths = other._cache, other.lengths
            self._layout, self._grouping = other._layout, other._grouping
        elif other._cache is not None:
            for cache in (self, other):
                cache._leave_groups()
            for number, layers in enumerate(zip(self._cache.layers, other._cache.layers, strict=True)):
                self._cache.layers[number] = GrowingLayer.joined(*layers)
            self.lengths = self.lengths + other.lengths

    def _leave_groups(self) -> None:
        """Switch to one row per sequence, each with its own copy of the prompt."""
        if self._layout is not None:
            self._cache.layers = [layer.by_rows() for layer in self._cache.layers]
            self._layout = None

    def _columns(self) -> int:
        return 0 if self._cache is None else self._cache.get_seq_length()

    def _forward(self, tokens: Tensor, lengths: list[int], columns: int) -> Tensor:
        device = self.model.device
        ends = torch.tensor(lengths, device=device)[:, None]
        arguments: dict[str, Any] = {"input_ids": tokens.to(device), "past_key_values": self._cache, "use_cache": True}
        attention: contextlib.AbstractContextManager[None] = contextlib.nullcontext()
        if self._layout is not None:
            arguments["group_layout"] = self._layout
            attention = shared_prefix_attention(self.model)
        elif min(lengths) < columns:
            arguments["attention_mask"] = torch.arange(columns, device=device) >= columns - ends
        if self._takes_positions:
            offsets = torch.arange(-tokens.shape[1], 0, device=device)
            arguments["position_ids"] = (ends + offsets).clamp(min=0)
        with attention:
            logits: Tensor = self.model(**arguments, logits_to_keep=1).logits[:, -1]
        return logits


def read_without_cache(model: Any, prompts: list[Tensor]) -> Tensor:
    """Process whole prefixes i64[l_i] without padding, grouped by length, and return the logits [r v] after each prefix."""
    by_length: dict[int, list[int]] = {}
    for row, prompt in enumerate(prompts):
        by_length.setdefault(len(prompt), []).append(row)
    logits: list[Tensor] = [torch.empty(0)] * len(prompts)
    for rows in by_length.values():
        tokens = torch.stack([prompts[row] for row in rows]).to(model.device)
        for row, last in zip(
            rows, model(input_ids=tokens, use_cache=False, logits_to_keep=1).logits[:, -1], strict=True
        ):
            logits[row] = last
    return torch.stack(logits)


def _as_attended(states: Tensor) -> Tensor:
    """Keys or values in the precision to which attention would otherwise convert them at every token."""
    device = states.device.type
    return states.to(torch.get_autocast_dtype(device)) if torch.is_autocast_enabled(device) else states
