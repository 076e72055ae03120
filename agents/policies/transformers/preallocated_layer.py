"""One layer of a KV cache whose columns are written in place."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from transformers.cache_utils import DynamicLayer

SPARE_STEPS = 64
"""Number of tokens of each row for which space is allocated at once."""


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
        """Copy the rows i64[r] of keys and values f[b h t d] into a new buffer with spare columns."""
        layer = cls(keys, values)
        columns = keys.shape[2]
        shape = (len(rows), keys.shape[1], columns + cls._spare_columns, keys.shape[3])
        layer._room = (keys.new_empty(shape), values.new_empty((*shape[:3], values.shape[3])))
        for room, states in zip(layer._room, (keys, values), strict=True):
            torch.index_select(states, 0, rows, out=room[:, :, :columns])
        layer._fill(columns)
        return layer

    def update(self, key_states: Tensor, value_states: Tensor, *args: Any, **kwargs: Any) -> tuple[Tensor, Tensor]:
        """Append columns."""
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
        """Keep some rows, in this order, with their spare columns."""
        if self._room is None or self._filled is None or self._filled is not self.keys:
            super().batch_select_indices(indices)
            return
        filled = self._filled.shape[-2]
        self._room = (self._room[0].index_select(0, indices), self._room[1].index_select(0, indices))
        self._fill(filled)

    def _fill(self, columns: int) -> tuple[Tensor, Tensor]:
        """Mark so many columns of the buffer as filled."""
        assert self._room is not None
        keys, values = self._room[0][:, :, :columns], self._room[1][:, :, :columns]
        self.keys, self.values, self._filled = keys, values, keys
        return keys, values


def _with_room(states: Tensor, columns: int) -> Tensor:
    room = states.new_empty((*states.shape[:2], columns, states.shape[-1]))
    room[:, :, : states.shape[2]] = states
    return room
