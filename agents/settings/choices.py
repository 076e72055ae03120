"""Settings that are choices, and their conversion from text; the code for each choice is elsewhere, since it needs torch."""

from __future__ import annotations

import enum
from typing import Literal, TypeVar

from verifiers import unknown_name

ChoiceT = TypeVar("ChoiceT", bound=enum.StrEnum)

Precision = Literal["auto", "float32", "bfloat16"]
SaveDtype = Literal["source", "float32", "bfloat16", "float16"]
Checkpointing = Literal["auto", "on", "off"]
Gathering = Literal["auto", "trajectories", "rows"]
"""The data of each episode that all ranks get. With `trajectories`, all ranks get the whole trajectory, and model passes are
divided evenly. With `rows`, they get only the numbers of the episode's row (rewards, lengths, verdict), and each rank processes
the episodes that it played. `auto` gathers rows if there are more than `agents.distributed.ranks.MOST_GATHERING` ranks and the
agent allows it."""


class Aggregation(enum.StrEnum):
    """Aggregation of token losses to the loss of an optimiser step with N tokens in the loss mask."""

    TOKEN_MEAN = "token-mean"
    """Sum over all tokens, divided by N (DAPO). Every token has the same weight."""
    SEQUENCE_MEAN_TOKEN_MEAN = "sequence-mean-token-mean"
    """Mean over completions of the mean over their tokens (GRPO). Every completion has the same weight."""
    SEQUENCE_MEAN_TOKEN_SUM = "sequence-mean-token-sum"
    """Mean over completions of the sum over their tokens. This gives the policy gradient of the expected return."""
    SEQUENCE_MEAN_TOKEN_SUM_NORM = "sequence-mean-token-sum-norm"
    """Mean over completions of the sum over their tokens, divided by a constant length (Dr. GRPO). The gradient is unbiased, on
    the scale of a mean."""


class Truncation(enum.StrEnum):
    """How a truncated episode counts. The episode keeps the environment's reward unless stated otherwise."""

    SCORE = "score"
    """The episode's own score. The budget is part of the task, so the state after the budget has value 0."""
    MASK = "mask"
    """The tokens of the episode are excluded from the loss. The score still counts in baselines, and the episode still counts
    in the number of completions (overlong filtering; Yu et al. 2025, arXiv:2503.14476, section 3.4)."""
    BOOTSTRAP = "bootstrap"
    """The episode's score plus the critic's value of the last state, for budgets that are not part of the task (Pardo et al.
    2018, arXiv:1712.00378). This rule needs a critic."""
    FIXED_REWARD = "fixed-reward"
    """`truncation_reward` replaces all rewards of the episode."""
    SOFT_OVERLONG = "soft-overlong"
    """Every completion, truncated or not, gets a length penalty. The penalty grows to 1 over the last `overlong_margin` tokens
    before `max_tokens` (Yu et al. 2025, equation 13)."""


class KLEstimator(enum.StrEnum):
    """Estimator of a token's divergence, with d = log pi - log ref.

    The token was sampled from pi or, for `K3_RATIO`, from pi_old. Schulman, "Approximating KL divergence", 2020. The *values*
    of k1 and k3 are unbiased, but their gradients differ. The table shows the expected gradient over a token, given the earlier
    tokens:

    | estimator | as a constant in the reward | as a term of the loss |
    |---|---|---|
    | k1 | grad KL(pi, ref) | 0 (no effect) |
    | k2 | biased | grad KL(pi, ref) |
    | k3 | biased | grad KL(ref, pi), the reverse divergence, which covers the reference's modes |
    | k3-ratio | biased | grad KL(pi, ref), also off-policy |

    A token also affects the states that follow. A term of the loss ignores this effect; a reward that is summed over later
    tokens includes the effect. So only k1 in the reward minimises the divergence of whole completions without bias.
    """

    K1 = "k1"
    """The estimate is d, which is negative for some tokens."""
    K2 = "k2"
    """The estimate is d^2 / 2. Its value is biased, but not much if the policies are close."""
    K3 = "k3"
    """The estimate is exp(-d) + d - 1, which is never negative; GRPO's term of the loss (Shao et al. 2024, arXiv:2402.03300,
    equation 4)."""
    K3_RATIO = "k3-ratio"
    """The estimate is k3 times pi / pi_old, with gradient through the ratio (DeepSeek-V3.2, arXiv:2512.02556)."""


class Correction(enum.StrEnum):
    """How ratios become weights in [floor, cap]. In the following, d_t = log pi_old - log behaviour, and w_t = exp(d_t)."""

    NONE = "none"
    """Weight 1 for every token, as if samples were on-policy."""
    TOKEN_TRUNCATE = "token-truncate"
    """w_t, clamped to the bounds. This is truncated importance sampling (Ionides 2008; for language models Yao et al. 2025)."""
    TOKEN_MASK = "token-mask"
    """w_t if it is within the bounds, else 0. This is masked importance sampling (IcePop, arXiv:2510.18855)."""
    SEQUENCE_TRUNCATE = "sequence-truncate"
    """exp(sum_t d_t) for every token of the completion, clamped to the bounds."""
    SEQUENCE_MASK = "sequence-mask"
    """exp(sum_t d_t) for every token of the completion if it is within the bounds, else 0. The sum grows with the length, so
    that rounding noise alone takes long completions out of the bounds."""
    GEOMETRIC_MASK = "geometric-mask"
    """w_t, clamped to the bounds, if the completion's exp(mean_t d_t) is within the bounds, else 0. This filter does not depend
    on the length."""


class PreferenceLoss(enum.StrEnum):
    """The loss of direct preference optimisation, as a function of a pair's margin h."""

    SIGMOID = "sigmoid"
    """-log sigmoid(beta h), as in DPO (Rafailov et al. 2023, arXiv:2305.18290, equation 7)."""
    IPO = "ipo"
    """(h - 1 / (2 beta))^2, as in IPO (Azar et al. 2023, arXiv:2310.12036, equation 17). Its optimum stays finite if
    preferences are certain."""


def choice(name: str, value: str, choices: type[ChoiceT]) -> ChoiceT:
    """Convert text to a member of an enum."""
    if value not in list(choices):
        raise unknown_name(name, str(value), [str(member) for member in choices])
    return choices(value)
