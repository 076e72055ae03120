"""Policy gradient for pass@k: the expected best score of k completions.

With G completions of a problem, the contribution of a completion is the mean best score over the subsets of size k that
contain it, minus the mean over the subsets that do not: an unbiased estimate in leave-one-out form (see
`agents.advantages.pass_at_k`). With k = 1 it is RLOO. Problems that are solved most of the time get a small weight, since one
success among k is enough.

The paper is Walder and Karkhanis 2025, arXiv:2505.15201. Departure from it: the loss is PPO's clipped surrogate, which has
the same gradient on-policy.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from agents.advantages import pass_at_k
from agents.algorithms.group_relative import ClippedGroupAgent, ClippedGroupConfig, at_every_token
from agents.batch import Batch
from agents.losses import Aggregation
from verifiers import AtLeast, InvalidArgumentError

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True)
class PassAtKConfig(ClippedGroupConfig):
    """Settings of the pass@k policy gradient."""

    aggregation: Aggregation = Aggregation.SEQUENCE_MEAN_TOKEN_SUM
    k: Annotated[int, AtLeast(1)] = 4
    """Number k of completions whose best score counts, at most `group_size` - 1."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.k >= self.group_size:
            raise InvalidArgumentError(
                f"k must be less than group_size, got k={self.k} and group_size={self.group_size}"
            )


class PassAtK(ClippedGroupAgent):
    """Policy gradient of the expected best score of k completions."""

    name = "pass-at-k"
    config: PassAtKConfig

    def advantages(self, batch: Batch) -> Tensor:
        """The contribution of each completion to the best of k."""
        return at_every_token(pass_at_k(batch.scores, batch.groups, batch.valid, self.config.k), batch)
