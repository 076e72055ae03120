"""LinUCB with disjoint models (Li, Chu, Langford and Schapire 2010, arXiv:1003.0146, algorithm 1).

The mean reward of action a in a context with features x is assumed to be linear, θ_a · x. Ridge regression on the rewards of
the action estimates θ_a. The choice is the action whose mean could still be the highest:

    A_a = λ I + Σ x xᵀ,   b_a = Σ r x   (sums over the choices of a),   θ_a = A_a⁻¹ b_a

    A_t = argmax_a  θ_a · x + α sqrt(xᵀ A_a⁻¹ x)

The features of a state come from the environment (`features`, f64[s d], as in `rlvr/ContextualBanditState-v0`). In an
environment without features, each state has a separate feature, so that contexts share nothing.

The paper has λ = 1. The paper breaks ties at random; here the first action is chosen.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

import gymnasium
import numpy as np
from numpy.typing import NDArray

from agents.tables.agent import TabularConfig, Transition
from agents.tables.bandits import BanditAgent
from verifiers import Above, AtLeast, InvalidArgumentError


@dataclass(frozen=True)
class LinUCBConfig(TabularConfig):
    """Settings of LinUCB."""

    alpha: Annotated[float, AtLeast(0)] = 1.0
    """Factor α of the confidence width."""
    ridge: Annotated[float, Above(0)] = 1.0
    """Weight λ of the penalty on the size of the coefficients."""


class LinUCB(BanditAgent):
    """Chooses the action with the highest upper confidence bound of a linear model."""

    name = "linucb"
    config: LinUCBConfig

    def __init__(self, env: gymnasium.Env[Any, Any], config: LinUCBConfig | None = None) -> None:
        super().__init__(env, config)
        self.features = _features(env, self.num_states)
        """x of each state, f64[s d]."""
        width = self.features.shape[1]
        diagonal: NDArray[np.float64] = np.eye(width) * self.config.ridge
        self.gram: NDArray[np.float64] = np.stack([diagonal] * self.num_actions)
        """A of each action, f64[a d d]."""
        self.moments: NDArray[np.float64] = np.zeros((self.num_actions, width))
        """b of each action, f64[a d]."""

    def coefficients(self) -> NDArray[np.float64]:
        """θ of each action, f64[a d]."""
        return np.asarray(np.linalg.solve(self.gram, self.moments[..., None])[..., 0], dtype=np.float64)

    def bounds(self, state: int) -> NDArray[np.float64]:
        """The upper confidence bounds f64[a]."""
        x = self.features[state]
        widths = np.sqrt(np.linalg.solve(self.gram, np.tile(x, (self.num_actions, 1))[..., None])[..., 0] @ x)
        bounds: NDArray[np.float64] = self.coefficients() @ x + self.config.alpha * widths
        return bounds

    def choose(self, state: int, rng: np.random.Generator) -> int:
        """The first action with the highest bound; nothing is random."""
        return int(self.bounds(state).argmax())

    def acting_values(self, state: int) -> NDArray[np.float64]:
        """The estimated means f64[a]."""
        means: NDArray[np.float64] = self.coefficients() @ self.features[state]
        return means

    def observe(self, transition: Transition) -> None:
        """Add the choice to the sums of the chosen action."""
        super().observe(transition)
        x = self.features[transition.state]
        self.gram[transition.action] += np.outer(x, x)
        self.moments[transition.action] += transition.reward * x

    def tables(self) -> dict[str, NDArray[Any]]:
        """Counts, means, and the sums of the regression."""
        return {**super().tables(), "gram": self.gram, "moments": self.moments}


def _features(env: gymnasium.Env[Any, Any], states: int) -> NDArray[np.float64]:
    """The features f64[s d] of the states: the environment's features, or a separate feature for each state."""
    given = getattr(env.unwrapped, "features", None)
    if given is None:
        return np.eye(states)
    features = np.asarray(given, dtype=np.float64)
    if features.ndim != 2 or len(features) != states or not np.isfinite(features).all():
        raise InvalidArgumentError(
            f"the features of an environment must be finite numbers of shape ({states}, d), one row for each state, got shape "
            f"{features.shape}"
        )
    return features
