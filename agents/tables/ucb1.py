"""UCB1 (Auer, Cesa-Bianchi and Fischer 2002, "Finite-time analysis of the multiarmed bandit problem").

First every action is chosen once. From then on, the choice is the action whose mean reward could still be the highest:

    A_t = argmax_a Q(a) + sqrt(c ln t / n_a)

where Q(a) is the mean reward of action a, n_a the number of its choices, t the number of all choices so far, and c = 2. For
rewards in [0, 1], theorem 1 bounds the expected regret after n choices, with the gaps Δ_a of the actions that are not best:

    E[R_n] ≤ 8 Σ_a ln n / Δ_a + (1 + π²/3) Σ_a Δ_a

For rewards of another range b - a, the proof holds with c = 2 (b - a)²; for normal noise with standard deviation σ, it holds
with c = 8 σ² (a normal variable is σ-sub-Gaussian, and a variable in [0, 1] is 1/2-sub-Gaussian). Equation (2.10) of Sutton &
Barto 2018 has the factor sqrt(c) instead.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import numpy as np
from numpy.typing import NDArray

from agents.tables.agent import TabularConfig
from agents.tables.bandits import BanditAgent
from verifiers import AtLeast


@dataclass(frozen=True)
class UCB1Config(TabularConfig):
    """Settings of UCB1."""

    exploration: Annotated[float, AtLeast(0)] = 2.0
    """Factor c inside the square root of the bonus; 2 for rewards in [0, 1]."""


class UCB1(BanditAgent):
    """Chooses the action with the highest upper confidence bound."""

    name = "ucb1"
    config: UCB1Config

    def choose(self, state: int, rng: np.random.Generator) -> int:
        """The first action with the highest bound; nothing is random."""
        return int(self.bounds(state).argmax())

    def bounds(self, state: int) -> NDArray[np.float64]:
        """The upper confidence bounds f64[a]; infinite for an action that was never chosen."""
        counts = self.counts[state]
        bonus = np.full(self.num_actions, np.inf)
        tried = counts > 0
        bonus[tried] = np.sqrt(self.config.exploration * np.log(max(counts.sum(), 1)) / counts[tried])
        bounds: NDArray[np.float64] = self.means[state] + bonus
        return bounds
