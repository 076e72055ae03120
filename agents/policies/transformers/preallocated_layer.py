"""One layer of a KV cache whose columns are written in place."""

from __future__ import annotations

import math
import mmap
from typing import Any

import torch
from torch import Tensor
from transformers.cache_utils import DynamicLayer

SPARE_STEPS = 64
"""Number of tokens of each row for which space is allocated at once."""
_MAPPED = 2**20
"""Smallest number of bytes of a buffer that is mapped on a CPU; smaller buffers cost less than the system call."""


class GrowingLayer(DynamicLayer):  # type: ignore[misc] # transformers is not read for types
    """Keys and values with spare columns, so that appending a token does not copy the others."""

    _spare_columns = SPARE_STEPS

    def __init__(self, keys: Tensor, values: Tensor) -> None:
        super().__init__()
        self.lazy_initialization(keys, values)
        self.keys, self.values = keys, values
        self._room: tuple[Tensor, Tensor] | None = None
        self._filled: Tensor | None = None  # the keys that `_room` begins with

    @classmethod
    def spread(cls, keys: Tensor, values: Tensor, rows: Tensor) -> GrowingLayer:
        """Copy rows i64[r] of keys and values f[b h t d] into a new buffer with spare columns."""
        layer = cls(keys, values)
        layer.batch_select_indices(rows)
        return layer

    @classmethod
    def joined(cls, *layers: GrowingLayer) -> GrowingLayer:
        """Stack the rows of several layers; all rows end at the same column."""
        joined = cls(layers[0].keys, layers[0].values)
        keys, values = ([getattr(layer, name) for layer in layers] for name in ("keys", "values"))
        columns = max(states.shape[2] for states in keys)
        joined._room = (_stacked(keys, columns, cls._spare_columns), _stacked(values, columns, cls._spare_columns))
        joined._fill(columns)
        return joined

    def update(self, key_states: Tensor, value_states: Tensor, *args: Any, **kwargs: Any) -> tuple[Tensor, Tensor]:
        """Append the columns of new keys and values; return all keys and values."""
        keys, values = self.keys, self.values
        assert keys is not None
        assert values is not None
        filled = keys.shape[-2]
        end = filled + key_states.shape[-2]
        # Dropping rows or columns replaces the keys, and the old buffer no longer belongs to them.
        if self._room is None or self._filled is not keys or end > self._room[0].shape[-2]:
            columns = end + self._spare_columns
            self._room = (_with_room(keys, columns), _with_room(values, columns))
        self._room[0][:, :, filled:end] = key_states
        self._room[1][:, :, filled:end] = value_states
        return self._fill(end)

    def batch_select_indices(self, indices: Tensor) -> None:
        """Keep some rows, in this order, and allocate spare columns."""
        assert self.keys is not None
        assert self.values is not None
        spare = self._spare_columns
        self._room = (_selected(self.keys, indices, spare), _selected(self.values, indices, spare))
        self._fill(self.keys.shape[2])

    def _fill(self, columns: int) -> tuple[Tensor, Tensor]:
        """Mark the given number of columns of the buffer as filled."""
        assert self._room is not None
        keys, values = self._room[0][:, :, :columns], self._room[1][:, :, :columns]
        self.keys, self.values, self._filled = keys, values, keys
        return keys, values


def _with_room(states: Tensor, columns: int) -> Tensor:
    room = _room(states, len(states), columns)
    room[:, :, : states.shape[2]] = states
    return room


def _selected(states: Tensor, rows: Tensor, spare: int) -> Tensor:
    columns = states.shape[2]
    room = _room(states, len(rows), columns + spare)
    torch.index_select(states, 0, rows, out=room[:, :, :columns])
    return room


def _stacked(parts: list[Tensor], columns: int, spare: int) -> Tensor:
    """Stack the rows of f[b_i h t_i d] in one buffer, all ending at column `columns`, with masked zeros before them."""
    room = _room(parts[0], sum(map(len, parts)), columns + spare)
    for rows, states in zip(room.split(list(map(len, parts))), parts, strict=True):
        padding = columns - states.shape[2]
        rows[:, :, :padding] = 0
        rows[:, :, padding:columns] = states
    return room


def _room(states: Tensor, rows: int, columns: int) -> Tensor:
    """An uninitialised buffer f[rows h columns d] for states f[b h t d]; its memory is returned as soon as it is dropped.

    On a CPU the buffer is a separate memory mapping. Whenever rows start or end, buffers are replaced by others of slightly
    different sizes. The C library keeps memory that is freed between blocks in use, so with its memory the process grew to a
    multiple of the cache's size.
    """
    shape = (rows, states.shape[1], columns, states.shape[3])
    size = math.prod(shape) * states.element_size()
    if states.device.type != "cpu" or size < _MAPPED or not hasattr(mmap, "MAP_ANONYMOUS"):
        return states.new_empty(shape)
    memory = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    return torch.frombuffer(memory, dtype=states.dtype).view(shape)
