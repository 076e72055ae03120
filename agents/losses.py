"""Losses: pure functions of log-probabilities and advantages. All are minimised.

Axes: b completions, t tokens. Each policy loss gives one value for each token; `token_weights` says how they are summed, so
that the loss of an optimiser step is `(loss * weights).sum()` over all its micro-batches, and neither the micro-batches,
their order nor padding changes the gradient.
"""

from __future__ import annotations

import enum

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from verifiers import InvalidArgumentError


def policy_gradient(logprobs: Float[Tensor, "b t"], advantages: Float[Tensor, "b t"]) -> Float[Tensor, "b t"]:
    """-A_t log pi(y_t): REINFORCE (Williams 1992), whose gradient is the policy gradient where samples are on-policy."""
    return -advantages * logprobs


def clipped_surrogate(
    logprobs: Float[Tensor, "b t"],
    old_logprobs: Float[Tensor, "b t"],
    advantages: Float[Tensor, "b t"],
    clip_low: float = 0.2,
    clip_high: float = 0.2,
) -> Float[Tensor, "b t"]:
    """-min(r A, clip(r, 1 - clip_low, 1 + clip_high) A) with r = pi / pi_old: PPO (Schulman et al. 2017, equation 7).

    At r = 1 its gradient is that of `policy_gradient`. The clip bounds may differ (DAPO, Yu et al. 2025, equation 8).
    """
    # exp overflows beyond 88 in float32; there the ratio is clipped or the sample useless anyway.
    ratio = (logprobs - old_logprobs).clamp(-20, 20).exp()
    return -torch.minimum(ratio * advantages, ratio.clamp(1 - clip_low, 1 + clip_high) * advantages)


class Aggregation(enum.StrEnum):
    """How the losses of tokens become the loss of an optimiser step. B completions, N tokens of the mask, T_i of one's."""

    TOKEN_MEAN = "token-mean"
    """Sum / N (DAPO): every token weighs the same."""
    SEQUENCE_MEAN_TOKEN_MEAN = "sequence-mean-token-mean"
    """Mean over completions of the mean over their tokens (GRPO): every completion weighs the same."""
    SEQUENCE_MEAN_TOKEN_SUM = "sequence-mean-token-sum"
    """Mean over completions of the sum over their tokens: the policy gradient of the expected return."""
    SEQUENCE_MEAN_TOKEN_SUM_NORM = "sequence-mean-token-sum-norm"
    """The same, divided by a constant length (Dr. GRPO): unbiased, on the scale of a mean."""


def token_weights(
    mask: Bool[Tensor, "b t"], aggregation: Aggregation | str, *, num_completions: int, max_tokens: int | None = None
) -> Float[Tensor, "b t"]:
    """The factor of each token's loss in the loss of a whole optimiser step; 0 off the mask.

    Args:
        mask: The tokens that are learned from, over the whole step: all micro-batches.
        aggregation: What is averaged over what.
        num_completions: B; completions that were generated and have nothing to learn from count too.
        max_tokens: The constant length of `SEQUENCE_MEAN_TOKEN_SUM_NORM`; not used by the others.

    Raises:
        InvalidArgumentError: If the aggregation needs `max_tokens` and it is not given.
    """
    ones = mask.double()
    match Aggregation(aggregation):
        case Aggregation.TOKEN_MEAN:
            return ones / ones.sum().clamp(min=1)
        case Aggregation.SEQUENCE_MEAN_TOKEN_MEAN:
            return ones / ones.sum(dim=1, keepdim=True).clamp(min=1) / max(num_completions, 1)
        case Aggregation.SEQUENCE_MEAN_TOKEN_SUM:
            return ones / max(num_completions, 1)
        case Aggregation.SEQUENCE_MEAN_TOKEN_SUM_NORM:
            if max_tokens is None:
                raise InvalidArgumentError(f"aggregation {str(aggregation)!r} needs max_tokens, its constant length")
            return ones / max(num_completions, 1) / max_tokens
