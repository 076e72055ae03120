"""Policy gradient for pass@k: the expected best score of k completions.

Among G completions of a problem, a completion contributes the mean best score over the subsets of size k that contain the
completion, minus the same mean over the other subsets of size k. This leave-one-out form gives an unbiased gradient (see
`agents.advantages.pass_at_k`). With k = 1, the method is RLOO. Problems that are solved most of the time get a small weight,
since one success among k is enough.

The paper is Walder and Karkhanis 2025, arXiv:2505.15201. Departure from the paper: the loss is PPO's clipped surrogate, which
has the same gradient on-policy.
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
