"""`PolicyConfig`: the settings of a `CausalLMPolicy`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from agents.policies.trainable import require_temperature
from agents.policies.transformers.memory import Checkpointing
from verifiers import InvalidArgumentError, check_types

Precision = Literal["auto", "float32", "bfloat16"]


@dataclass(frozen=True, kw_only=True)
class PolicyConfig:
    """Settings of a policy on a `transformers` model.

    Raises:
        InvalidArgumentError: If a setting is of another type, or out of its range.
        UnknownNameError: If there is no such precision or checkpointing; the message suggests the nearest.
    """

    temperature: float = 1.0
    """Divides the logits, both when sampling and when training; 0 chooses the likeliest token, for evaluation only (its
    log-probabilities are NaN)."""
    top_k: int | None = None
    """Sample among the k likeliest tokens only; None for all. What is left is the distribution whose log-probabilities are
    stored and learned, and the tokens that are left are stored with each token; so too with `top_p` and `min_p`."""
    top_p: float = 1.0
    """Sample among the likeliest tokens that together have this probability."""
    min_p: float = 0.0
    """Sample among the tokens that are at least this fraction as likely as the likeliest."""
    vocab_size: int | None = None
    """Number of tokens to choose from, the first ones of the model's vocabulary; None for all of them."""
    seed: int = 0
    """Decides the sampling of episodes that were not announced by `begin`."""
    precision: Precision = "auto"
    """Precision of matrix products; weights keep their own. `"auto"` is bfloat16 for float32 weights on a GPU that has it, and
    the weights' own precision otherwise."""
    checkpointing: Checkpointing = "auto"
    """Whether the backward pass recomputes activations instead of keeping them; `"auto"` does so on a GPU whose free memory
    they would not fit in."""
    shared_prefix: bool = True
    """Read the common prefix of a group's rows once when learning, and keep its keys and values once when sampling, where that
    is less work and the model allows it; it changes nothing beyond rounding."""
    max_cached_tokens: int | None = None
    """Most tokens whose keys and values are kept, padding included; None for what a GPU's free memory has room for, and for no
    limit on a CPU. A rollout plays no more rows at once than fit; elsewhere, rows beyond that are read anew at every token."""
    fast: bool = True
    """False turns every optimisation off: no cache, no sharing of prompts, gradients by autograd alone, all logits at once. It
    changes nothing beyond rounding, and is there to show just that."""

    def __post_init__(self) -> None:
        for name, value, otherwise in (
            ("top_k", self.top_k, "None leaves no token out"),
            ("vocab_size", self.vocab_size, "None chooses from all of the model's tokens"),
            ("max_cached_tokens", self.max_cached_tokens, "fast=False does without a cache"),
        ):
            _check_count(name, value, otherwise)
        require_temperature(self.temperature)
        if not (0 < self.top_p <= 1 and 0 <= self.min_p <= 1):
            raise InvalidArgumentError(
                f"top_p must be in (0, 1] and min_p in [0, 1], got {self.top_p} and {self.min_p}"
            )
        check_types(self)

    @property
    def leaves_tokens_out(self) -> bool:
        """Whether it samples from fewer tokens than are legal."""
        return self.temperature > 0 and (self.top_k is not None or self.top_p < 1 or self.min_p > 0)


def _check_count(name: str, value: object, otherwise: str) -> None:
    if value is not None and not (isinstance(value, int | np.integer) and value >= 1):
        raise InvalidArgumentError(f"{name} must be a whole number of at least 1 or None, got {value!r}; {otherwise}")
