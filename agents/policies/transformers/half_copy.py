"""A module for sampling in half precision on a CPU, whose matrices are converted once and not at every token.

Under autocast a linear layer converts its float32 weights whenever it is called. A decoded token multiplies each weight only
a few times, so the conversion costs more than the product.
"""

from __future__ import annotations

import copy
from typing import Any

import torch
from torch import Tensor, nn


class HalfCopy:
    """A copy of a module that shares all its tensors but the weights of linear layers, which it has in bfloat16.

    Under autocast its outputs equal the module's bit for bit.
    """

    def __init__(self, module: nn.Module) -> None:
        tensors: list[Any] = [*module.parameters(), *module.buffers()]
        self.module: Any = copy.deepcopy(module, {id(tensor): tensor for tensor in tensors})
        self._weights: list[tuple[Tensor, Tensor]] = []
        for layer in self.module.modules():
            # By exact type: a subclass may do something else with its weights.
            if type(layer) is nn.Linear and layer.weight.dtype is torch.float32:
                half = nn.Parameter(torch.empty_like(layer.weight, dtype=torch.bfloat16), requires_grad=False)
                self._weights.append((half, layer.weight))
                layer.weight = half

    @torch.no_grad()
    def update(self) -> None:
        """Convert the module's current weights."""
        for half, weight in self._weights:
            half.copy_(weight)
