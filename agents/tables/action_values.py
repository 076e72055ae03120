"""Base of agents with a table of action values: ε-greedy choices, step sizes, and the update towards a target."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

import gymnasium
import numpy as np
from numpy.typing import NDArray

from agents.settings.agent import no_effect
from agents.tables.agent import TabularAgent, TabularConfig, Transition
from verifiers import FINITE, AtLeast, Between, InvalidArgumentError


@dataclass(frozen=True)
class ActionValueConfig(TabularConfig):
    """Settings shared by all agents with a table of action values."""

    gamma: Annotated[float, Between(0, 1)] = 0.99
    """Discount factor from one action to the next."""
    step_size: Annotated[float, Between(0, 1, open_low=True)] = 0.1
    """Step size α of the first update of an action in a state."""
    step_decay: Annotated[float, Between(0, 1)] = 0.0
    """Exponent w of the step size: the n-th update of an action in a state has step size α / n^w. 0 keeps the step size
    constant. An exponent above 0.5 and up to 1 meets the conditions of Robbins and Monro (1951), so that action values can
    settle."""
    epsilon: Annotated[float, Between(0, 1)] = 0.1
    """Probability ε of exploring, by an action drawn uniformly."""
    epsilon_end: Annotated[float | None, Between(0, 1)] = None
    """Probability of exploring after `epsilon_steps` training steps; it falls linearly until then. None keeps the probability
    constant."""
    epsilon_steps: Annotated[int, AtLeast(1)] = 1000
    """Number of training steps over which the probability of exploring goes to `epsilon_end`."""
    initial_value: Annotated[float, FINITE] = 0.0
    """Value of every action at the start. A value above all returns makes an agent try every action (Sutton & Barto 2018,
    section 2.6)."""

    def check_effects(self) -> None:
        """Reject exploration settings that have no effect or let exploration grow."""
        if self.epsilon_end is None and self.epsilon_steps != type(self).epsilon_steps:
            raise no_effect("epsilon_steps", self.epsilon_steps, "epsilon stays as it is: set epsilon_end")
        if self.epsilon_end is not None and self.epsilon_end > self.epsilon:
            raise InvalidArgumentError(
                f"epsilon_end must be at most epsilon={self.epsilon}, from which exploration falls, got {self.epsilon_end}"
            )


class ActionValueAgent(TabularAgent):
    """Learns Q(s, a), the expected return of an action, and chooses the best action or, with probability ε, any action.

    A subclass defines `name`, and calls `move_towards` in `observe` or `end_episode` to learn.
    """

    config: ActionValueConfig

    def __init__(self, env: gymnasium.Env[Any, Any], config: ActionValueConfig | None = None) -> None:
        super().__init__(env, config)
        shape = (self.num_states, self.num_actions)
        self.values: NDArray[np.float64] = np.full(shape, float(self.config.initial_value))
        """Q, f64[s a]."""
        self.counts: NDArray[np.int64] = np.zeros(shape, dtype=np.int64)
        """i64[s a], the number of updates of each value."""

    def choose(self, state: int, rng: np.random.Generator) -> int:
        """Explore with probability ε, otherwise choose one of the best actions at random."""
        if rng.random() < self.epsilon():
            return int(rng.integers(self.num_actions))
        values = self.acting_values(state)
        return int(rng.choice(np.flatnonzero(values == values.max())))

    def epsilon(self) -> float:
        """The probability of exploring at this training step."""
        config = self.config
        if config.epsilon_end is None:
            return config.epsilon
        share = min(1.0, self.steps / config.epsilon_steps)
        return (1 - share) * config.epsilon + share * config.epsilon_end

    def acting_values(self, state: int) -> NDArray[np.float64]:
        """The values f64[a] of a state."""
        row: NDArray[np.float64] = self.values[state]
        return row

    def probabilities(self, state: int, epsilon: float) -> NDArray[np.float64]:
        """The action probabilities f64[a] of an ε-greedy policy, which chooses one of the best actions at random."""
        values = self.acting_values(state)
        best = values == values.max()
        probabilities: NDArray[np.float64] = epsilon / self.num_actions + (1 - epsilon) * best / best.sum()
        return probabilities

    def expected_value(self, state: int, epsilon: float) -> float:
        """V(s) = Σ_a π(a|s) Q(s, a) of an ε-greedy policy."""
        return float(self.probabilities(state, epsilon) @ self.acting_values(state))

    def move_towards(self, state: int, action: int, target: float) -> None:
        """Q(s, a) ← Q(s, a) + α (target - Q(s, a))."""
        self.update_table(self.values, state, action, target)

    def update_table(self, table: NDArray[np.float64], state: int, action: int, target: float) -> None:
        """Update one of several tables, and count the update."""
        self.counts[state, action] += 1
        rate = self.config.step_size / float(self.counts[state, action]) ** self.config.step_decay
        table[state, action] += rate * (target - table[state, action])

    def observe(self, transition: Transition) -> None:
        """Do nothing; a subclass may learn from a single transition here."""

    def tables(self) -> dict[str, NDArray[Any]]:
        """The values and the counts."""
        return {"values": self.values, "counts": self.counts}
