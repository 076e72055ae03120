"""MaxRL: Maximum Likelihood Reinforcement Learning (Tajwar et al. 2026, arXiv:2602.02710).

Reinforcement learning maximises the chance p of a right completion, supervised learning log p. The gradient of log p is that
of p divided by p; estimated from a group of G, (R_i - mean) / mean is its expansion up to order G. Problems that are seldom
solved weigh the more.
"""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from agents.advantages import maximum_likelihood
from agents.batch import Batch
from agents.grpo import GRPO, GRPOConfig
from agents.losses import Aggregation


@dataclass(frozen=True)
class MaxRLConfig(GRPOConfig):
    """Settings of MaxRL; scores may not be negative, and its advantages have no use for `scale`."""

    aggregation: Aggregation = Aggregation.SEQUENCE_MEAN_TOKEN_SUM


class MaxRL(GRPO):
    """GRPO whose advantages climb the likelihood of right completions."""

    name = "maxrl"
    config: MaxRLConfig

    def relative_scores(self, batch: Batch) -> Tensor:
        """(R - mean) / mean within the group."""
        return maximum_likelihood(batch.scores, batch.groups, batch.valid)
