"""Memory: whether activations fit or need checkpointing, and how many tokens fit into the KV cache."""

from __future__ import annotations

import contextlib
import functools
import logging
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from torch.utils.checkpoint import checkpoint
from transformers.modeling_layers import GradientCheckpointingLayer

from agents.settings.choices import Checkpointing
from verifiers import InvalidArgumentError
from verifiers.devices import ACCELERATORS, device_module

_MEMORY_INFO = Path("/proc/meminfo")
_LAYER_VALUES = 34
"""Activations of one layer, per token and unit of width (Korthikanti et al. 2022, arXiv:2205.05198, equation 2, in two-byte
units, for attention that stores no scores).
"""
_SHARE = 0.6
"""Share of free memory that activations, or keys and values, may use."""


def activation_bytes(config: Any, tokens: int, logits: int, value_bytes: int, *, masks: int = 0) -> int:
    """Estimate the memory of a decoder's activations that the backward pass needs.

    Args:
        config: The model's config, with `num_hidden_layers` and `hidden_size`.
        tokens: Number of tokens in one micro-batch, including padding.
        logits: Number of logits computed at once; they are stored in float32, with log-probabilities and their gradient.
        value_bytes: 2 in half precision, otherwise 4.
        masks: Number of entries of attention masks, which are stored once for all layers, as bool and as values.
    """
    layers = tokens * config.num_hidden_layers * config.hidden_size * _LAYER_VALUES * value_bytes // 2
    return int(layers + logits * 3 * 4 + masks * (1 + value_bytes))


def checkpoints(
    model: Any, choice: Checkpointing, tokens: int, logits: int, value_bytes: int, *, masks: int = 0
) -> bool:
    """Whether to recompute activations: as configured, or with `"auto"` if the estimate exceeds the device's free memory."""
    if choice != "auto":
        return choice == "on"
    needed = activation_bytes(model.config.get_text_config(), tokens, logits, value_bytes, masks=masks)
    return needed > _SHARE * _free_bytes(model.device)


def cacheable_tokens(model: Any, value_bytes: int) -> int | None:
    """The number of tokens whose keys and values fit into a GPU's free memory; None on a CPU, which sets no limit.

    Args:
        model: The model, whose config has the number of layers and the size of keys and values.
        value_bytes: 2 in half precision, otherwise 4.
    """
    if model.device.type not in ACCELERATORS:
        return None
    return int(_SHARE * _free_bytes(model.device)) // cache_bytes_per_token(model.config.get_text_config(), value_bytes)


def cache_bytes_per_token(config: Any, value_bytes: int) -> int:
    """Bytes of the keys and values of one token in all layers."""
    heads = config.num_attention_heads
    head_size = getattr(config, "head_dim", None) or config.hidden_size // heads
    kept = getattr(config, "num_key_value_heads", None) or heads
    return int(2 * config.num_hidden_layers * kept * head_size * value_bytes)


def _free_bytes(device: torch.device) -> int:
    """Free memory of a GPU, including memory that torch has reserved but not used, or memory available on the machine."""
    if device.type not in ACCELERATORS:
        return _available_bytes()
    module = device_module(device.type)
    if device.type == "mps":  # a share of the CPU's memory
        return int(module.recommended_max_memory() - module.current_allocated_memory())
    free, _ = module.mem_get_info(device)
    return int(free + module.memory_reserved(device) - module.memory_allocated(device))


def _available_bytes() -> int:
    """Memory that the system can give to a process without swapping; unlimited if the system does not report it."""
    try:
        lines = _MEMORY_INFO.read_text(encoding="utf-8").splitlines()
    except OSError:
        return sys.maxsize
    return next((int(line.split()[1]) << 10 for line in lines if line.startswith("MemAvailable:")), sys.maxsize)


@contextlib.contextmanager
def checkpointed(model: Any, wanted: bool) -> Iterator[None]:
    """A context in which the model's layers store only their inputs for the backward pass.

    `transformers` supports this only in training mode, which would also enable dropout; so the layers are called through
    `torch.utils.checkpoint` here, and stay in evaluation mode.
    """
    layers = layers_of(model) if wanted else []
    if wanted and not layers:
        _say_kept(type(model).__name__)
    # Restore an instance attribute afterwards, such as a hook that moves inputs between devices.
    before = [layer.__dict__.get("forward") for layer in layers]
    for layer in layers:
        layer.forward = functools.partial(checkpoint, layer.forward, use_reentrant=False)
    try:
        yield
    finally:
        for layer, forward in zip(layers, before, strict=True):
            if forward is None:
                del layer.forward  # restores the class's own method
            else:
                layer.forward = forward


def require_checkpointable(model: Any, choice: Checkpointing) -> None:
    """Check that a model supports activation checkpointing if it is `"on"`."""
    if choice == "on" and not layers_of(model):
        raise InvalidArgumentError(
            f"checkpointing='on' needs layers that transformers can checkpoint, but {type(model).__name__} has none: set it to "
            "'off', and lower micro_batch_size if memory runs out"
        )


def layers_of(model: Any) -> list[Any]:
    """The model's layers that transformers can checkpoint; empty if there are none."""
    return [module for module in model.modules() if isinstance(module, GradientCheckpointingLayer)]


@functools.cache  # once
def _say_kept(model: str) -> None:
    logging.getLogger(__name__).warning(
        "activations of %s are estimated not to fit in memory, but it has no layers that transformers can checkpoint: lower "
        "micro_batch_size if memory runs out",
        model,
    )
