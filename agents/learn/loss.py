"""`Loss`: the loss that an optimiser step minimises."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from agents.batch import Batch
from agents.policies.trainable import TokenOutputs
from agents.settings.choices import Aggregation

if TYPE_CHECKING:
    from torch import Tensor

TokenLoss = Callable[[Batch, TokenOutputs, "Tensor"], Mapping[str, "Tensor"]]
"""(micro-batch, the policy's outputs at its t tokens, advantages f64[b t]) -> named terms f[b t], whose sum is the loss."""

ClippedTokens = Callable[[Batch, "Tensor", "Tensor"], "tuple[Tensor, Tensor] | None"]
"""(micro-batch, log-probabilities f[b t], advantages f64[b t]) -> where the loss is clipped from below and above, bool[b t]."""


@dataclass(frozen=True)
class Loss:
    """The loss that an optimiser step minimises: the losses of tokens and their aggregation."""

    terms: TokenLoss
    """The terms of each token's loss."""
    aggregation: Aggregation
    """How the losses of the tokens are reduced to one loss."""
    max_tokens: int | None = None
    """The constant length of some aggregations; see `agents.losses.token_weights`."""
    clipped: ClippedTokens | None = None
    """Where the loss is clipped, for metrics."""
    vanishes_without_advantage: bool = False
    """Whether the gradient of a token's loss is 0 if its advantage is 0."""
    ratios_are_one: bool = False
    """For batches without `old_logprobs`: whether probability ratios are relative to the same pass that computes them (True) or
    to the sampler's log-probabilities (False)."""
