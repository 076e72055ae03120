"""REINFORCE (Williams 1992, "Simple statistical gradient-following algorithms for connectionist reinforcement learning").

The gradient of the expected return is E[sum_t (G_t - b) grad log pi(y_t)], estimated from on-policy episodes. G_t is the
discounted reward from token t on, and b is a baseline that does not depend on the episode's own tokens from t on. The paper
credits every decision with the whole return G_0, as `credit="whole"` does; the additional earlier rewards don't depend on later
tokens, and only add variance. The baseline is a constant, the mean score of the batch, the moving average of earlier batches
(the paper's reinforcement comparison), or a learned value of the state (Sutton et al. 2000).

With a discount below 1 the factor gamma^t of that gradient is omitted, as is usual.

The batch mean and the moving average are means of scores. A score is the undiscounted sum of an episode's rewards, one number
for all tokens. With a discount below 1, or with rewards before the end, returns from later tokens are different quantities.
These baselines then stay unbiased (the batch mean up to its factor), but reduce the variance less. `baseline="value"` depends
on the state.

Departures from the paper: Adam in place of plain gradient ascent, and a batch of episodes for each update. The batch mean
includes the episode itself, which scales the gradient by (n - 1) / n but does not bias its direction.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from agents.advantages import batch_mean_baseline, moving_average, returns_to_go, whole_returns
from agents.algorithms.value_based import VALUE_CONTROL
from agents.batch import Batch
from agents.learn.agent import Agent
from agents.losses import Aggregation, policy_gradient
from agents.policies.trainable import TrainablePolicy
from agents.settings.agent import AgentConfig
from agents.settings.config_checks import NO_RATIO, require_defaults, require_one_step
from agents.settings.learner import CriticConfig
from agents.types import Sampler
from verifiers import Between, InvalidArgumentError

if TYPE_CHECKING:
    from torch import Tensor


Baseline = Literal["none", "constant", "batch-mean", "moving-average", "value"]


@dataclass(frozen=True)
class ReinforceConfig(AgentConfig):
    """Settings of REINFORCE."""

    problems_per_step: int = 128
    group_size: int = 1
    aggregation: Aggregation = Aggregation.SEQUENCE_MEAN_TOKEN_SUM
    gamma: Annotated[float, Between(0, 1)] = 1.0
    """Discount factor from one token to the next."""
    baseline: Baseline = "batch-mean"
    """The baseline to subtract from each return: none, a constant, the mean of the batch, a moving average over steps, or a
    critic's value."""
    constant: float = 0.0
    """Value of the constant baseline, and start of the moving average."""
    decay: Annotated[float, Between(0, 1)] = 0.9
    """Weight of the old moving average in each step."""

    credit: Literal["reward-to-go", "whole"] = "reward-to-go"
    """The return that weights the log-probability of a token: `reward-to-go` is the return from this token on, and `whole` is
    the return of the whole episode. Without a discount, both have the same expected gradient, but `whole` has more variance."""
    control: ClassVar[Mapping[str, Any]] = {**VALUE_CONTROL, "baseline": "value"}

    def __post_init__(self) -> None:
        if self.baseline == "value" and self.critic is None:
            object.__setattr__(self, "critic", CriticConfig())
        if self.baseline != "value" and self.critic is not None:
            raise InvalidArgumentError(
                f"baseline {self.baseline!r} does not use a critic: leave critic out, or set baseline='value'"
            )
        super().__post_init__()
        require_one_step(self, NO_RATIO)
        reason = f"baseline {self.baseline!r} does not depend on it"
        if self.baseline not in ("constant", "moving-average"):
            require_defaults(self, ("constant",), reason)
        if self.baseline != "moving-average":
            require_defaults(self, ("decay",), reason)


class Reinforce(Agent):
    """REINFORCE with reward-to-go and a baseline."""

    name = "reinforce"
    advantages_from_rewards = True
    config: ReinforceConfig

    def __init__(self, policy: TrainablePolicy, config: ReinforceConfig, *, sampler: Sampler | None = None) -> None:
        super().__init__(policy, config, sampler=sampler)
        self.average = config.constant
        """The moving average of the scores of earlier batches."""

    def advantages(self, batch: Batch) -> Tensor:
        """The return from each token on (with `credit="whole"`, the episode's return) minus the baseline."""
        returns = self._returns(batch)
        if self.config.credit == "whole":
            returns = whole_returns(returns, batch.loss_mask)
        return returns - self._baseline(batch)

    def _returns(self, batch: Batch) -> Tensor:
        return returns_to_go(batch.rewards, batch.loss_mask, self.config.gamma, batch.bootstrap)

    def _baseline(self, batch: Batch) -> Tensor | float:
        match self.config.baseline:
            case "none":
                return 0.0
            case "constant":
                return self.config.constant
            case "batch-mean":
                return batch_mean_baseline(batch.scores, batch.valid)
            case "moving-average":
                return self.average
            case "value":
                assert batch.values is not None
                return batch.values

    def value_targets(self, batch: Batch) -> Tensor | None:
        """The Monte Carlo return from each token on; with `Truncation.BOOTSTRAP`, plus the value of the last state."""
        return None if self.config.critic is None else self._returns(batch)

    def loss(self, batch: Batch, logprobs: Tensor, advantages: Tensor) -> Tensor:
        """-A_t log pi(y_t)."""
        return policy_gradient(logprobs, advantages)

    def after_update(self, batch: Batch) -> None:
        """Update the moving average.

        The batch has already used the old average as its baseline, which must not depend on the batch.
        """
        self.average = moving_average(self.average, batch.scores, batch.valid, self.config.decay)

    def own_state(self) -> dict[str, Any]:
        """The moving average."""
        return {"average": self.average}

    def load_own_state(self, state: dict[str, Any]) -> None:
        """Restore the state returned by `own_state`."""
        self.average = state["average"]
