"""`LanguageModel`: a causal language model with its capabilities, determined by trials."""

from __future__ import annotations

import contextlib
import copy
import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import torch
from torch import Tensor, nn

from agents.policies.transformers.config import PolicyConfig
from agents.policies.transformers.kv_cache import CacheKind, cache_kind, can_group
from agents.policies.transformers.memory import layers_of, require_checkpointable
from agents.policies.transformers.model_capabilities import (
    LogitTransform,
    can_share,
    costs_of,
    logit_transform,
    takes_positions,
)
from agents.policies.transformers.model_files import check_context
from agents.policies.transformers.prefix_sharing import Costs
from verifiers import InvalidArgumentError
from verifiers.devices import device_module

if TYPE_CHECKING:
    from agents.distributed.ranks import Sharding
    from agents.distributed.sharding import ShardedModule

T = TypeVar("T")

LOGITS_AT_ONCE = 2**24
"""Largest number of logits processed at once in training or sampling; 64 MiB in float32, in several copies."""
_HALF_ON_CPU = 50_000_000
"""Smallest number of weights for which "auto" is bfloat16 on a CPU that multiplies in bfloat16. Smaller models are fast enough
in float32, whose results hardly differ between CPUs."""


class LanguageModel:
    """A model with its vocabulary size, its precision, and the optimisations it supports.

    Policies with the same weights at different temperatures share one `LanguageModel`, so that no trial is repeated.

    Args:
        module: Any `transformers` causal LM. It is put in evaluation mode.
        config: Settings of the policy; its sampling settings are not used here.

    Raises:
        InvalidArgumentError: If the model has fewer tokens than `vocab_size`, or no layers that can be checkpointed if
            `checkpointing` is `"on"`.
    """

    def __init__(self, module: Any, config: PolicyConfig) -> None:
        require_checkpointable(module, config.checkpointing)
        self.module = module.eval()
        self.vocab_size = _vocab_size(module, config.vocab_size)
        self.precision = _precision(module) if config.precision == "auto" else config.precision
        self.context = getattr(module.config.get_text_config(), "max_position_embeddings", None)
        self.cache_kind = cache_kind(module) if config.fast else CacheKind.NONE
        self.takes_positions = takes_positions(module)
        self._fast = config.fast
        self._shared_prefix = config.shared_prefix
        self.sharded: ShardedModule | None = None
        self._weights = _versioned(module)
        self._half_copy: HalfCopy | None = None
        self._copied = -1
        """The version of the weights in `_half_copy`."""

    def shard(self, sharding: Sharding) -> None:
        """Divide the weights among the ranks, which all call this.

        Raises:
            RankError: If the weights differ between ranks.
        """
        from agents.distributed.sharding import Division, ShardedModule

        # Trials run the model on this rank alone; afterwards only all ranks together can run it.
        _ = self.shares_prefixes, self.groups_rows, self.costs, self.logit_transform
        division = Division(layers_of(self.module), self.device, half=self.precision == "bfloat16", saved=True)
        self.sharded = ShardedModule(self.module, division, sharding)
        self._weights = _versioned(self.module)

    def run(self, function: Callable[[], T]) -> T:
        """Call a function that runs the module; if the module's weights are divided, they are gathered first.

        Returns:
            The function's result: a tensor, or a tuple of tensors and plain data.
        """
        return function() if self.sharded is None else self.sharded.run(function)

    @property
    def device(self) -> torch.device:
        """The device on which passes are computed."""
        device: torch.device = self.module.device if self.sharded is None else self.sharded.device
        return device

    @property
    def is_half(self) -> bool:
        """Whether the model computes in half precision."""
        return bool(self.precision == "bfloat16" or self.module.dtype.itemsize == 2)

    @property
    def value_bytes(self) -> int:
        """Size of an activation in bytes."""
        return 2 if self.is_half else 4

    def autocast(self) -> contextlib.AbstractContextManager[Any]:
        """A context with the model's precision, for sampling and training."""
        if self.precision == "float32":
            return contextlib.nullcontext()
        return torch.autocast(self.device.type, dtype=torch.bfloat16)

    def check_context(self, width: int) -> None:
        """Check that `width` tokens fit into the model's context."""
        check_context(width, self.context)

    def weights_version(self) -> int:
        """A number that grows whenever weights change: the sum of torch's version counters, which takes microseconds."""
        return sum([weight._version for weight in self._weights])

    def count_change(self) -> None:
        """Count a change of the weights by a fused optimiser, which torch does not count."""
        torch.autograd.graph.increment_version(self._weights)

    def module_for_sampling(self) -> Any:
        """The module or, if it is faster, the copy with converted matrices; to be used inside `run` and `autocast`."""
        if not self._copies_matrices:
            return self.module
        if self._half_copy is None:
            self._half_copy = HalfCopy(self.module)
        version = self.weights_version()
        if self._copied != version:
            self._half_copy.update()
            self._copied = version
        return self._half_copy.module

    def release_copy(self) -> None:
        """Free the copy for sampling; it is made again when it is needed."""
        self._half_copy, self._copied = None, -1

    @property
    def _copies_matrices(self) -> bool:
        """Whether matrices are converted on a CPU and all changes of weights are detected, so that a copy can be used."""
        is_whole = self.sharded is None and len(self._weights) == len(list(self.module.parameters()))
        converts = self.precision == "bfloat16" and self.module.dtype is torch.float32
        return self._fast and is_whole and converts and self.module.device.type == "cpu"

    @functools.cached_property
    def shares_prefixes(self) -> bool:
        """Whether computing common prefixes once is enabled and correct for this model."""
        return self._fast and self._shared_prefix and can_share(self.module)

    @functools.cached_property
    def groups_rows(self) -> bool:
        """Whether storing prompts once per group in the cache is enabled and correct for this model."""
        # The trial needs more digits than half precision has.
        with torch.autocast(self.module.device.type, enabled=False):
            return self.shares_prefixes and can_group(self.module, self.cache_kind)

    @functools.cached_property
    def costs(self) -> Costs:
        """The cost of forward passes."""
        return costs_of(self.module)

    @functools.cached_property
    def logit_transform(self) -> LogitTransform | None:
        """How logits are computed from the body's last states; None if unknown or if optimisations are disabled."""
        return logit_transform(self.module) if self._fast else None


