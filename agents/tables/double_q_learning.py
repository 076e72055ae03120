"""Double Q-learning (van Hasselt 2010; Sutton & Barto 2018, section 6.7).

The maximum of noisy estimates is on average higher than the largest of the true values: E max_b Q(b) ≥ max_b E Q(b). With two
tables that learn from different transitions, one table can choose the best action, and the other can evaluate this action:

    Q1(s, a) ← Q1(s, a) + α (r + γ Q2(s', argmax_b Q1(s', b)) - Q1(s, a))    (6.10)

for half of the transitions, and the same with the tables exchanged for the other half. The estimate is then never too high on
average, but may be too low. Actions are chosen by the mean of both tables.

A terminal state has value 0. An episode that reached its time limit did not end, so its last target includes the value of the
last state.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import gymnasium
import numpy as np
from numpy.typing import NDArray

from agents.seeding import mix
from agents.tables.action_values import ActionValueAgent, ActionValueConfig
from agents.tables.agent import Transition


@dataclass(frozen=True)
class DoubleQLearningConfig(ActionValueConfig):
    """Settings of double Q-learning."""


class DoubleQLearning(ActionValueAgent):
    """Learns two tables of action values; one chooses the action, and the other evaluates it."""

    name = "double-q-learning"
    config: DoubleQLearningConfig

    def __init__(self, env: gymnasium.Env[Any, Any], config: DoubleQLearningConfig | None = None) -> None:
        super().__init__(env, config)
        self.other_values: NDArray[np.float64] = self.values.copy()
        """Q2, f64[s a]; `values` is Q1."""

    def acting_values(self, state: int) -> NDArray[np.float64]:
        """The mean of both tables."""
        row: NDArray[np.float64] = (self.values[state] + self.other_values[state]) / 2
        return row

    def observe(self, transition: Transition) -> None:
        """Update one of the two tables, chosen by a coin that depends only on the seed and the number of updates."""
        origin = mix(np.array([self.config.seed % 2**64], dtype=np.uint64))
        coin = int(mix(origin ^ np.uint64(self.counts.sum()))[0]) >> 63
        learning, judging = (self.values, self.other_values) if coin else (self.other_values, self.values)
        self.update_table(learning, transition.state, transition.action, self.target(transition, learning, judging))

    def target(self, transition: Transition, learning: NDArray[np.float64], judging: NDArray[np.float64]) -> float:
        """R + γ Q2(s', argmax_b Q1(s', b)), without the second term if the episode terminated."""
        if transition.terminated:
            return transition.reward
        best = int(learning[transition.next_state].argmax())
        return transition.reward + self.config.gamma * float(judging[transition.next_state, best])

    def tables(self) -> dict[str, NDArray[Any]]:
        """Both tables and the counts."""
        return {**super().tables(), "other_values": self.other_values}
