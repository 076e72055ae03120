"""Losses: pure functions of log-probabilities and advantages. All losses are minimised.

Axes: b completions, t tokens. Each policy loss returns one value for each token; `token_weights` defines how they are summed,
so that the loss of an optimiser step is `(loss * weights).sum()` over all its micro-batches, and neither the micro-batches,
their order nor padding changes the gradient. Outside the mask a loss may be any finite number, since its weight there is 0.

Log-probabilities are natural logs under the sampling distribution. `logprobs` are those of the policy being trained, with
gradient; `old_logprobs` are those of the policy before the first optimiser step on these samples. `old_logprobs` and the
advantages are constants. sg means "stop gradient".
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from agents.deferred import torch
from agents.settings.choices import Aggregation as Aggregation, PreferenceLoss as PreferenceLoss, choice
from verifiers import InvalidArgumentError

if TYPE_CHECKING:
    from jaxtyping import Bool, Float


def policy_gradient(
    logprobs: Float[torch.Tensor, "b t"], advantages: Float[torch.Tensor, "b t"]
) -> Float[torch.Tensor, "b t"]:
    """-A_t log pi(y_t): REINFORCE (Williams 1992), whose gradient is the policy gradient if samples are on-policy."""
    return -advantages * logprobs


def clipped_surrogate(
    logprobs: Float[torch.Tensor, "b t"],
    old_logprobs: Float[torch.Tensor, "b t"],
    advantages: Float[torch.Tensor, "b t"],
    clip_low: float = 0.2,
    clip_high: float = 0.2,
    dual_clip: float | None = None,
) -> Float[torch.Tensor, "b t"]:
    """-min(r A, clip(r, 1 - clip_low, 1 + clip_high) A) with r = pi / pi_old: PPO (Schulman et al. 2017, equation 7).

    At r = 1 its gradient is that of `policy_gradient`. The clip bounds may differ (DAPO, Yu et al. 2025, equation 8).

    For A < 0 the minimum is unbounded as r grows. With `dual_clip` c the objective is at least c A there, so the loss is at
    most -c A, with gradient 0 from r = c on (Ye et al. 2020, arXiv:1912.09729, with c = 3). Without it the ratio is clamped
    at e^20 to avoid overflow, and has no gradient beyond.

    Raises:
        InvalidArgumentError: If `dual_clip` is not above 1; at 1 or below it would remove the gradient of PPO.
    """
    if dual_clip is not None and not dual_clip > 1:
        raise InvalidArgumentError(
            f"dual_clip bounds the ratio from above where A < 0, so it must be above 1; got {dual_clip}"
        )
    objective = _clipped_objective(_ratio(logprobs - old_logprobs), advantages, clip_low, clip_high)
    if dual_clip is not None:
        objective = torch.where(advantages < 0, torch.maximum(objective, dual_clip * advantages), objective)
    return -objective


def clipped_tokens(
    logprobs: Float[torch.Tensor, "b t"],
    old_logprobs: Float[torch.Tensor, "b t"],
    advantages: Float[torch.Tensor, "b t"],
    clip_low: float,
    clip_high: float,
) -> tuple[Bool[torch.Tensor, "b t"], Bool[torch.Tensor, "b t"]]:
    """Where `clipped_surrogate` has no gradient: tokens with the ratio below its range and A < 0, or above it and A > 0."""
    ratio = _ratio((logprobs - old_logprobs).detach())
    return (ratio < 1 - clip_low) & (advantages < 0), (ratio > 1 + clip_high) & (advantages > 0)


def sequence_log_ratio(
    logprobs: Float[torch.Tensor, "b t"], old_logprobs: Float[torch.Tensor, "b t"], mask: Bool[torch.Tensor, "b t"]
) -> Float[torch.Tensor, "b 1"]:
    """Return log s_i, the mean over a completion's masked tokens of log pi - log pi_old (GSPO, equation 7), detached.

    It is 0 for a completion without such tokens.
    """
    differences = torch.where(mask, (logprobs - old_logprobs).detach(), 0.0)
    return differences.sum(1, keepdim=True) / mask.sum(1, keepdim=True).clamp(min=1)


def sequence_clipped_surrogate(
    logprobs: Float[torch.Tensor, "b t"],
    old_logprobs: Float[torch.Tensor, "b t"],
    advantages: Float[torch.Tensor, "b t"],
    mask: Bool[torch.Tensor, "b t"],
    clip_low: float = 3e-4,
    clip_high: float = 4e-4,
) -> Float[torch.Tensor, "b t"]:
    """`clipped_surrogate` with one ratio for all tokens of a completion: GSPO (Zheng et al. 2025, arXiv:2507.18071).

    s_i = exp(mean over the completion's masked tokens of log pi - log pi_old), the geometric mean of its tokens' ratios. Each
    token has s_it = sg(s_i) * pi_t / sg(pi_t) (the paper's GSPO-token form): the value is s_i, and the gradient reaches
    each token's own log-probability, so advantages may differ between tokens. With one advantage per completion and the
    paper's `Aggregation.SEQUENCE_MEAN_TOKEN_MEAN`, value and gradient are those of GSPO, and a completion is clipped as a
    whole. The default bounds are the paper's: a mean ratio stays close to 1.

    Where s_i = 1 its gradient is that of `policy_gradient`. s_i is clamped at e^20 to avoid overflow; beyond that, tokens with
    A < 0 keep their gradients.
    """
    sequence = sequence_log_ratio(logprobs, old_logprobs, mask)
    ratio = _ratio(sequence) * (logprobs - logprobs.detach()).exp()
    return -_clipped_objective(ratio, advantages, clip_low, clip_high)


def cispo(
    logprobs: Float[torch.Tensor, "b t"],
    old_logprobs: Float[torch.Tensor, "b t"],
    advantages: Float[torch.Tensor, "b t"],
    is_cap: float,
) -> Float[torch.Tensor, "b t"]:
    """-sg(min(r, is_cap)) A log pi with r = pi / pi_old: CISPO (MiniMax 2025, arXiv:2506.13585).

    The ratio is a capped constant weight rather than a factor with a clipped gradient, so every token keeps a gradient.
    `is_cap` is the cap itself, not its distance from 1 (the paper's 1 + epsilon_high); there is no lower bound, as in the
    paper's experiments.

    Raises:
        InvalidArgumentError: If `is_cap` is not positive.
    """
    if not is_cap > 0:
        raise InvalidArgumentError(f"is_cap, the largest importance weight, must be positive; got {is_cap}")
    weights = (logprobs - old_logprobs).detach().exp().clamp(max=is_cap)
    return weights * policy_gradient(logprobs, advantages)


def squared_value_error(
    values: Float[torch.Tensor, "b t"],
    targets: Float[torch.Tensor, "b t"],
    old_values: Float[torch.Tensor, "b t"] | None = None,
    clip: float | None = None,
) -> Float[torch.Tensor, "b t"]:
    """0.5 max((V - G)^2, (clip(V, V_old - clip, V_old + clip) - G)^2), or 0.5 (V - G)^2 without `clip`.

    The clipped form is that of OpenAI's PPO code, described by Engstrom et al. 2020, arXiv:2005.12729, section 3: a value
    that has moved by more than `clip` towards its target since the samples were drawn gets no further gradient.

    Args:
        values: f[b t], with gradient.
        targets: f[b t], constants: `gae` + V_old, or `returns_to_go`.
        old_values: f[b t], constants: V when the samples were drawn.
        clip: Largest change of a value, on the scale of the returns.

    Raises:
        InvalidArgumentError: If `clip` is not positive or is given without `old_values`.
    """
    error = (values - targets) ** 2
    if clip is None:
        return 0.5 * error
    if old_values is None:
        raise InvalidArgumentError(
            "clip bounds the distance of values from old_values, which are missing; pass both or neither"
        )
    if not clip > 0:
        raise InvalidArgumentError(f"clip, a distance on the scale of the returns, must be positive; got {clip}")
    clipped = values.clamp(old_values - clip, old_values + clip)
    return 0.5 * torch.maximum(error, (clipped - targets) ** 2)


def bradley_terry(
    chosen: Float[torch.Tensor, " n"], rejected: Float[torch.Tensor, " n"], center_coefficient: float = 0.0
) -> Float[torch.Tensor, " n"]:
    """-log sigmoid(r_chosen - r_rejected): the negative log-likelihood of preferences (Bradley and Terry 1952).

    As the loss of a reward model it is equation 1 of Ouyang et al. 2022 (arXiv:2203.02155). It does not change if both scores
    of a pair change by the same amount. The added term, `center_coefficient` times (r_chosen + r_rejected)^2, draws scores
    towards a mean of 0 (Eisenstein et al. 2023, arXiv:2312.09244), so that scores of several models can be compared.

    Args:
        chosen: Scores of the preferred completions, with gradient.
        rejected: Scores of the rejected completions.
        center_coefficient: Weight of the squared sum, at least 0.
    """
    return -torch.nn.functional.logsigmoid(chosen - rejected) + center_coefficient * (chosen + rejected) ** 2


def preference_loss(
    margins: Float[torch.Tensor, " n"],
    beta: float,
    kind: PreferenceLoss = PreferenceLoss.SIGMOID,
    label_smoothing: float = 0.0,
) -> Float[torch.Tensor, " n"]:
    """The loss of pairs, given their margins h = log(pi / pi_ref)(chosen) - log(pi / pi_ref)(rejected), over whole completions.

    With `label_smoothing` e, a label is assumed to be wrong with probability e: (1 - e) L(h) + e L(-h) (conservative DPO,
    Mitchell 2023, "A note on DPO with noisy preferences").

    Args:
        margins: The margins h, with gradient.
        beta: Weight of the KL divergence in DPO's objective, above 0.
        kind: See `PreferenceLoss`.
        label_smoothing: The probability e that a label is wrong, from 0 to below 0.5.
    """
    return (1 - label_smoothing) * _of_margins(margins, beta, kind) + label_smoothing * _of_margins(
        -margins, beta, kind
    )


def _of_margins(margins: torch.Tensor, beta: float, kind: PreferenceLoss) -> torch.Tensor:
    if kind is PreferenceLoss.IPO:
        return (margins - 1 / (2 * beta)) ** 2
    return -torch.nn.functional.logsigmoid(beta * margins)


def token_weights(
    mask: Bool[torch.Tensor, "b t"],
    aggregation: Aggregation | str,
    *,
    num_completions: int,
    max_tokens: int | None = None,
) -> Float[torch.Tensor, "b t"]:
    """The weight of each token's loss in the loss of a whole optimiser step; 0 outside the mask.

    Args:
        mask: The trained tokens of the whole step, over all micro-batches.
        aggregation: How token losses are aggregated.
        num_completions: B, including generated completions without trained tokens.
        max_tokens: The constant length of `SEQUENCE_MEAN_TOKEN_SUM_NORM`; ignored by the other aggregations.

    Raises:
        InvalidArgumentError: If the aggregation needs `max_tokens` and none is given.
        UnknownNameError: If there is no such aggregation; the message suggests the nearest.
    """
    ones = mask.double()
    match choice("aggregation", aggregation, Aggregation):
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


def _ratio(log_ratio: torch.Tensor) -> torch.Tensor:
    # exp overflows beyond 88 in float32; there the ratio is clipped or the sample useless anyway.
    return log_ratio.clamp(-20, 20).exp()


def _clipped_objective(
    ratio: torch.Tensor, advantages: torch.Tensor, clip_low: float, clip_high: float
) -> torch.Tensor:
    return torch.minimum(ratio * advantages, ratio.clamp(1 - clip_low, 1 + clip_high) * advantages)
