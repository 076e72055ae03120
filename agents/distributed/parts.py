"""Tensors divided among ranks: put together for a checkpoint, and divided again as a checkpoint is read.

A part has consecutive rows, `ceil(rows / ranks)` of them as long as enough are left, as with `torch.chunk`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

from agents.deferred import torch
from agents.distributed.ranks import active_ranks
from agents.distributed.weights import is_sharded

if TYPE_CHECKING:
    from torch import Tensor


def whole(tensor: Tensor, *, wanted: bool = True) -> Tensor | None:
    """A copy on the CPU of a tensor with the parts of all ranks; None if it is not wanted. Called by all ranks."""
    together: Tensor = cast(Any, tensor.detach()).full_tensor() if is_sharded(tensor) else tensor.detach()
    return together.to("cpu", copy=True) if wanted else None


def whole_state(state: Any) -> Any:
    """Plain data with divided tensors put together on rank 0; None in their place on other ranks. Called by all ranks."""
    if isinstance(state, torch.Tensor):
        return whole(state, wanted=active_ranks().is_main) if is_sharded(state) else state
    if isinstance(state, Mapping):
        return {name: whole_state(value) for name, value in state.items()}
    if isinstance(state, list | tuple):
        return type(state)(whole_state(value) for value in state)
    return state


def load_weights(module: torch.nn.Module, state: Mapping[str, Any]) -> None:
    """`load_state_dict` of whole tensors, for a module whose weights may be divided."""
    own = module.state_dict()
    module.load_state_dict(
        {name: divided_like(value, own[name]) if name in own else value for name, value in state.items()}
    )


def divided_like(tensor: Tensor, other: Tensor) -> Tensor:
    """A whole tensor, divided like `other` if `other` is divided and has the same shape."""
    if not is_sharded(other) or tensor.shape != other.shape:
        return tensor
    divided = torch.empty_like(other, dtype=tensor.dtype)
    take_part(divided, tensor)
    return divided


def take_part(tensor: Tensor, values: Tensor) -> None:
    """Copy whole values into a tensor, of which this rank may hold only a part."""
    with torch.no_grad():
        if not is_sharded(tensor):
            tensor.copy_(values)
            return
        own: Tensor = cast(Any, tensor).to_local()
        ranks = active_ranks()
        start = min(ranks.rank * -(-len(values) // ranks.size), len(values))
        own.copy_(values[start : start + len(own)])
