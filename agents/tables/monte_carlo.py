"""Monte Carlo control (Sutton & Barto 2018, sections 5.1 and 5.4).

After an episode, the value of each of its actions moves towards the return that followed,

    G_t = r_(t+1) + γ G_(t+1),    Q(s_t, a_t) ← Q(s_t, a_t) + α (G_t - Q(s_t, a_t))

The method does not bootstrap, so a wrong value affects no other value, and it learns only when an episode is over. With
`step_size=1` and `step_decay=1` values are the means of all returns, as in the book; a constant step size forgets the returns
of earlier policies.

With `first_visit` an action counts once in an episode, with the return from its first time on, which makes returns of different
episodes independent; by default every time counts.

An episode that reached its time limit did not end: its return goes on with the value Σ_b π(b|s) Q(s, b) of the state in which
it was cut off, the only place where this method bootstraps.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from agents.tables.action_values import ActionValueAgent, ActionValueConfig
from agents.tables.agent import Transition


@dataclass(frozen=True)
class MonteCarloConfig(ActionValueConfig):
    """Settings of Monte Carlo control."""

    first_visit: bool = False
    """Whether an action in a state counts only the first time in an episode."""


class MonteCarlo(ActionValueAgent):
    """Action values of the policy that acts, learned from the returns of whole episodes."""

    name = "monte-carlo"
    config: MonteCarloConfig

    def end_episode(self, transitions: Sequence[Transition]) -> None:
        """Move each action's value towards the return that followed it, in the order in which the actions were taken."""
        last = transitions[-1]
        value = 0.0 if last.terminated else self.expected_value(last.next_state, self.epsilon())
        returns = []
        for transition in reversed(transitions):
            value = transition.reward + self.config.gamma * value
            returns.append(value)
        seen: set[tuple[int, int]] = set()
        for transition, target in zip(transitions, reversed(returns), strict=True):
            pair = (transition.state, transition.action)
            if not (self.config.first_visit and pair in seen):
                self.move_towards(*pair, target)
            seen.add(pair)
