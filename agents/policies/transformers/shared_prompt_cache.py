"""KV cache of groups of rows that share a prompt; the prompt's keys and values are stored and read once per group.

In every layer a group has one row of columns: its prompt's columns, and then at each step one column for each member. The
queries of all members attend to the row in one call, with a mask that shows each member the prompt and its own columns. This
needs more products than separate rows, but it reads the prompt's keys from memory once, and as a matrix product. So it is
faster until the columns of the other members outweigh the prompt.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention

from agents.policies.transformers.preallocated_layer import SPARE_STEPS, GrowingLayer

# Costs of attention, in comparisons of one query with one column, as measured on a CPU.
_READING = 9.0
"""Cost of reading a column, which does not depend on the number of queries."""
_STARTING = 300.0
"""Fixed cost of a row of columns."""
_FOLDING = 1e6
"""Cost of regrouping rows at every step, multiplied by the number of entries of a column."""


class GroupLayout:
    """The slots of the rows of a pass, in g groups of up to m members each, and the groups' attention masks.

    Args:
        groups: The group of each row, 0 to g - 1.
        prompts: The number of prompt tokens of each group; shorter prompts are padded on the left.
        width: Number of entries of a column's keys, h d.
        device: The model's device.
    """

    def __init__(self, groups: Sequence[int], prompts: Sequence[int], width: int, device: torch.device) -> None:
        self._width = width
        self.members = max(map(groups.count, set(groups)))
        counts = [0] * len(prompts)
        self._slots: list[int] = []  # the slot of each row among the g m slots
        for group in groups:
            self._slots.append(group * self.members + counts[group])
            counts[group] += 1
        self._prompts = list(prompts)
        self.prompt = max(prompts)
        """Number of columns of the prompts."""
        self._device = device
        self._masks: Tensor | None = None
        self._index()

    def _index(self) -> None:
        """Update `full` and `slots`."""
        self.full = self._slots == list(range(self.num_groups * self.members))
        """Whether each group has all members, in order."""
        self.slots = torch.tensor(self._slots, device=self._device)
        """i64[r], the slot of each row among the g m slots."""

    def keep(self, rows: Sequence[int]) -> list[int]:
        """Keep only these rows and their groups; return the remaining groups."""
        slots = [self._slots[row] for row in rows]
        groups = sorted({slot // self.members for slot in slots})
        number = {group: new for new, group in enumerate(groups)}
        self._slots = [number[slot // self.members] * self.members + slot % self.members for slot in slots]
        if len(groups) < self.num_groups:
            self._prompts = [self._prompts[group] for group in groups]
            self._masks = None
        self._index()
        return groups

    @property
    def num_groups(self) -> int:
        """Number of groups that have rows."""
        return len(self._prompts)

    def pays(self, columns: int) -> bool:
        """Whether attending to this number of columns per group is cheaper than attending to separate columns for each row."""
        steps = (columns - self.prompt) // self.members
        by_rows = len(self._slots) * (_STARTING + (self.prompt + steps) * (_READING + 1))
        by_groups = self.num_groups * (_STARTING + columns * (_READING + self.members))
        return by_groups + _FOLDING / self._width < by_rows

    def fold(self, states: Tensor) -> Tensor:
        """Arrange rows by group: turns f[r h 1 d] into f[g m h d], with zeros in slots without a row."""
        _, heads, _, depth = states.shape
        if not self.full:
            num_slots = self.num_groups * self.members
            states = states.new_zeros(num_slots, heads, 1, depth).index_copy(0, self.slots, states)
        return states.reshape(self.num_groups, self.members, heads, depth)

    def unfold(self, states: Tensor) -> Tensor:
        """Take the rows out of their groups: turns f[g m h d] into f[r 1 h d]."""
        flat = states.reshape(self.num_groups * self.members, 1, *states.shape[2:])
        return flat if self.full else flat.index_select(0, self.slots)

    def mask(self, columns: int, repeats: int, dtype: torch.dtype) -> Tensor:
        """The mask f[g 1 repeats*m columns], 0 where visible and -inf elsewhere; one for all groups of equally long prompts."""
        rows = repeats * self.members
        masks = self._masks
        if masks is None or masks.dtype is not dtype or masks.shape[2] != rows or masks.shape[3] < columns:
            masks = self._masks = self._new_masks(columns + SPARE_STEPS * self.members, dtype).repeat(1, 1, repeats, 1)
        return masks[..., :columns]

    def _new_masks(self, columns: int, dtype: torch.dtype) -> Tensor:
        ends = torch.tensor(self._prompts if len(set(self._prompts)) > 1 else self._prompts[:1])
        steps = -(-(columns - self.prompt) // self.members)
        prompt = torch.arange(self.prompt) >= self.prompt - ends[:, None, None, None]
        own = torch.eye(self.members, dtype=torch.bool).repeat(1, steps)
        seen = torch.cat([mask.expand(len(ends), 1, self.members, -1) for mask in (prompt, own)], dim=-1)
        return torch.zeros(seen.shape, dtype=dtype).masked_fill(~seen, -torch.inf).to(self._device)


class GroupLayer(GrowingLayer):
    """Keys and values of groups, f[g h c d] with c = prompt + members * steps.

    Args:
        keys: Keys of the prompts.
        values: Values of the prompts.
        layout: Layout of the groups, from which rows may be dropped in between.
    """

    def __init__(self, keys: Tensor, values: Tensor, layout: GroupLayout) -> None:
        super().__init__(keys, values)
        self._layout = layout
        self._spare_columns = SPARE_STEPS * layout.members

    def update(self, key_states: Tensor, value_states: Tensor, *args: Any, **kwargs: Any) -> tuple[Tensor, Tensor]:
        """Append one token f[r h 1 d] of each row; return the groups' columns."""
        fold = self._layout.fold
        return super().update(fold(key_states).transpose(1, 2), fold(value_states).transpose(1, 2))

    def by_rows(self) -> GrowingLayer:
        """Convert to separate columns for each row."""
        assert self.keys is not None
        assert self.values is not None
        prompt, groups = self._layout.prompt, self._layout.slots // self._layout.members
        layer = GrowingLayer.spread(self.keys[:, :, :prompt], self.values[:, :, :prompt], groups)
        if self.keys.shape[2] > prompt:
            layer.update(self._own_by_rows(self.keys), self._own_by_rows(self.values))
        return layer

    def _own_by_rows(self, states: Tensor) -> Tensor:
        """Each row's own columns without the prompt: turns f[g h c d] into f[r h t d]."""
        own = states[:, :, self._layout.prompt :].unflatten(2, (-1, self._layout.members))
        by_member: Tensor = own.permute(0, 3, 1, 2, 4).flatten(0, 1)
        return by_member[self._layout.slots]


def attend_by_groups(query: Tensor, key: Tensor, value: Tensor, layout: GroupLayout, scale: float | None) -> Tensor:
    """The outputs f[r 1 h d] of one query f[r h 1 d] per row over the keys and values f[g k c d] of the row's group."""
    groups, kept, columns, depth = key.shape
    repeats = query.shape[1] // kept
    # Heads that share keys are placed next to the members, so that keys and values are used without copies.
    shape = (groups, layout.members, kept, repeats, depth)
    folded = layout.fold(query).view(shape).permute(0, 2, 3, 1, 4).reshape(groups, kept, -1, depth)
    mask = layout.mask(columns, repeats, query.dtype)
    outputs = scaled_dot_product_attention(folded, key, value, attn_mask=mask, scale=scale)
    by_member = outputs.view(groups, kept, repeats, layout.members, -1).permute(0, 3, 1, 2, 4)
    return layout.unfold(by_member.reshape(groups, layout.members, kept * repeats, -1))
