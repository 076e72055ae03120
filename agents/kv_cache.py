"""A KV cache over rows that begin and end at different times.

All rows end at the same column, so that one forward pass appends one token to each; what stands left of a row's first
token is padding, which the attention mask hides.
"""

from __future__ import annotations

import enum
from typing import Any

import torch
from torch import Tensor
from transformers import DynamicCache
from transformers.cache_utils import DynamicLayer

from agents.model_parts import takes_positions


class CacheKind(enum.Enum):
    """What a model's cache allows."""

    MERGED = "merged"
    """Plain keys and values in every layer: rows can be dropped and others added."""
    SELECTED = "selected"
    """Keys and values, some of a window only: rows can be dropped, and are all read anew when others begin."""
    NONE = "none"
    """No cache of keys and values (recurrent and hybrid models, or none at all): everything is read at every token."""


@torch.no_grad()
def cache_kind(model: Any) -> CacheKind:
    """Find out what a model does with a cache by giving it two tokens."""
    cache = DynamicCache(config=model.config)
    tokens = torch.zeros(1, 2, dtype=torch.long, device=model.device)
    try:
        model(input_ids=tokens, past_key_values=cache, use_cache=True)
        filled = cache.get_seq_length() == 2
    except (AttributeError, IndexError, TypeError, ValueError):  # a cache of another kind is needed: none is used
        return CacheKind.NONE
    if not filled or not all(isinstance(layer, DynamicLayer) for layer in cache.layers):
        return CacheKind.NONE
    plain = all(type(layer) is DynamicLayer for layer in cache.layers)
    return CacheKind.MERGED if plain else CacheKind.SELECTED


_SPARE_COLUMNS = 64


class GrowingLayer(DynamicLayer):
    """Keys and values with spare columns, so that a token is written in its place and the others are not copied for it."""

    def __init__(self, keys: Tensor, values: Tensor) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.lazy_initialization(keys, values)
        self.keys, self.values = keys, values
        self._room: tuple[Tensor, Tensor] | None = None
        self._filled: Tensor | None = None  # the keys that `_room` begins with

    def update(self, key_states: Tensor, value_states: Tensor, *args: Any, **kwargs: Any) -> tuple[Tensor, Tensor]:
        """Append columns."""
        keys, values = self.keys, self.values
        assert keys is not None
        assert values is not None
        filled = keys.shape[-2]
        end = filled + key_states.shape[-2]
        # Whoever drops rows or columns replaces the keys; what room there was is then another tensor's.
        if self._room is None or self._filled is not keys or end > self._room[0].shape[-2]:
            self._room = (_with_room(keys, end + _SPARE_COLUMNS), _with_room(values, end + _SPARE_COLUMNS))
        for room, states in zip(self._room, (key_states, value_states), strict=True):
            room[:, :, filled:end] = states
        keys, values = (room[:, :, :end] for room in self._room)
        self.keys, self.values, self._filled = keys, values, keys
        return keys, values

    def batch_select_indices(self, indices: Tensor) -> None:
        """Keep some rows, in this order, and the room with them."""
        if self._room is None or self._filled is None or self._filled is not self.keys:
            super().batch_select_indices(indices)
            return
        filled = self._filled.shape[-2]
        self._room = (self._room[0].index_select(0, indices), self._room[1].index_select(0, indices))
        self.keys, self.values = self._room[0][:, :, :filled], self._room[1][:, :, :filled]
        self._filled = self.keys


def _with_room(states: Tensor, columns: int) -> Tensor:
    room = states.new_empty((*states.shape[:2], columns, states.shape[-1]))
    room[:, :, : states.shape[2]] = states
    return room


