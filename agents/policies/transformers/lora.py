"""LoRA: low-rank adapters (Hu et al. 2021, arXiv:2106.09685), by `peft`.

A model with an adapter is used like any other: only the adapter's weights are trained, and the reference policy of a KL term
is the same model with the adapter disabled, which takes no memory.
"""

from __future__ import annotations

import copy
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch

from agents.policies.transformers.model_files import ADAPTER_CONFIG
from agents.policies.transformers.source import checksum, source_of
from agents.runs.files.json_files import read_json, write_json
from agents.settings.learning_rate import has_adapter as has_adapter
from verifiers import InvalidArgumentError, missing_dependency

ADAPTER_WEIGHTS = "adapter_model.safetensors"
_BASE = "rlvr_base.json"
"""File with a checksum of the base; adapters saved by `peft` do not have this file."""
_PREFIX = "base_model.model."
"""The prefix of `peft` for the names of a model's weights."""


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
        # For the transposed layers of GPT-2, peft corrects this setting by itself.
        warnings.filterwarnings("ignore", message="fan_in_fan_out is set to False")
        with _seeded(seed):
            return get_peft_model(model, settings).eval()


@contextmanager
def _seeded(seed: int) -> Iterator[None]:
    """Within the block, seed the CPU's global generator, from which `peft` draws weights before it moves them to the model."""
    with torch.random.fork_rng(devices=[]):
        # `torch.manual_seed` would also seed the generators of GPUs, which are not restored.
        torch.default_generator.manual_seed(seed % 2**63)
        yield


def merged(model: Any, *, device: torch.device | str | None = None) -> Any:
    """Return an equivalent model without adapter; the given model is not changed.

    Args:
        model: The model; one without an adapter is returned itself.
        device: Device of the merged copy; None uses the model's device, which then holds both models.
    """
    return _copied(model, device).merge_and_unload() if has_adapter(model) else model


def without_adapter(model: Any) -> Any:
    """Return the base of a model with an adapter, as it was before `add_lora`; the given model is not changed."""
    return _copied(model, None).unload()


def adapter_base(model: Any) -> Any:
    """The model under an adapter, with its linear layers wrapped; a model without an adapter is returned itself."""
    return model.get_base_model() if has_adapter(model) else model


def merged_weights(model: Any, weights: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """Some whole weights of a model, with the adapter merged into them and under the names that they have in `merged`.

    Args:
        model: The model, whose own weights may be divided among ranks.
        weights: Whole weights by their names in the model; together with each weight that has an adapter, the adapter's
            weights.
    """
    if not has_adapter(model):
        return dict(weights)
    return {
        name.removeprefix(_PREFIX).replace(".base_layer.", "."): _with_adapter(model, name, weights)
        for name in weights
        if ".lora_" not in name
    }


def _with_adapter(model: Any, name: str, weights: Mapping[str, torch.Tensor]) -> torch.Tensor:
    layer_name, wrapped, kind = name.rpartition(".base_layer.")
    if not wrapped or kind != "weight":
        return weights[name]
    layer, adapter = model.get_submodule(layer_name), model.active_adapter
    down, up = (weights[f"{layer_name}.lora_{matrix}.{adapter}.weight"] for matrix in "AB")
    change: torch.Tensor = (up @ down) * layer.scaling[adapter]
    return weights[name] + (change.T if layer.fan_in_fan_out else change)


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
    """The weights of a model's adapter, by the names of `peft`; None if the model has no adapter."""
    if not has_adapter(model):
        return None
    from peft import get_peft_model_state_dict

    return dict(get_peft_model_state_dict(model, save_embedding_layers=False))


def adapted_model(model: Any) -> dict[str, Any] | None:
    """An adapter's rank, its alpha and a checksum of the base weights on which the adapter depends; None without an adapter."""
    if not has_adapter(model):
        return None
    settings = model.peft_config[model.active_adapter]
    return {"rank": settings.r, "alpha": settings.lora_alpha, "checksum of its base": checksum(_base_weights(model))}


def _base_weights(model: Any) -> list[tuple[str, Any]]:
    return [(name, weight) for name, weight in model.named_parameters() if "lora_" not in name]


def base_of(model: Any) -> str | None:
    """The folder or hub name from which the base of an adapter can be loaded; None if the base's weights have changed."""
    source = source_of(model)
    if source is None or not has_adapter(model):
        return None
    plain = {name.removeprefix(_PREFIX).replace(".base_layer.", "."): weight for name, weight in _base_weights(model)}
    return source.name if checksum(plain.items()) == source.checksum else None


def save_adapter(folder: Path, model: Any, base: str) -> None:
    """Write an adapter as `peft` and `transformers` read it, and a checksum of its base."""
    write_adapter(folder, model, adapter_weights(model) or {}, base)
    write_json(folder / _BASE, {"checksum": checksum(_base_weights(model))})


def write_adapter(folder: Path, model: Any, weights: Mapping[str, torch.Tensor], base: str) -> None:
    """Write the settings of a model's adapter, and the adapter's whole weights, as `peft` reads them; see `save_adapter`."""
    from safetensors.torch import save_file

    settings = copy.deepcopy(model.peft_config[model.active_adapter])
    settings.base_model_name_or_path, settings.inference_mode = base, True
    settings.save_pretrained(folder)
    plain = {name: weight.detach().cpu().contiguous() for name, weight in weights.items()}
    save_file(plain, folder / ADAPTER_WEIGHTS, {"format": "pt"})  # more entries would be written in a random order


def with_saved_adapter(base: Any, folder: Path) -> Any:
    """A base model with a saved adapter merged into it.

    Args:
        base: The adapter's base, which is changed.
        folder: A folder with an adapter, written by `save_adapter` or by `peft`.
    """
    try:
        from peft import PeftModel
    except ImportError as error:
        raise missing_dependency("peft", "lora", "LoRA") from error
    from safetensors import SafetensorError

    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="`is_gradient_checkpointing`", category=FutureWarning)
            adapted = PeftModel.from_pretrained(base, folder)
        expected = read_json(folder / _BASE)["checksum"] if (folder / _BASE).is_file() else None
    except (OSError, ValueError, RuntimeError, KeyError, TypeError, SafetensorError) as error:
        raise InvalidArgumentError(
            f"the adapter at {folder} can't be loaded: {type(error).__name__}: {error}"
        ) from error
    if expected is not None and expected != checksum(_base_weights(adapted)):
        raise InvalidArgumentError(
            f"the adapter at {folder} was trained on other weights than those at {base.name_or_path!r}: name the model that it "
            f"was trained on as base_model_name_or_path in {folder / ADAPTER_CONFIG}"
        )
    return adapted.merge_and_unload()


def set_adapter_weights(model: Any, weights: Mapping[str, Any]) -> None:
    """Restore weights returned by `adapter_weights`."""
    from peft import set_peft_model_state_dict

    set_peft_model_state_dict(model, dict(weights))
