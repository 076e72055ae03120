"""Sampling that depends only on an episode's seed and the token's position, not on the rest of the batch.

A counter-based generator (`agents.seeding`) draws one uniform number per token, and inverting the cumulative distribution
gives the token; so any batching, order or refilling of rows samples the same tokens, up to rounding of the distributions.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import torch
from torch import Tensor

if TYPE_CHECKING:
    from jaxtyping import Bool, Float, Int


def sample(logprobs: Float[Tensor, "b v"], u: Float[Tensor, " b"], *, blocks: bool = True) -> Int[Tensor, " b"]:
    """Invert the cumulative distribution: choose the first token whose cumulative probability exceeds u.

    Sums are in float64, so that probabilities stay accurate even for a large vocabulary; a token of probability 0 is never
    chosen.

    Args:
        logprobs: Log-probabilities of the distribution.
        u: Uniform numbers in [0, 1).
        blocks: Whether to sum a large vocabulary by blocks first, which is faster and equal up to the rounding of sums.
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
    """`sample` in two steps, first a block and then a token in it, so that most of the vocabulary is only summed."""
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
    """The last index i64[b 1] with a positive probability in each row."""
    return (shares > 0).int().cumsum(-1).argmax(-1, keepdim=True)


def kept_tokens(
    logprobs: Float[Tensor, "b v"], *, top_k: int | None = None, top_p: float = 1.0, min_p: float = 0.0
) -> Bool[Tensor, "b v"]:
    """The candidate tokens under top-k, top-p and min-p, at least one in each row.

    Args:
        logprobs: Log-probabilities of the full distribution.
        top_k: Keep the k likeliest tokens, and those as likely as the k-th.
        top_p: Of these, keep the likeliest until their share of the probability is at least this (nucleus sampling,
            Holtzman et al. 2019, arXiv:1904.09751, equation 2).
        min_p: Keep only tokens whose probability is at least this fraction of the likeliest token's (Nguyen et al. 2024,
            arXiv:2407.01082).
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
    """Log-probabilities in float32 at a temperature, over the legal tokens if `legal` (bool, same shape) is given."""
    scaled = logits.float() / temperature
    if legal is not None:
        scaled = scaled.masked_fill(~legal, -torch.inf)
    return torch.log_softmax(scaled, dim=-1)