def _versioned(module: Any) -> list[torch.nn.Parameter]:
    """The weights whose changes torch counts: not inference tensors, which have no version counter."""
    return [weight for weight in module.parameters() if not weight.is_inference()]


def _vocab_size(module: Any, wanted: int | None) -> int:
    """The number of the model's tokens that can be chosen."""
    available = int(module.get_output_embeddings().weight.shape[0])
    if wanted is not None and wanted > available:
        raise InvalidArgumentError(
            f"the model has {available} tokens but the environment {wanted}: use the same tokenizer for both"
        )
    return wanted or available


def _precision(module: Any) -> Literal["float32", "bfloat16"]:
    """bfloat16 for float32 weights if the device multiplies in it faster; otherwise the weights' own precision."""
    if module.dtype is not torch.float32:
        return "float32"
    device = module.device.type
    if device == "cpu":
        capable = module.num_parameters() >= _HALF_ON_CPU and _cpu_multiplies_in_half()
    else:
        capable = device in ("cuda", "xpu") and device_module(device).is_bf16_supported(including_emulation=False)
    return "bfloat16" if capable else "float32"


def _cpu_multiplies_in_half() -> bool:
    """Whether the CPU has instructions for products in bfloat16; other CPUs convert numbers, which is slower than float32."""
    capabilities = torch.cpu.get_capabilities()
    return any(capabilities.get(name, False) for name in ("avx512_bf16", "amx_bf16"))


class HalfCopy:
    """A copy of a float32 module with bfloat16 weights in its linear layers; all other tensors are shared with the module.

    Under autocast a linear layer converts its weights whenever it is called. A decoded token multiplies each weight only a few
    times, so the conversion costs more than the product. Outputs equal the module's bit for bit.
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
