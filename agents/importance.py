"""Importance weights that correct off-policy samples.

The policy that sampled (the behaviour policy) differs slightly from the one being trained: an inference engine uses other
kernels and precisions, and an asynchronous engine samples with older weights. The weight of a token is w = pi_old / behaviour,
bounded so that a few samples do not dominate the gradient. Weights are constants: multiply the loss of each token by them.

Axes: b completions, t tokens.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from agents.deferred import torch
from agents.settings.choices import Correction as Correction, choice
from verifiers import InvalidArgumentError

if TYPE_CHECKING:
    from jaxtyping import Bool, Float

_SEQUENCE_RATIOS = {Correction.SEQUENCE_TRUNCATE, Correction.SEQUENCE_MASK}
_MASKS = {Correction.TOKEN_MASK, Correction.SEQUENCE_MASK, Correction.GEOMETRIC_MASK}


def importance_weights(
    old_logprobs: Float[torch.Tensor, "b t"],
    behaviour_logprobs: Float[torch.Tensor, "b t"],
    mask: Bool[torch.Tensor, "b t"],
    correction: Correction | str,
    *,
    cap: float = 2.0,
    floor: float = 0.0,
) -> Float[torch.Tensor, "b t"]:
    """The weight of each token, detached; 0 outside the mask.

    A token whose behaviour log-probability is NaN (the engine reported none) is treated as on-policy: d_t = 0, also in
    sums and means. Log-ratios are clamped to +-20, which exceeds every bound. Both log-probabilities must be of the same
    distribution: temperature and top-p must be the same for the engine and the policy.

    Args:
        old_logprobs: f[b t], under the policy being trained, before the first optimiser step on these samples.
        behaviour_logprobs: f[b t], as reported by the sampler; NaN where unknown.
        mask: bool[b t], the policy's own tokens.
        correction: How ratios become weights.
        cap: The largest weight, at least 1.
        floor: The smallest weight, from 0 to 1.

    Raises:
        InvalidArgumentError: If the bounds exclude 1, the weight of on-policy samples.
        UnknownNameError: If there is no such correction; the message suggests the nearest.
    """
    if not 0 <= floor <= 1 <= cap:
        raise InvalidArgumentError(
            f"the bounds of a weight must satisfy 0 <= floor <= 1 <= cap; got floor = {floor}, cap = {cap}"
        )
    correction = choice("correction", correction, Correction)
    known = mask & ~behaviour_logprobs.isnan() & (correction != Correction.NONE)
    differences = torch.where(known, (old_logprobs - behaviour_logprobs).detach(), 0.0)
    if correction in _SEQUENCE_RATIOS:
        differences = differences.sum(1, keepdim=True).expand_as(mask)
    ratios = differences.clamp(-20, 20).exp()
    judged = ratios
    if correction is Correction.GEOMETRIC_MASK:
        judged = (differences.sum(1, keepdim=True) / mask.sum(1, keepdim=True).clamp(min=1)).clamp(-20, 20).exp()
    if correction in _MASKS:
        mask = mask & (floor <= judged) & (judged <= cap)
    return torch.where(mask, ratios.clamp(floor, cap), 0.0)


def effective_share(mean: float, mean_square: float) -> float:
    """The effective share of n samples, (sum w)^2 / (n sum w^2) (Kong 1992), from the means of w and of w^2.

    It is 1 if all weights are equal, 1 / n if one sample has all the weight, and 0 if every weight is 0.
    """
    return mean**2 / mean_square if mean_square else 0.0
