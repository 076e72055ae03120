"""Log-probabilities and entropies of tokens from logits, with a memory-efficient backward pass.

The backward pass is written by hand, since autograd through `log_softmax`, `gather` and the entropy would keep several copies
of the largest tensor of a training step, tokens x vocabulary.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

if TYPE_CHECKING:
    from jaxtyping import Bool, Float, Int


def token_logprobs_and_entropy(
    logits: Float[Tensor, "n v"],
    tokens: Int[Tensor, " n"],
    temperature: float,
    legal: Bool[Tensor, "n v"] | None = None,
) -> tuple[Float[Tensor, " n"], Float[Tensor, " n"]]:
    """Log p(token) and H(p) in nats, with p = softmax(logits / temperature) over the legal tokens; both f32.

    The gradient with respect to z = logits / temperature is given by d log p_y / dz = onehot(y) - p and
    dH / dz_j = -p_j (log p_j + H). The result is not twice differentiable.
    """
    with torch.autocast(logits.device.type, enabled=False):  # in half precision the entropy would lose its small parts
        outputs: tuple[Tensor, Tensor] = _TokenLogprobs.apply(logits, tokens, temperature, legal)  # type: ignore[no-untyped-call]
    return outputs


def token_logprobs_by_autograd(
    logits: Float[Tensor, "n v"],
    tokens: Int[Tensor, " n"],
    temperature: float,
    legal: Bool[Tensor, "n v"] | None = None,
) -> tuple[Float[Tensor, " n"], Float[Tensor, " n"]]:
    """`token_logprobs_and_entropy` with gradients by autograd, for comparison and for `fast=False`."""
    with torch.autocast(logits.device.type, enabled=False):
        log_shares = _log_shares(logits, temperature, legal)
        entropy = -(log_shares.exp() * log_shares.clamp(min=_LOWEST)).sum(dim=-1)
    return log_shares.gather(-1, tokens[:, None]).squeeze(-1), entropy


_LOWEST = -1e30
"""Replaces the log-probability -inf of an illegal token where it is multiplied by its probability 0."""


def _log_shares(logits: Tensor, temperature: float, legal: Tensor | None) -> Tensor:
    """Log-probabilities log p f32[n v] of the tokens."""
    scaled = logits.float() / temperature if temperature != 1 else logits.float()
    if legal is not None:
        scaled = scaled.masked_fill(~legal, -torch.inf)
    return torch.log_softmax(scaled, dim=-1)


class _TokenLogprobs(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, logits: Tensor, tokens: Tensor, temperature: float, legal: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        log_shares = _log_shares(logits, temperature, legal)
        logprobs = log_shares.gather(-1, tokens[:, None]).squeeze(-1)
        shares = log_shares.exp()
        # An illegal token has probability 0 and contributes nothing.
        entropy = -torch.linalg.vecdot(shares, log_shares if legal is None else log_shares.clamp(min=_LOWEST))
        # Save the smaller one: logits in half precision, otherwise p, which then need not be recomputed.
        ctx.half = logits.dtype.itemsize < shares.dtype.itemsize
        ctx.save_for_backward(logits if ctx.half else shares, tokens, entropy, legal)
        ctx.temperature, ctx.dtype = temperature, logits.dtype
        return logprobs, entropy

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, by_logprob: Tensor, by_entropy: Tensor) -> tuple[Tensor, None, None, None]:
        kept, tokens, entropy, legal = ctx.saved_tensors
        shares = _log_shares(kept, ctx.temperature, legal).exp_() if ctx.half else kept
        # In place where possible: this is the memory peak of a step.
        if bool(by_entropy.any()):
            weights = shares.log().clamp_(min=_LOWEST).add_(entropy[:, None]).mul_(by_entropy[:, None])
            slopes = weights.add_(by_logprob[:, None]).mul_(shares).neg_()
        else:
            slopes = shares * -by_logprob[:, None]
        slopes.scatter_add_(-1, tokens[:, None], by_logprob[:, None])
        if ctx.temperature != 1:
            slopes.div_(ctx.temperature)
        return slopes.to(ctx.dtype), None, None, None
