"""Policy gradient for pass@k: the expected best score of k completions.

With G completions of a problem, the difference between the mean best score over the subsets of size k that hold a completion
and over those of the others is an unbiased estimate of what it adds (the leave-one-out form; see
`agents.advantages.pass_at_k`). With k = 1 it is RLOO. Problems that are solved most of the time weigh little, since one
success among k is enough.

The paper is Walder and Karkhanis 2025, arXiv:2505.15201. Departure from it: the loss is PPO's clipped surrogate, which
on-policy has the same gradient.
"""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from agents.advantages import pass_at_k
from agents.algorithms.group_relative import ClippedGroupAgent, ClippedGroupConfig
from agents.batch import Batch
from agents.losses import Aggregation
from verifiers import InvalidArgumentError


@dataclass(frozen=True)
class PassAtKConfig(ClippedGroupConfig):
    """Settings of the pass@k policy gradient."""

    aggregation: Aggregation = Aggregation.SEQUENCE_MEAN_TOKEN_SUM
    k: int = 4
    """Number of completions of which the best counts, at most `group_size` - 1."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 1 <= self.k < self.group_size:
            raise InvalidArgumentError(
                f"k must be at least 1 and less than group_size, got k={self.k} and group_size={self.group_size}"
            )


class PassAtK(ClippedGroupAgent):
    """Climbs the expected best score of k completions."""

    name = "pass-at-k"
    config: PassAtKConfig

    def relative_scores(self, batch: Batch) -> Tensor:
        """What each completion adds to the best of k."""
        return pass_at_k(batch.scores, batch.groups, batch.valid, self.config.k)
