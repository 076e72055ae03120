"""Whether a backward pass keeps activations or computes them again, chosen from the device and its free memory."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any, Literal

import torch

Checkpointing = Literal["auto", "on", "off"]

_LAYER_VALUES = 34
"""Values that one layer keeps for each token and each entry of its width (Korthikanti et al. 2022, arXiv:2205.05198, equation
2, in two-byte units and with an attention that keeps no scores)."""
_SHARE = 0.6
"""The share of free memory that activations may take."""


def activation_bytes(config: Any, tokens: int, vocab_size: int, value_bytes: int) -> int:
    """Estimate what the backward pass of a decoder needs kept.

    Args:
        config: Of the model: `num_hidden_layers` and `hidden_size`.
        tokens: In one micro-batch, padding included.
        vocab_size: The logits are kept in float32, with their log-probabilities and those's gradient.
        value_bytes: 2 in half precision, else 4.
    """
    layers = tokens * config.num_hidden_layers * config.hidden_size * _LAYER_VALUES * value_bytes // 2
    return int(layers + tokens * vocab_size * 3 * 4)


def checkpoints(model: Any, choice: Checkpointing, tokens: int, vocab_size: int, value_bytes: int) -> bool:
    """Decide whether to compute activations again: as told, or on a GPU whose free memory is short of the estimate.

    On a CPU, where memory is plenty and computing is slow, `"auto"` never does.
    """
    if choice != "auto" or model.device.type != "cuda":
        return choice == "on"
    free, _ = torch.cuda.mem_get_info(model.device)
    reusable = torch.cuda.memory_reserved(model.device) - torch.cuda.memory_allocated(model.device)
    needed = activation_bytes(model.config.get_text_config(), tokens, vocab_size, value_bytes)
    return needed > _SHARE * (free + reusable)


@contextlib.contextmanager
def checkpointed(model: Any, wanted: bool) -> Iterator[None]:
    """Inside, the model's layers keep only their inputs for the backward pass, and nothing else of them changes.

    `transformers` ties this to training mode, in which dropout would be on too; so only the layers themselves enter it, and
    what they are made of stays in evaluation mode.
    """
    if not wanted:
        yield
        return
    # The method was renamed in transformers 5.2x; the old name warns there.
    enable = getattr(model, "activation_checkpointing_enable", None) or model.gradient_checkpointing_enable
    disable = getattr(model, "activation_checkpointing_disable", None) or model.gradient_checkpointing_disable
    enable()
    layers = [module for module in model.modules() if getattr(module, "gradient_checkpointing", False)]
    for layer in layers:
        layer.training = True
    try:
        yield
    finally:
        for layer in layers:
            layer.training = False
        disable()
