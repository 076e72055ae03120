"""Dr. GRPO: GRPO done right (Liu et al. 2025, "Understanding R1-Zero-like training", arXiv:2503.20783, section 3.2).

Two divisions bias the gradient of GRPO: by the completion's length, which favours long wrong answers, and by the group's
standard deviation, which weights problems by their difficulty. Dr. GRPO does neither: scores are only centred, and token
losses are summed and divided by a constant length. The mean of the group includes the completion's own score, which scales the
gradient by (group_size - 1) / group_size.

Departures from the paper: its equation only sums over tokens; the constant `max_tokens`, the budget of a completion, follows
its listing and only changes the gradient's scale. Groups whose scores are all equal get exactly 0. As in GRPO here, there is
no KL term unless `kl_coefficient` is set; the paper has none.
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
    """GRPO without the biases of its two divisions."""

    name = "dr-grpo"
    config: DrGRPOConfig
