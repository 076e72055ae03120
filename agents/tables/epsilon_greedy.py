"""ε-greedy action values (Sutton & Barto 2018, sections 2.2 to 2.4).

The mean of the rewards that each action has earned estimates its value. With probability ε_t an action is drawn uniformly;
otherwise the action with the highest mean is chosen:

    A_t = argmax_a Q_t(a)  with probability 1 - ε_t,  else uniform over the k actions

    Q_{n+1} = Q_n + (R_n - Q_n) / n

With a constant ε the regret grows by at least ε/k Σ_a Δ_a with each choice, where Δ_a is the gap between the best mean and the
mean of action a. With `decay` = c, ε_t = min(ε, c / t): for c ≥ 5k/d² with d at most the smallest gap, the regret is
logarithmic (Auer, Cesa-Bianchi and Fischer 2002, "Finite-time analysis of the multiarmed bandit problem", theorem 3, with ε =
1).

Ties are broken at random, as in the book's pseudocode.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np

from agents.tables.agent import TabularConfig
from agents.tables.bandits import BanditAgent
from verifiers import Above, Between


@dataclass(frozen=True)
class EpsilonGreedyConfig(TabularConfig):
    """Settings of ε-greedy action values."""

    epsilon: Annotated[float, Between(0, 1)] = 0.1
    """Probability of exploring."""
    decay: Annotated[float | None, Above(0, infinite=True)] = None
    """Number c: the probability of exploring at the t-th choice falls to c / t. None keeps the probability constant."""


class EpsilonGreedy(BanditAgent):
    """Chooses the action with the highest mean reward or, with probability ε, any action."""

    name = "epsilon-greedy"
    config: EpsilonGreedyConfig

    def choose(self, state: int, rng: np.random.Generator) -> int:
        """Explore with probability ε, otherwise choose one of the best actions."""
        if rng.random() < self.epsilon(state):
            return int(rng.integers(self.num_actions))
        means = self.means[state]
        return int(rng.choice(np.flatnonzero(means == means.max())))

    def epsilon(self, state: int) -> float:
        """The probability of exploring at the next choice in a state."""
        if self.config.decay is None:
            return self.config.epsilon
        return min(self.config.epsilon, self.config.decay / (int(self.counts[state].sum()) + 1))