class RowCache:
    """Keys and values of some rows, each a prefix of tokens that the model has read.

    Args:
        model: A `transformers` causal LM.
        kind: What its cache allows; not `NONE`.
    """

    def __init__(self, model: Any, kind: CacheKind) -> None:
        self._model = model
        self._kind = kind
        self._takes_positions = takes_positions(model)
        self.lengths: list[int] = []
        """How many tokens each row of the cache holds."""
        self._cache: Any = None  # a DynamicCache; its layers are typed more widely than they are here

    @property
    def mergeable(self) -> bool:
        """Whether rows can be added to those that are there: all layers keep plain keys and values."""
        return self._cache is None or self._kind is CacheKind.MERGED

    def prefill(self, prompts: list[Tensor], repeats: Tensor) -> Tensor:
        """Read prompts i64[l_i] as new rows of an empty cache, and give the logits [r v] after each.

        Args:
            prompts: Different token prefixes.
            repeats: i64[r], for each new row which prompt it has; a prompt is computed once, however many rows have it.
        """
        width = max(len(prompt) for prompt in prompts)
        tokens = torch.zeros(len(prompts), width, dtype=torch.long)
        for row, prompt in enumerate(prompts):
            tokens[row, width - len(prompt) :] = prompt
        lengths = [len(prompt) for prompt in prompts]
        self._cache = DynamicCache(config=self._model.config)
        logits = self._forward(tokens, lengths, width)
        if self._kind is CacheKind.MERGED:
            self._cache.layers = [GrowingLayer(layer.keys, layer.values) for layer in self._cache.layers]
        indices = repeats.to(logits.device)
        if len(prompts) < len(repeats):
            self._cache.batch_select_indices(indices)
        self.lengths = [lengths[row] for row in repeats.tolist()]
        return logits[indices]

    def append(self, tokens: Tensor) -> Tensor:
        """Read one more token i64[r] in every row, and give the logits [r v] after each."""
        self.lengths = [length + 1 for length in self.lengths]
        return self._forward(tokens[:, None], self.lengths, self._columns() + 1)

    def keep(self, rows: list[int]) -> None:
        """Drop all rows but these, in this order, and the columns that none of them needs."""
        if self._cache is None or rows == list(range(len(self.lengths))):
            return
        self.lengths = [self.lengths[row] for row in rows]
        if not rows:
            self._cache = None
            return
        self._cache.batch_select_indices(torch.tensor(rows, device=self._model.device))
        spare = self._columns() - max(self.lengths)
        if spare and self.mergeable:
            for layer in self._cache.layers:
                layer.keys, layer.values = layer.keys[:, :, spare:], layer.values[:, :, spare:]

    def extend(self, other: RowCache) -> None:
        """Add the rows of another cache behind those of this one."""
        if self._cache is None or other._cache is None:
            self._cache, self.lengths = other._cache or self._cache, other.lengths or self.lengths
            return
        width = max(self._columns(), other._columns())
        for mine, theirs in zip(self._cache.layers, other._cache.layers, strict=True):
            mine.keys = torch.cat([_pad(mine.keys, width), _pad(theirs.keys, width)])
            mine.values = torch.cat([_pad(mine.values, width), _pad(theirs.values, width)])
        self.lengths = self.lengths + other.lengths

    def _columns(self) -> int:
        return 0 if self._cache is None else self._cache.get_seq_length()

    def _forward(self, tokens: Tensor, lengths: list[int], columns: int) -> Tensor:
        device = self._model.device
        ends = torch.tensor(lengths, device=device)[:, None]
        arguments: dict[str, Any] = {"input_ids": tokens.to(device), "past_key_values": self._cache, "use_cache": True}
        if min(lengths) < columns:
            arguments["attention_mask"] = torch.arange(columns, device=device) >= columns - ends
        if self._takes_positions:
            offsets = torch.arange(-tokens.shape[1], 0, device=device)
            arguments["position_ids"] = (ends + offsets).clamp(min=0)
        logits: Tensor = self._model(**arguments, logits_to_keep=1).logits[:, -1]
        return logits


def read_without_cache(model: Any, prompts: list[Tensor]) -> Tensor:
    """Read whole prefixes i64[l_i] and give the logits [r v] after each, with no padding: those of one length together."""
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


def _pad(states: Tensor, width: int) -> Tensor:
    # Padded with zeros, which the attention mask hides.
    return torch.nn.functional.pad(states, (0, 0, width - states.shape[2], 0))
