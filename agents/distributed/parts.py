"""Tensors that are divided among ranks: joins the parts for a checkpoint, and divides whole tensors again.

A part has consecutive rows, as with `torch.chunk`: `ceil(rows / ranks)` rows, or fewer if not enough rows are left.
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
    """A copy of a tensor on the CPU, with the parts of all ranks; None if `wanted` is False. All ranks must call this."""
    together: Tensor = cast(Any, tensor.detach()).full_tensor() if is_sharded(tensor) else tensor.detach()
    return together.to("cpu", copy=True) if wanted else None


def whole_state(state: Any) -> Any:
    """Replace divided tensors in plain data by whole tensors on rank 0, and by None on other ranks.

    All ranks must call this.
    """
    if isinstance(state, torch.Tensor):
        return whole(state, wanted=active_ranks().is_main) if is_sharded(state) else state
    if isinstance(state, Mapping):
        return {name: whole_state(value) for name, value in state.items()}
    if isinstance(state, list | tuple):
        return type(state)(whole_state(value) for value in state)
    return state


def load_weights(module: torch.nn.Module, state: Mapping[str, Any]) -> None:
    """Do `load_state_dict` with whole tensors, for a module whose weights may be divided."""
    own = module.state_dict()
    module.load_state_dict(
        {name: divided_like(value, own[name]) if name in own else value for name, value in state.items()}
    )


def divided_like(tensor: Tensor, other: Tensor) -> Tensor:
    """Divide a whole tensor like `other`, if `other` is divided and has the same shape; otherwise return the whole tensor."""
    if not is_sharded(other) or tensor.shape != other.shape:
        return tensor
    divided = torch.empty_like(other, dtype=tensor.dtype)
    take_part(divided, tensor)
    return divided


def take_part(tensor: Tensor, values: Tensor) -> None:
    """Copy whole values into a tensor, or the matching part if this rank holds only a part of the tensor."""
    with torch.no_grad():
        if not is_sharded(tensor):
            tensor.copy_(values)
            return
        own: Tensor = cast(Any, tensor).to_local()
        ranks = active_ranks()
        start = min(ranks.rank * -(-len(values) // ranks.size), len(values))
        own.copy_(values[start : start + len(own)])
