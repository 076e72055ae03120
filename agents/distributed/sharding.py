"""Weights divided among ranks, by torch's FSDP2. A pass may call parts of the model instead of the whole model.

Each rank keeps a part of every weight, of its gradient and of the optimiser's state. A pass gathers one layer's weights at a
time, on all ranks together, and also sums gradients. So all ranks must make the same number of passes, in the same order.

Sampling needs no exchange at every token, since `gathered` keeps all weights on every rank while episodes are played.

Saved files do not depend on the division of weights: `whole_module` puts the weights together, and `agents.distributed.parts`
all other tensors.
"""

from __future__ import annotations

import contextlib
import copy
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import torch
from torch import Tensor
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import (
    CPUOffloadPolicy,
    FSDPModule,
    MixedPrecisionPolicy,
    OffloadPolicy,
    fully_shard,
)

from agents.distributed.parts import take_part, whole
from agents.distributed.ranks import Sharding, active_ranks
from agents.distributed.weights import require_same_weights

T = TypeVar("T")


@dataclass(frozen=True)
class Division:
    """How a module's weights are divided."""

    layers: Sequence[torch.nn.Module]
    """The modules whose weights are gathered one module at a time. The remaining weights are gathered once per pass."""
    device: torch.device
    """The device on which passes are computed."""
    half: bool = False
    """Whether to gather weights in bfloat16. The parts keep their type, and gradients are summed in float32."""
    precise: Sequence[torch.nn.Module] = ()
    """Modules whose weights are gathered in their own type even if `half` is set."""
    saved: bool = False
    """Whether `whole_module` will put the module together."""


class ShardedModule:
    """A module whose weights are divided among the ranks, in place.

    Args:
        module: The module, with the same weights on all ranks; its parameters become `DTensor`s.
        division: How the weights are divided.
        sharding: Settings of the run.

    Raises:
        RankError: If the weights differ between ranks.
    """

    def __init__(self, module: torch.nn.Module, division: Division, sharding: Sharding) -> None:
        ranks = active_ranks()
        require_same_weights(ranks, module)
        self.module, self.device = module, division.device
        self._layers = division.layers
        self._structure = _without_weights(module) if division.saved else None
        mesh = init_device_mesh(division.device.type, (ranks.size,))
        offload = CPUOffloadPolicy(pin_memory=division.device.type != "cpu") if sharding.offload else OffloadPolicy()
        half = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
        policy = half if division.half else MixedPrecisionPolicy()
        for precise in division.precise:
            fully_shard(precise, mesh=mesh, offload_policy=offload)
        for layer in reversed(division.layers):  # inner modules first
            fully_shard(layer, mesh=mesh, mp_policy=policy, offload_policy=offload)
        # The root's own weights are kept from a pass to its gradient, since ranks may use them a different number of times.
        root: Any = fully_shard(
            _Root(module), mesh=mesh, mp_policy=policy, offload_policy=offload, reshard_after_forward=False
        )
        self._root = root
        self._divided = [part for part in root.modules() if isinstance(part, FSDPModule)]
        for part in self._divided:
            part.set_gradient_divide_factor(1.0)  # sum gradients, since gloo supports no other reduction
            part.set_force_sum_reduction_for_comms(True)
        self._gathered = False
        with torch.no_grad():
            self.run(lambda: None)
        with self.gathered():  # torch notes the trained weights, which a disabled adapter would hide
            pass

    def run(self, function: Callable[[], T]) -> T:
        """Call a function that runs the module or its parts, and returns a tensor or a plain sequence of tensors.

        All ranks must call this together, unless the weights are `gathered`.
        """
        try:
            with warnings.catch_warnings():
                # The result of a pass is never changed in place.
                warnings.filterwarnings("ignore", message="FSDP2-wrapped module .* returned a view")
                result: T = self._root(function)
        except BaseException:
            if not self._gathered:
                self._root.reset_iter_state()
            raise
        if not self._gathered and not torch.is_grad_enabled():
            # Without a backward pass, nothing else ends this pass and divides the remaining weights again.
            self._root.reset_iter_state()
        return result

    @contextlib.contextmanager
    def gathered(self) -> Iterator[None]:
        """A context in which every rank has all weights, and `run` exchanges nothing.

        All ranks must enter this context together.
        """
        if self._gathered:
            yield
            return
        self._root.set_reshard_after_forward(False)
        for part in self._divided:
            part.unshard()
        self._gathered = True
        try:
            yield
        finally:
            self._gathered = False
            self._root.set_reshard_after_forward(True)
            self._root.set_reshard_after_forward(False, recurse=False)
            self._root.reset_iter_state()

    @property
    def is_gathered(self) -> bool:
        """Whether this rank has all weights at the moment."""
        return self._gathered

    def whole_module(self, *, everywhere: bool = False) -> Any:
        """A copy of the module on the CPU with all weights, on rank 0 or everywhere; None on other ranks.

        All ranks must call this.
        """
        assert self._structure is not None
        wanted = everywhere or active_ranks().is_main
        copied: dict[int, Any] = {}
        for empty, weight in zip(self._structure.parameters(), self.module.parameters(), strict=True):
            together = whole(weight, wanted=wanted)
            if together is not None:
                copied[id(empty)] = torch.nn.Parameter(together, weight.requires_grad)
        return copy.deepcopy(self._structure, copied) if wanted else None

    def whole_layers(self) -> Iterator[dict[str, Tensor]]:
        """The whole entries of the module's state, on the CPU of every rank, layer by layer. All ranks must call this.

        Weights outside the layers, such as the embedding, come one by one. A rank that keeps no entries never has more than one
        layer in memory.
        """
        state = self.module.state_dict()
        prefixes = [
            f"{name}." for name, module in self.module.named_modules() if any(module is one for one in self._layers)
        ]
        for prefix in prefixes:
            yield {name: _whole(state.pop(name)) for name in list(state) if name.startswith(prefix)}
        for name in list(state):
            yield {name: _whole(state.pop(name))}

    def take(self, other: torch.nn.Module) -> None:
        """Take this rank's part of the weights of a `whole_module`."""
        for mine, theirs in zip(_tensors(self.module), _tensors(other), strict=True):
            take_part(mine, theirs.detach())


class _Root(torch.nn.Module):
    """Gathers the weights outside the layers, for passes of the whole module and for passes that call its parts."""

    def __init__(self, module: torch.nn.Module) -> None:
        super().__init__()
        self.module = module

    def forward(self, function: Callable[[], T]) -> T:
        return function()


def _whole(weight: Tensor) -> Tensor:
    together = whole(weight)
    assert together is not None
    return together


def _tensors(module: torch.nn.Module) -> list[Tensor]:
    return [*module.parameters(), *module.buffers()]


def _without_weights(module: torch.nn.Module) -> torch.nn.Module:
    """A copy of a module on the CPU, whose parameters have shapes but no values."""
    memo: dict[int, Any] = {}
    for parameter in module.parameters():
        memo[id(parameter)] = torch.nn.Parameter(parameter.detach().to("meta"), parameter.requires_grad)
    for buffer in module.buffers():
        memo[id(buffer)] = buffer.detach().to("cpu", copy=True)
    return copy.deepcopy(module, memo)
