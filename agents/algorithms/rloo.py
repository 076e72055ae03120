"""RLOO: REINFORCE Leave-One-Out (Kool et al. 2019; Ahmadian et al. 2024, arXiv:2402.14740, section 3.2).

For each problem a group of completions is sampled. The baseline of a completion is the mean score of the group's other
completions. This mean does not depend on the completion, so the gradient of the expected score stays unbiased. A completion is
one action: its log-probability is the sum over its tokens.

Departure from the paper: no KL term unless `kl_coefficient` is set; the term is then subtracted from the reward, as in the
paper.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from agents.advantages import leave_one_out
from agents.algorithms.group_relative import Credit, GroupAgent, GroupConfig, credited
from agents.batch import Batch
from agents.kl import KLEstimator
from agents.losses import Aggregation, policy_gradient
from agents.settings.config_checks import NO_RATIO, require_one_step

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True)
class RLOOConfig(GroupConfig):
    """Settings of RLOO."""

    aggregation: Aggregation = Aggregation.SEQUENCE_MEAN_TOKEN_SUM
    kl_placement: Literal["loss", "reward"] = "reward"
    kl_estimator: KLEstimator = KLEstimator.K1
    credit: Credit = "completion"
    """Credit of a token, relative to the group: `completion` is the score of the whole completion, and `turn` is the rewards
    from the token's turn onwards, for environments of several turns with rewards between turns."""

    def __post_init__(self) -> None:
        super().__post_init__()
        require_one_step(self, NO_RATIO)


class RLOO(GroupAgent):
    """REINFORCE Leave-One-Out."""

    name = "rloo"
    config: RLOOConfig

    def advantages(self, batch: Batch) -> Tensor:
        """The completion's score, or the rewards from the turn onwards, minus the mean of the group's other completions."""
        return credited(batch, self.config.credit, leave_one_out)

    def loss(self, batch: Batch, logprobs: Tensor, advantages: Tensor) -> Tensor:
        """-A log pi(y_t), summed over the completion."""
        return policy_gradient(logprobs, advantages)
