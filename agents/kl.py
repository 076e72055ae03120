"""How far the policy is from its reference: estimators of KL(pi || ref) from the tokens that were sampled.

Axes: b completions, t tokens. Each estimator gives one value for each token; summed over the masked tokens of a completion
it estimates the divergence between the distributions of whole completions, in nats.
"""

from __future__ import annotations

import enum

from jaxtyping import Float
from torch import Tensor

from agents.choices import choice
from verifiers import InvalidArgumentError


class KLEstimator(enum.StrEnum):
    """How a token's divergence is estimated. d = log pi - log ref; the token was sampled from pi, for `K3_RATIO` from pi_old.

    Schulman, "Approximating KL divergence", 2020. The *value* of k1 and k3 is unbiased. What it teaches is something else.
    Each statement is exact for the expectation over a token, given what precedes it:

    | estimator | as a constant in the reward | as a term of the loss: its mean gradient |
    |---|---|---|
    | k1 | grad KL(pi, ref) | 0: nothing is learned from it |
    | k2 | biased | grad KL(pi, ref) |
    | k3 | biased | grad KL(ref, pi): the other direction, which covers the reference's modes |
    | k3-ratio | biased | grad KL(pi, ref), also off-policy |

    A term of the loss leaves out that a token also changes which states follow; a reward that is summed to go does not. So k1
    in the reward is the only one that climbs down the divergence of whole completions without bias.
    """

    K1 = "k1"
    """d. Negative for some tokens."""
    K2 = "k2"
    """d^2 / 2. Its value is biased, little where the policies are close."""
    K3 = "k3"
    """exp(-d) + d - 1. Never negative; GRPO's term of the loss (Shao et al. 2024, arXiv:2402.03300, equation 4)."""
    K3_RATIO = "k3-ratio"
    """k3 times pi / pi_old, with gradient through the ratio (DeepSeek-V3.2, arXiv:2512.02556)."""


def kl_estimate(
    estimator: KLEstimator | str,
    logprobs: Float[Tensor, "b t"],
    ref_logprobs: Float[Tensor, "b t"],
    old_logprobs: Float[Tensor, "b t"] | None = None,
) -> Float[Tensor, "b t"]:
    """Estimate KL(pi || ref) at each token; see `KLEstimator` for what value and gradient are worth.

    Detach `logprobs` to use it in the reward. Log-ratios in exponents are cut at 20 from above, so that nothing overflows:
    where the reference is more than 5e8 times as likely as pi, k3 stays constant and has no gradient (pi itself samples such
    a token once in 5e8 times at most); the gradient of k3-ratio is exact there too. Nothing else is clamped. A bound on the
    value of k3 (10 is common) would take the gradient away as soon as the reference is 14 times as likely, and a bound on d
    from above would free the tokens that the reference rules out.

    Args:
        estimator: Which.
        logprobs: f[b t], log pi, with gradient where it is a term of the loss.
        ref_logprobs: f[b t], constants.
        old_logprobs: f[b t], constants, log-probabilities under the policy that was sampled from; `K3_RATIO` only.

    Raises:
        InvalidArgumentError: If `K3_RATIO` lacks `old_logprobs`.
        UnknownNameError: If there is no such estimator; the message offers the nearest.
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
                raise InvalidArgumentError(
                    "estimator 'k3-ratio' needs old_logprobs, those of the policy that was sampled from"
                )
            return _k3_ratio(logprobs, ref_logprobs, old_logprobs)


_HIGHEST = 20.0
"""Of a log-ratio in an exponent: exp overflows at 88 in float32."""


def _k3(logprobs: Tensor, ref_logprobs: Tensor) -> Tensor:
    given_up = (ref_logprobs - logprobs).clamp(max=_HIGHEST)
    return given_up.expm1() - given_up


def _k3_ratio(logprobs: Tensor, ref_logprobs: Tensor, old_logprobs: Tensor) -> Tensor:
    """The value of ratio * k3 with its gradient ratio * (log pi - log ref), into which the derivatives of both factors add up.

    Written out because the sum of the two derivatives cancels nearly all digits where the reference is much likelier than
    pi, and has the wrong sign once one factor is cut and the other is not.
    """
    ratio = (logprobs - old_logprobs).detach().clamp(max=_HIGHEST).exp()
    slope = ratio * (logprobs - ref_logprobs).detach()
    return ratio * _k3(logprobs, ref_logprobs).detach() + slope * (logprobs - logprobs.detach())


class AdaptiveKLController:
    """The coefficient of a KL penalty, raised where the divergence is above a target and lowered where it is below.

    b <- b (1 + clip(KL / target - 1, -0.2, 0.2) n / horizon): Ziegler et al. 2019, arXiv:1909.08593, section 2.2, in the form
    of its code, where n completions take the place of a step.

    Args:
        coefficient: The first one.
        target: In the unit of the divergences that `update` gets: nats for each token or for each completion.
        horizon: In completions; the coefficient changes by at most a fifth over so many.

    Raises:
        InvalidArgumentError: If the coefficient is negative, or target or horizon is not positive.
    """

    def __init__(self, coefficient: float, target: float = 0.1, horizon: int = 10_000) -> None:
        if not coefficient >= 0:
            raise InvalidArgumentError(f"the coefficient of the KL penalty must be at least 0; got {coefficient}")
        if not (target > 0 and horizon > 0):
            raise InvalidArgumentError(f"target and horizon must be positive; got target = {target}, horizon = {horizon}")
        self.coefficient = coefficient
        self.target = target
        self.horizon = horizon

    def update(self, kl: float, n: int) -> float:
        """Move the coefficient after n completions of mean divergence `kl`, and return it.

        Raises:
            InvalidArgumentError: If `kl` is NaN, or n is negative or so large that the coefficient would reach 0.
        """
        if kl != kl:
            raise InvalidArgumentError("kl is NaN; leave the update out when no token was counted")
        if not 0 <= n < 5 * self.horizon:
            raise InvalidArgumentError(
                f"n is the number of completions since the last update, below 5 horizons ({5 * self.horizon}); got {n}. "
                "Raise the horizon or update more often."
            )
        error = min(max(kl / self.target - 1, -0.2), 0.2)
        self.coefficient *= 1 + error * n / self.horizon
        return self.coefficient
