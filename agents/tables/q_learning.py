"""Q-learning (Watkins 1989; Watkins and Dayan 1992; Sutton & Barto 2018, section 6.5).

After each transition from s by a with reward r to s',

    Q(s, a) ← Q(s, a) + α (r + γ max_b Q(s', b) - Q(s, a))          (6.8)

The target is a sample of the Bellman optimality equation. So Q approaches the values of the best policy, whatever policy chose
the actions, under two conditions: every action is tried in every state again and again, and the step sizes meet the conditions
of Robbins and Monro (`step_decay` above 0.5). The maximum of noisy estimates is too high on average; see
`double_q_learning.py`.

A terminal state has value 0. An episode that reached its time limit did not end, so its last target includes the value of the
last state.
"""

from __future__ import annotations

from dataclasses import dataclass

from agents.tables.action_values import ActionValueAgent, ActionValueConfig
from agents.tables.agent import Transition


@dataclass(frozen=True)
class QLearningConfig(ActionValueConfig):
    """Settings of Q-learning."""


class QLearning(ActionValueAgent):
    """Learns the action values of the best policy from the actions of any policy."""

    name = "q-learning"
    config: QLearningConfig

    def observe(self, transition: Transition) -> None:
        """Move the action's value towards its target."""
        self.move_towards(transition.state, transition.action, self.target(transition))

    def target(self, transition: Transition) -> float:
        """R + γ max_b Q(s', b), without the second term if the episode terminated."""
        if transition.terminated:
            return transition.reward
        return transition.reward + self.config.gamma * float(self.values[transition.next_state].max())
