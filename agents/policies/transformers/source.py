"""Where a model was loaded from: the base that a saved adapter names, and the type in which weights are saved."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

_ATTRIBUTE = "rlvr_source"
_SAMPLED = 256


@dataclass(frozen=True)
class Source:
    """The origin that `load_model` notes on a model; copies of the model keep it."""

    name: str | None
    """The absolute path of the folder, or the name on the hub; None for a GGUF file, which an adapter can't name as its base,
    since `from_pretrained` would look for a folder."""
    dtype: torch.dtype
    """The type of the weights in that place; for a quantised GGUF file, its header's `dtype`."""
    checksum: str
    """The `checksum` of the weights in that place, which shows whether they have changed since."""


def set_source(model: Any, source: Source) -> None:
    """Note where a model was loaded from."""
    setattr(model, _ATTRIBUTE, source)


def source_of(model: Any) -> Source | None:
    """The source of a model or, if the model has an adapter, of its base; None if the source is not known."""
    source = getattr(model, _ATTRIBUTE, None)
    return source if isinstance(source, Source) else None


@torch.no_grad()
def checksum(weights: Iterable[tuple[str, Tensor]]) -> str:
    """Hexadecimal sha256 over the names and shapes of weights, and up to `_SAMPLED` numbers of each as float32."""
    digest = hashlib.sha256()
    for name, weight in sorted(weights, key=lambda pair: pair[0]):
        numbers = weight.detach().flatten()
        digest.update(f"{name} {tuple(weight.shape)}".encode())
        digest.update(numbers[:: -(-len(numbers) // _SAMPLED) or 1].cpu().float().numpy().tobytes())
    return digest.hexdigest()
