"""Monte Carlo control (Sutton & Barto 2018, sections 5.1 and 5.4).

After an episode, the value of each action in the episode moves towards the return that followed,

    G_t = r_(t+1) + γ G_(t+1),    Q(s_t, a_t) ← Q(s_t, a_t) + α (G_t - Q(s_t, a_t))

The method does not bootstrap, so a wrong value affects no other value. The agent learns only when an episode is over. With
`step_size=1` and `step_decay=1`, values are the means of all returns, as in the book. A constant step size forgets the returns
of earlier policies.

By default, every use of an action in a state counts. With `first_visit`, only the first use in an episode counts, so that the
returns of an action are independent.

An episode that reached its time limit did not end, so its return includes the value Σ_b π(b|s) Q(s, b) of the last state. Only
here does the method bootstrap.
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
    """Whether only the first use of an action in a state counts in each episode."""


class MonteCarlo(ActionValueAgent):
    """Learns the action values of the acting policy from the returns of whole episodes."""

    name = "monte-carlo"
    config: MonteCarloConfig

    def end_episode(self, transitions: Sequence[Transition]) -> None:
        """Move each action's value towards the return that followed, in the order of the actions."""
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
