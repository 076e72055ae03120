"""Dr. GRPO: GRPO done right (Liu et al. 2025, "Understanding R1-Zero-like training", arXiv:2503.20783, section 3.2).

Two divisions of GRPO bias its gradient: by the completion's length, which rewards long wrong answers, and by the group's
standard deviation, which weighs problems by how easy they are. Here neither is made: scores are only centred, and token
losses are summed and divided by a constant length.

Departures from the paper: its equation only sums over tokens; the constant `max_tokens`, the budget of a completion, is that of
its listing, and changes the gradient's scale alone. Groups whose scores are all equal get exactly 0. As in GRPO here, there is
no KL term unless `kl_coefficient` is set; the paper has none.
"""

from __future__ import annotations

from dataclasses import dataclass

from agents.algorithms.group_relative import Scale
from agents.algorithms.grpo import GRPO, GRPOConfig
from agents.losses import Aggregation


@dataclass(frozen=True)
class DrGRPOConfig(GRPOConfig):
    """Settings of Dr. GRPO; `max_tokens` has to be given."""

    scale: Scale = "none"
    aggregation: Aggregation = Aggregation.SEQUENCE_MEAN_TOKEN_SUM_NORM


class DrGRPO(GRPO):
    """GRPO without the biases of its two divisions."""

    name = "dr-grpo"
    config: DrGRPOConfig
