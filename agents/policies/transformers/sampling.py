"""Sampling that depends on an episode's seed and the token's position alone, not on the batch around it.

One uniform number for each token comes from a counter-based generator (`agents.seeding`), and the token from inverting the
cumulative distribution; so any batching, order or refilling of rows samples the same tokens, up to the rounding of the
distributions themselves.
"""

from __future__ import annotations

import math

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor


def sample(logprobs: Float[Tensor, "b v"], u: Float[Tensor, " b"], *, blocks: bool = True) -> Int[Tensor, " b"]:
    """Invert the cumulative distribution: the first token whose cumulative probability exceeds u.

    Summed in float64, so that a token's chance is its probability, as exactly as that is given, even in a large vocabulary;
    a token of probability 0 is never chosen.

    Args:
        logprobs: Of the distribution.
        u: In [0, 1).
        blocks: Sum a large vocabulary by blocks first, which is less work and the same up to the rounding of the sums.
    """
    if blocks and logprobs.shape[-1] > 8 * _BLOCK:
        return _sample_by_blocks(logprobs, u.double())
    cumulative = logprobs.double().exp().cumsum(dim=-1)
    target = (u.double() * cumulative[:, -1]).unsqueeze(-1)
    chosen = torch.searchsorted(cumulative, target, right=True).squeeze(-1)
    last = (logprobs > -torch.inf).int().cumsum(dim=-1).argmax(dim=-1)
    return torch.minimum(chosen, last)


_BLOCK = 256


def _sample_by_blocks(logprobs: Tensor, u: Tensor) -> Tensor:
    """The same in two steps, first a block of tokens and then one of its tokens: most of the vocabulary is only summed."""
    shares = logprobs.exp()
    rows, size = shares.shape
    blocks = torch.nn.functional.pad(shares, (0, -size % _BLOCK)).view(rows, -1, _BLOCK)
    sums = blocks.sum(-1, dtype=torch.float64)
    cumulative = sums.cumsum(-1)
    target = (u * cumulative[:, -1]).unsqueeze(-1)
    block = torch.minimum(torch.searchsorted(cumulative, target, right=True), _last_positive(sums))
    own = blocks.gather(1, block[..., None].expand(-1, -1, _BLOCK)).squeeze(1).double()
    before = cumulative.gather(1, block) - sums.gather(1, block)
    within = torch.minimum(torch.searchsorted(before + own.cumsum(-1), target, right=True), _last_positive(own))
    return (block * _BLOCK + within).squeeze(-1)


def _last_positive(shares: Tensor) -> Tensor:
    """The last place i64[b 1] of each row that has a chance."""
    return (shares > 0).int().cumsum(-1).argmax(-1, keepdim=True)


def kept_tokens(
    logprobs: Float[Tensor, "b v"], *, top_k: int | None = None, top_p: float = 1.0, min_p: float = 0.0
) -> Bool[Tensor, "b v"]:
    """The tokens that are left to choose from, at least one in each row.

    Args:
        logprobs: Of the distribution before anything is left out.
        top_k: Keep the k likeliest, and those as likely as the k-th.
        top_p: Of these, keep the likeliest until their share of what `top_k` left is at least this (nucleus sampling,
            Holtzman et al. 2019, arXiv:1904.09751, equation 2).
        min_p: Keep only those at least this times as likely as the likeliest (Nguyen et al. 2024, arXiv:2407.01082).
    """
    kept = logprobs > -torch.inf
    if top_k is not None and top_k < logprobs.shape[-1]:
        kept &= logprobs >= logprobs.topk(top_k, dim=-1).values[:, -1:]
    if top_p < 1:
        shares, order = torch.where(kept, logprobs, -torch.inf).double().softmax(-1).sort(dim=-1, descending=True)
        before = shares.cumsum(-1) - shares
        kept &= torch.zeros_like(kept).scatter(-1, order, before < top_p)
    if min_p > 0:
        kept &= logprobs >= logprobs.amax(-1, keepdim=True) + math.log(min_p)
    return kept


def scaled_logprobs(
    logits: Float[Tensor, "*b v"], temperature: float, legal: Tensor | None = None
) -> Float[Tensor, "*b v"]:
    """Log-probabilities in float32 at a temperature, over the legal tokens where `legal` (bool, same shape) is given."""
    scaled = logits.float() / temperature
    if legal is not None:
        scaled = scaled.masked_fill(~legal, -torch.inf)
    return torch.log_softmax(scaled, dim=-1)
