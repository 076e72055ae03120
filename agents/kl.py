"""Estimators of KL(pi || ref), the divergence of the policy from its reference, from sampled tokens.

Axes: b completions, t tokens. Each estimator gives one value for each token; summed over the masked tokens of a completion
it estimates the divergence between the distributions of whole completions, in nats.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from agents.deferred import torch
from agents.settings.choices import KLEstimator as KLEstimator, choice
from verifiers import InvalidArgumentError

if TYPE_CHECKING:
    from jaxtyping import Float


def kl_estimate(
    estimator: KLEstimator | str,
    logprobs: Float[torch.Tensor, "b t"],
    ref_logprobs: Float[torch.Tensor, "b t"],
    old_logprobs: Float[torch.Tensor, "b t"] | None = None,
) -> Float[torch.Tensor, "b t"]:
    """Estimate KL(pi || ref) at each token; see `KLEstimator` for the bias of values and gradients.

    Detach `logprobs` to use it in the reward. Log-ratios in exponents are clamped at 20 from above to avoid overflow: if the
    reference is more than 5e8 times as likely as pi, k3 is constant and has no gradient (pi samples such a token at most once
    in 5e8 times); the gradient of k3-ratio is exact there too. Nothing else is clamped. A bound on the value of k3 (10 is
    common) would remove the gradient as soon as the reference is 14 times as likely, and an upper bound on d would remove the
    penalty on tokens that the reference rules out.

    Args:
        estimator: The estimator.
        logprobs: f[b t], log pi, with gradient if it is a term of the loss.
        ref_logprobs: f[b t], constants.
        old_logprobs: f[b t], constants, log-probabilities under the policy that sampled; `K3_RATIO` only.

    Raises:
        InvalidArgumentError: If `K3_RATIO` is used without `old_logprobs`.
        UnknownNameError: If there is no such estimator; the message suggests the nearest.
    """
    match choice("estimator", estimator, KLEstimator):
        case KLEstimator.K1:
            return logprobs - ref_logprobs
        case KLEstimator.K2:
            return 0.5 * (logprobs - ref_logprobs) ** 2
        case KLEstimator.K3:
            return _k3(logprobs, ref_logprobs)
        case KLEstimator.K3_RATIO:
            if old_logprobs is None:
                raise InvalidArgumentError("estimator 'k3-ratio' needs old_logprobs, those of the policy that sampled")
            return _k3_ratio(logprobs, ref_logprobs, old_logprobs)


_HIGHEST = 20.0
"""Largest log-ratio in an exponent; exp overflows at 88 in float32."""


def _k3(logprobs: torch.Tensor, ref_logprobs: torch.Tensor) -> torch.Tensor:
    given_up = (ref_logprobs - logprobs).clamp(max=_HIGHEST)
    return given_up.expm1() - given_up


def _k3_ratio(logprobs: torch.Tensor, ref_logprobs: torch.Tensor, old_logprobs: torch.Tensor) -> torch.Tensor:
    """The value of ratio * k3, with its gradient ratio * (log pi - log ref), the sum of the derivatives of both factors.

    The gradient is written out because a sum of the two derivatives would be inexact. If the reference is much likelier than
    pi, nearly all digits of the sum cancel; if only one factor is clamped, the sum has the wrong sign.
    """
    ratio = (logprobs - old_logprobs).detach().clamp(max=_HIGHEST).exp()
    slope = ratio * (logprobs - ref_logprobs).detach()
    return ratio * _k3(logprobs, ref_logprobs).detach() + slope * (logprobs - logprobs.detach())


class AdaptiveKLController:
    """Adapts the coefficient of a KL penalty: up if the divergence is above a target, down if it is below.

    b <- b (1 + clip(KL / target - 1, -0.2, 0.2) n / horizon): Ziegler et al. 2019, arXiv:1909.08593, section 2.2, in the form
    of its code, where n completions take the place of a step.

    Args:
        coefficient: The initial coefficient.
        target: The target divergence, in the unit passed to `update`: nats per token or per completion.
        horizon: The number of completions over which the coefficient changes by at most a fifth.

    Raises:
        InvalidArgumentError: If the coefficient is negative, or target or horizon is not positive.
    """

    def __init__(self, coefficient: float, target: float = 0.1, horizon: int = 10_000) -> None:
        if not coefficient >= 0:
            raise InvalidArgumentError(f"the coefficient of the KL penalty must be at least 0; got {coefficient}")
        if not (target > 0 and horizon > 0):
            raise InvalidArgumentError(
                f"target and horizon must be positive; got target = {target}, horizon = {horizon}"
            )
        self.coefficient = coefficient
        self.target = target
        self.horizon = horizon

    def update(self, kl: float, n: int) -> float:
        """Update the coefficient after n completions with mean divergence `kl`, and return it.

        Raises:
            InvalidArgumentError: If `kl` is NaN, or n is negative or so large that the coefficient would reach 0.
        """
        if kl != kl:
            raise InvalidArgumentError("kl is NaN; skip the update if there was no token to average over")
        if not 0 <= n < 5 * self.horizon:
            raise InvalidArgumentError(
                f"n, the number of completions since the last update, must be below 5 horizons ({5 * self.horizon}); got {n}. "
                "Raise the horizon or update more often."
            )
        error = min(max(kl / self.target - 1, -0.2), 0.2)
        self.coefficient *= 1 + error * n / self.horizon
        return self.coefficient
