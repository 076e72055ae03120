"""Weights of linear layers in bfloat16 for sampling, which autocast would otherwise convert anew for every token."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor


class HalfWeights:
    """Copies in bfloat16 of the float32 weights of a module's linear layers, which take half their memory.

    Results are exactly those of autocast, which converts the same weights. A weight that is also an embedding keeps its
    precision there.

    Args:
        module: The module. Make new copies when its weights have changed.
    """

    def __init__(self, module: Any) -> None:
        layers = [layer for layer in module.modules() if isinstance(layer, torch.nn.Linear)]
        # Any: a layer's own weight is a parameter, and a copy a plain tensor.
        self._layers: list[tuple[Any, Tensor, Tensor]] = [
            (layer, layer.weight, layer.weight.detach().to(torch.bfloat16))
            for layer in layers
            if layer.weight.dtype is torch.float32
        ]

    @contextlib.contextmanager
    def in_place(self) -> Iterator[None]:
        """A context in which the layers have the copies."""
        for layer, _, copy in self._layers:
            layer._parameters["weight"] = copy
        try:
            yield
        finally:
            for layer, weight, _ in self._layers:
                layer._parameters["weight"] = weight
