"""What fits in a device's free memory: the activations of a backward pass, or else they are computed again; cached tokens."""

from __future__ import annotations

import contextlib
import functools
import logging
from collections.abc import Iterator
from typing import Any, Literal

import torch
from torch.utils.checkpoint import checkpoint
from transformers.modeling_layers import GradientCheckpointingLayer

from verifiers import InvalidArgumentError

Checkpointing = Literal["auto", "on", "off"]

_LAYER_VALUES = 34
"""Values that one layer keeps for each token and each entry of its width (Korthikanti et al. 2022, arXiv:2205.05198, equation
2, in two-byte units and with an attention that keeps no scores)."""
_SHARE = 0.6
"""The share of free memory that activations, or keys and values, may take."""


def activation_bytes(config: Any, tokens: int, logits: int, value_bytes: int, *, masks: int = 0) -> int:
    """Estimate what the backward pass of a decoder needs kept.

    Args:
        config: Of the model: `num_hidden_layers` and `hidden_size`.
        tokens: In one micro-batch, padding included.
        logits: How many come to be at once; they are kept in float32, with their log-probabilities and those's gradient.
        value_bytes: 2 in half precision, else 4.
        masks: Entries of attention's masks, which are kept once for all layers, as a bool and as a value.
    """
    layers = tokens * config.num_hidden_layers * config.hidden_size * _LAYER_VALUES * value_bytes // 2
    return int(layers + logits * 3 * 4 + masks * (1 + value_bytes))


def checkpoints(
    model: Any, choice: Checkpointing, tokens: int, logits: int, value_bytes: int, *, masks: int = 0
) -> bool:
    """Decide whether to compute activations again: as told, or on a GPU whose free memory is short of the estimate.

    On a CPU, where memory is plenty and computing is slow, `"auto"` never does.
    """
    if choice != "auto" or model.device.type != "cuda":
        return choice == "on"
    needed = activation_bytes(model.config.get_text_config(), tokens, logits, value_bytes, masks=masks)
    return needed > _SHARE * _free_bytes(model.device)


def cacheable_tokens(model: Any, value_bytes: int) -> int | None:
    """How many tokens' keys and values a GPU's free memory has room for; None on a CPU, where no limit is set.

    Args:
        model: Of which `num_hidden_layers`, the heads of keys and values and their size are taken.
        value_bytes: 2 in half precision, else 4.
    """
    if model.device.type != "cuda":
        return None
    return int(_SHARE * _free_bytes(model.device)) // cache_bytes_per_token(model.config.get_text_config(), value_bytes)


def cache_bytes_per_token(config: Any, value_bytes: int) -> int:
    """What the keys and values of one token take, in all layers."""
    heads = config.num_attention_heads
    head_size = getattr(config, "head_dim", None) or config.hidden_size // heads
    kept = getattr(config, "num_key_value_heads", None) or heads
    return int(2 * config.num_hidden_layers * kept * head_size * value_bytes)


def _free_bytes(device: torch.device) -> int:
    """What is free on a GPU, and what torch holds of it without using it."""
    free, _ = torch.cuda.mem_get_info(device)
    return int(free + torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device))


@contextlib.contextmanager
def checkpointed(model: Any, wanted: bool) -> Iterator[None]:
    """Inside, the model's layers keep only their inputs for the backward pass, and nothing else of them changes.

    `transformers` ties this to training mode, in which dropout would be on too; so the layers are called through
    `torch.utils.checkpoint` here, and stay in evaluation mode.
    """
    layers = _checkpointable_layers(model) if wanted else []
    if wanted and not layers:
        _say_kept(type(model).__name__)
    # What stands on the instance before, such as a hook that moves inputs between devices, stands there after.
    before = [layer.__dict__.get("forward") for layer in layers]
    for layer in layers:
        layer.forward = functools.partial(checkpoint, layer.forward, use_reentrant=False)
    try:
        yield
    finally:
        for layer, forward in zip(layers, before, strict=True):
            if forward is None:
                del layer.forward  # the class's own is found again
            else:
                layer.forward = forward


def require_checkpointable(model: Any, choice: Checkpointing) -> None:
    """Check that activations can be computed again where that was asked for.

    Raises:
        InvalidArgumentError: If they can't.
    """
    if choice == "on" and not _checkpointable_layers(model):
        raise InvalidArgumentError(
            f"checkpointing='on' needs layers that transformers can checkpoint, and {type(model).__name__} has none: leave it "
            "'off', and lower micro_batch_size if memory is short"
        )


def _checkpointable_layers(model: Any) -> list[Any]:
    return [module for module in model.modules() if isinstance(module, GradientCheckpointingLayer)]


@functools.cache  # once
def _say_kept(model: str) -> None:
    logging.getLogger(__name__).warning(
        "activations of %s are estimated not to fit in memory, and it has no layers that transformers can checkpoint: lower "
        "micro_batch_size if memory runs out",
        model,
    )
