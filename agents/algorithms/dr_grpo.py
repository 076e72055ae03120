"""Dr. GRPO: GRPO done right (Liu et al. 2025, "Understanding R1-Zero-like training", arXiv:2503.20783, section 3.2).

Two divisions bias the gradient of GRPO. Division by the completion's length favours long wrong answers, and division by the
group's standard deviation weights problems by their difficulty. Dr. GRPO does neither: scores are centred but not scaled, and
token losses are summed and divided by a constant length. Since the mean of the group includes the completion's own score, the
gradient is scaled by (group_size - 1) / group_size.

Departures from the paper: its equation only sums over tokens. The division by a constant, `max_tokens`, follows the paper's
listing, and only changes the gradient's scale; the constant is the budget of a completion. Groups of equal scores get exactly
0. As in GRPO here, there is no KL term unless `kl_coefficient` is set; the paper has no KL term.
"""

from __future__ import annotations

from dataclasses import dataclass

from agents.algorithms.group_relative import Scale
from agents.algorithms.grpo import GRPO, GRPOConfig
from agents.losses import Aggregation


@dataclass(frozen=True)
class DrGRPOConfig(GRPOConfig):
    """Settings of Dr. GRPO; `max_tokens` must be set."""

    scale: Scale = "none"
    aggregation: Aggregation = Aggregation.SEQUENCE_MEAN_TOKEN_SUM_NORM


class DrGRPO(GRPO):
    """GRPO without the two divisions that bias its gradient."""

    name = "dr-grpo"
    config: DrGRPOConfig
