"""Weights in fewer bits than they are trained in, and the bits that rounding drops.

A model is trained in float32, since small updates vanish in half precision, and saved in the type of the model that it started
from. The dropped bits are kept beside the rounded weights: read as whole numbers, a weight and its rounded value differ by a
number of 16 bits if half precision can hold the weight at all. The rounded value and the dropped bits together take the four
bytes of the weight, which `restored` returns exactly.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

_WHOLE_NUMBERS = {2: torch.int16, 4: torch.int32, 8: torch.int64}
"""The integer type that can hold the bits of a floating-point number, by the number's size in bytes."""
_TIE = 2**15
"""Distance of a float32 halfway between two neighbours in bfloat16 from the lower neighbour."""


@dataclass(frozen=True)
class Rounded:
    """Tensors that were rounded to another type, by name."""

    weights: Mapping[str, Tensor]
    """All tensors; tensors that share memory still share it. Integers and bools are not changed."""
    dropped: Mapping[str, Tensor]
    """The differences between the tensors and their rounded values, which `restored` adds again."""


@torch.no_grad()
def rounded(tensors: Mapping[str, Tensor], dtype: torch.dtype) -> Rounded:
    """Round floating-point tensors to a type, on the CPU."""
    parts = {id(tensor): _split(tensor.detach().cpu(), dtype) for tensor in tensors.values()}
    weights = {name: parts[id(tensor)][0] for name, tensor in tensors.items()}
    dropped = {name: parts[id(tensor)][1] for name, tensor in tensors.items()}
    return Rounded(weights, {name: bits for name, bits in dropped.items() if bits is not None})


def _split(tensor: Tensor, dtype: torch.dtype) -> tuple[Tensor, Tensor | None]:
    if not tensor.is_floating_point() or tensor.dtype == dtype:
        return tensor, None
    near = tensor.to(dtype)
    dropped = _bits(tensor) - _bits(near.to(tensor.dtype))
    if dtype is torch.bfloat16:
        # Both neighbours of a tie are equally near; with the upper one the difference fits 16 bits.
        ties = dropped == _TIE
        near = (near.view(torch.int16) + ties.to(torch.int16)).view(dtype)
        dropped = _bits(tensor) - _bits(near.to(tensor.dtype))
    return near, _narrow(dropped) if dropped.any() else None


def _bits(tensor: Tensor) -> Tensor:
    return tensor.contiguous().view(_WHOLE_NUMBERS[tensor.element_size()])


def _narrow(numbers: Tensor) -> Tensor:
    """The same integers in 16 bits if all of them fit."""
    low, high = (int(bound) for bound in numbers.aminmax())
    limits = torch.iinfo(torch.int16)
    return numbers.to(torch.int16) if limits.min <= low and high <= limits.max else numbers


def restored(tensors: Mapping[str, Any], dropped: Mapping[str, Tensor]) -> dict[str, Any]:
    """The tensors before rounding, from tensors that were converted back to their original type."""
    return {
        name: tensor if name not in dropped else _restored(tensor, dropped[name]) for name, tensor in tensors.items()
    }


def _restored(tensor: Tensor, dropped: Tensor) -> Tensor:
    bits = _bits(tensor)
    return (bits + dropped.to(bits.dtype)).view(tensor.dtype)
