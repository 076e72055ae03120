"""The gradient bandit: stochastic gradient ascent on a softmax over actions (Sutton & Barto 2018, section 2.8).

Each action has a preference H(a), and is chosen with probability

    π(a) = exp H(a) / Σ_b exp H(b)                                  (2.11)

After action A_t earned R_t, with the mean B_t of the rewards before t as the baseline,

    H(a) ← H(a) + α (R_t - B_t) (1[a = A_t] - π(a))  for all a      (2.12)

In expectation over A_t and R_t, the change is α times the gradient of the expected reward Σ_a π(a) q(a), for any baseline that
does not depend on A_t. This is REINFORCE (Williams 1992) in its smallest case, with one step.

As in the book, the baseline leaves out the current reward. At the first choice the baseline is the current reward, so this
choice changes nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

import gymnasium
import numpy as np
from numpy.typing import NDArray

import rlvr_envs
from agents.tables.agent import TabularConfig, Transition
from agents.tables.bandits import BanditAgent
from verifiers import Above


@dataclass(frozen=True)
class GradientBanditConfig(TabularConfig):
    """Settings of the gradient bandit."""

    step_size: Annotated[float, Above(0)] = 0.1
    """Step size α."""
    baseline: bool = True
    """Whether to subtract the mean of the earlier rewards from each reward."""


class GradientBandit(BanditAgent):
    """Learns a softmax over preferences, which follow the gradient of the expected reward."""

    name = "gradient-bandit"
    config: GradientBanditConfig

    def __init__(self, env: gymnasium.Env[Any, Any], config: GradientBanditConfig | None = None) -> None:
        super().__init__(env, config)
        self.preferences: NDArray[np.float64] = np.zeros((self.num_states, self.num_actions))
        """H, f64[s a]."""

    def choose(self, state: int, rng: np.random.Generator) -> int:
        """Draw an action from the softmax."""
        return int(rng.choice(self.num_actions, p=rlvr_envs.exact.softmax_policy(self.preferences[state])))

    def observe(self, transition: Transition) -> None:
        """Take a step along the estimated gradient (2.12), and then add the reward to the baseline."""
        state, action, reward = transition[:3]
        step = self.config.step_size * (reward - self._baseline(state, reward))
        policy = rlvr_envs.exact.softmax_policy(self.preferences[state])
        super().observe(transition)
        self.preferences[state] -= step * policy
        self.preferences[state, action] += step

    def _baseline(self, state: int, reward: float) -> float:
        """The mean of the rewards before this one; the reward itself if there are no earlier rewards."""
        if not self.config.baseline:
            return 0.0
        counts = self.counts[state]
        return float(counts @ self.means[state] / counts.sum()) if counts.any() else reward

    def acting_values(self, state: int) -> NDArray[np.float64]:
        """The preferences f64[a]."""
        row: NDArray[np.float64] = self.preferences[state]
        return row

    def tables(self) -> dict[str, NDArray[Any]]:
        """Counts, means and preferences."""
        return {**super().tables(), "preferences": self.preferences}
