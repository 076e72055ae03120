"""LoRA: low-rank adapters (Hu et al. 2021, arXiv:2106.09685), by `peft`.

A model with an adapter is used like any other: only the adapter's weights are trained, and the reference policy of a KL term
is the same model with the adapter disabled, which takes no memory.
"""

from __future__ import annotations

import copy
import hashlib
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch

from verifiers import InvalidArgumentError, missing_dependency


def add_lora(
    model: Any, *, rank: int = 16, alpha: int = 32, targets: str | tuple[str, ...] = "all-linear", seed: int = 0
) -> Any:
    """Add adapters without dropout to a model's linear layers, and freeze its own weights.

    Args:
        model: A `transformers` causal LM.
        rank: Rank of each adapter.
        alpha: Scaling of the adapters, by alpha / rank.
        targets: Names of the layers that get an adapter; `"all-linear"` means all but the output layer.
        seed: Seed of the adapters' initial weights; torch's global generators are not changed.

    Raises:
        InvalidArgumentError: If the rank is less than 1 or larger than any layer's width, or the model has an adapter.
        MissingDependencyError: If `peft` is not installed.
    """
    if rank < 1:
        raise InvalidArgumentError(f"rank must be at least 1, got {rank}")
    widest = max((max(weight.shape, default=0) for weight in model.parameters()), default=0)
    if rank > widest:
        raise InvalidArgumentError(f"rank must be at most {widest}, the width of the model's widest layer, got {rank}")
    if has_adapter(model):
        raise InvalidArgumentError("the model has an adapter already")
    try:
        from peft import LoraConfig, get_peft_model
    except ImportError as error:
        raise missing_dependency("peft", "lora", "LoRA") from error
    chosen = targets if isinstance(targets, str) else list(targets)
    settings = LoraConfig(r=rank, lora_alpha=alpha, target_modules=chosen, lora_dropout=0.0, task_type="CAUSAL_LM")
    with warnings.catch_warnings():
        # peft uses a property of transformers that was renamed in 5.2x.
        warnings.filterwarnings("ignore", message="`is_gradient_checkpointing`", category=FutureWarning)
        # It sets this right by itself for the transposed layers of GPT-2.
        warnings.filterwarnings("ignore", message="fan_in_fan_out is set to False")
        with _seeded(seed):
            return get_peft_model(model, settings).eval()


@contextmanager
def _seeded(seed: int) -> Iterator[None]:
    """Within the block, seed the CPU's global generator, from which `peft` draws weights before it moves them to the model."""
    with torch.random.fork_rng(devices=[]):
        # Not `torch.manual_seed`, which also seeds GPUs, whose generators are not restored.
        torch.default_generator.manual_seed(seed % 2**63)
        yield


def has_adapter(model: Any) -> bool:
    """Whether a model has an adapter."""
    return hasattr(model, "disable_adapter")


def merged(model: Any, *, device: torch.device | str | None = None) -> Any:
    """Return an equivalent model without adapter; the given model is not changed.

    Args:
        model: The model; one without an adapter is returned itself.
        device: Device of the merged copy; None uses the model's own, which then holds both.
    """
    return _copied(model, device).merge_and_unload() if has_adapter(model) else model


def _copied(model: Any, device: torch.device | str | None) -> Any:
    """A deep copy whose weights are created directly on a device."""
    memo: dict[int, Any] = {}
    if device is not None:
        for weight in (*model.parameters(), *model.buffers()):
            moved = weight.detach().to(device, copy=True)
            is_parameter = isinstance(weight, torch.nn.Parameter)
            memo[id(weight)] = torch.nn.Parameter(moved, weight.requires_grad) if is_parameter else moved
    return copy.deepcopy(model, memo)


def adapter_weights(model: Any) -> dict[str, Any] | None:
    """The weights of a model's adapter; None if it has none."""
    if not has_adapter(model):
        return None
    from peft import get_peft_model_state_dict

    return dict(get_peft_model_state_dict(model))


def adapted_model(model: Any) -> dict[str, Any] | None:
    """What an adapter's weights depend on: its rank, its alpha and the base weights; None without an adapter.

    The base weights are identified by a checksum of up to `_SAMPLED` numbers of each.
    """
    if not has_adapter(model):
        return None
    settings = model.peft_config[model.active_adapter]
    return {"rank": settings.r, "alpha": settings.lora_alpha, "checksum of its base": _base_checksum(model)}


_SAMPLED = 256


@torch.no_grad()
def _base_checksum(model: Any) -> str:
    digest = hashlib.sha256()
    for name, weight in sorted(model.named_parameters()):
        if "lora_" in name:
            continue
        numbers = weight.detach().flatten()
        digest.update(f"{name} {tuple(weight.shape)}".encode())
        digest.update(numbers[:: -(-len(numbers) // _SAMPLED) or 1].cpu().float().numpy().tobytes())
    return digest.hexdigest()


def set_adapter_weights(model: Any, weights: Mapping[str, Any]) -> None:
    """Restore weights returned by `adapter_weights`."""
    from peft import set_peft_model_state_dict

    set_peft_model_state_dict(model, dict(weights))
