"""`Batch`: trajectories as padded tensors."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from agents.types import Trajectory
from verifiers import InvalidArgumentError


@dataclass(frozen=True)
class Batch:
    """b trajectories of up to l tokens, padded on the right with 0; lengths decide what is padding.

    Index t of every per-token tensor belongs to token t itself, the prompt's tokens included.
    """

    tokens: Tensor
    """i64[b l]."""
    lengths: Tensor
    """i64[b]."""
    loss_mask: Tensor
    """bool[b l], the padded policy mask; False throughout for trajectories whose verifier broke."""
    logprobs: Tensor
    """f32[b l], of the policy that sampled."""
    rewards: Tensor
    """f64[b l]; 0 throughout for trajectories whose verifier broke."""
    scores: Tensor
    """f64[b], the returns; NaN where the verifier broke."""
    valid: Tensor
    """bool[b], False where the verifier broke."""
    groups: Tensor
    """i64[b]."""
    legal: Tensor | None = None
    """u8[b l ceil(v/8)], packed masks of the legal tokens."""

    def __len__(self) -> int:
        return len(self.tokens)

    def rows(self, indices: Tensor) -> Batch:
        """Take some trajectories, cut to the longest of them."""
        width = int(self.lengths[indices].max())
        parts: dict[str, Any] = {}
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            parts[field.name] = (
                value if value is None else value[indices][:, :width] if value.ndim > 1 else value[indices]
            )
        return Batch(**parts)

    def to(self, device: torch.device) -> Batch:
        """Move to a device."""
        moved: dict[str, Any] = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        moved = {name: value if value is None else value.to(device) for name, value in moved.items()}
        return Batch(**moved)

    @property
    def first(self) -> int:
        """The first position that any trajectory learns from, at least 1."""
        positions = self.loss_mask.any(dim=0).nonzero()
        return max(1, int(positions[0])) if len(positions) else 1

    def legal_tokens(self, first: int, vocab_size: int) -> Tensor | None:
        """Unpack the masks of legal tokens from position `first` on as bool[b t v]; everything is legal off the loss mask."""
        if self.legal is None:
            return None
        bits = np.unpackbits(self.legal[:, first:].cpu().numpy(), axis=-1, count=vocab_size).astype(bool)
        return torch.from_numpy(bits).to(self.tokens.device) | ~self.loss_mask[:, first:, None]


def make_batch(trajectories: Sequence[Trajectory]) -> Batch:
    """Pad trajectories to a batch.

    Raises:
        InvalidArgumentError: If there are none.
    """
    if not trajectories:
        raise InvalidArgumentError("a batch needs at least one trajectory")
    valid = [not trajectory.broken for trajectory in trajectories]
    masks = [each.policy_mask & kept for each, kept in zip(trajectories, valid, strict=True)]
    rewards = [
        each.rewards if kept else np.zeros_like(each.rewards) for each, kept in zip(trajectories, valid, strict=True)
    ]
    return Batch(
        tokens=torch.from_numpy(_pad([trajectory.tokens for trajectory in trajectories]).astype(np.int64)),
        lengths=torch.tensor([len(trajectory.tokens) for trajectory in trajectories]),
        loss_mask=torch.from_numpy(_pad(masks)),
        logprobs=torch.from_numpy(_pad([trajectory.logprobs for trajectory in trajectories])),
        rewards=torch.from_numpy(_pad(rewards)),
        scores=torch.tensor([trajectory.score for trajectory in trajectories], dtype=torch.float64),
        valid=torch.tensor(valid),
        groups=torch.tensor([trajectory.group for trajectory in trajectories]),
        legal=_legal_masks(trajectories),
    )


def _legal_masks(trajectories: Sequence[Trajectory]) -> Tensor | None:
    """Pad the packed masks; where only some trajectories have them, every token of the others was legal."""
    width = max((each.action_masks.shape[1] for each in trajectories if each.action_masks is not None), default=None)
    if width is None:
        return None
    free = [np.full((len(each.tokens), width), 255, dtype=np.uint8) for each in trajectories]
    masks = [
        part if each.action_masks is None else each.action_masks for each, part in zip(trajectories, free, strict=True)
    ]
    return torch.from_numpy(_pad(masks))


def _pad(parts: Sequence[np.ndarray]) -> np.ndarray:
    padded = np.zeros((len(parts), max(map(len, parts)), *parts[0].shape[1:]), dtype=parts[0].dtype)
    for row, part in enumerate(parts):
        padded[row, : len(part)] = part
    return padded
