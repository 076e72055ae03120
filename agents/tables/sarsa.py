"""SARSA (Rummery and Niranjan 1994; Sutton & Barto 2018, sections 6.4 and 7.2).

After action a in s earned r and led to s', where the policy chose a',

    Q(s, a) ← Q(s, a) + α (r + γ Q(s', a') - Q(s, a))               (6.7)

which learns the values of the acting policy, exploration included. With `steps_ahead` = n, the target has the next n rewards
before a value (7.4),

    G_t = r_1 + γ r_2 + ... + γ^(n-1) r_n + γ^n Q(s_(t+n), a_(t+n))

and with None, all rewards of the episode, which is Monte Carlo; see `monte_carlo.py`.

A terminal state has value 0. An episode that reached its time limit did not end, so its last targets include the value Σ_b
π(b|s) Q(s, b) of the last state, the mean over the next action.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import gymnasium

from agents.tables.action_values import ActionValueAgent, ActionValueConfig
from agents.tables.agent import Transition
from verifiers import AtLeast


@dataclass(frozen=True)
class SARSAConfig(ActionValueConfig):
    """Settings of SARSA."""

    steps_ahead: Annotated[int | None, AtLeast(1)] = 1
    """Number n of rewards in a target before the value of a later action; None for all rewards of the episode."""


class SARSA(ActionValueAgent):
    """Learns the action values of the acting policy, from the next n rewards and the value of the next action."""

    name = "sarsa"
    config: SARSAConfig

    def __init__(self, env: gymnasium.Env[Any, Any], config: SARSAConfig | None = None) -> None:
        super().__init__(env, config)
        self._waiting: list[Transition] = []  # the last n transitions, with incomplete targets

    def begin_episode(self, state: int) -> None:
        """Forget the rest of an interrupted episode."""
        self._waiting.clear()

    def observe(self, transition: Transition) -> None:
        """Complete the target of the action n steps ago with this action's value; this action was chosen before the update."""
        if len(self._waiting) == self.config.steps_ahead:
            self._learn(float(self.values[transition.state, transition.action]))
        self._waiting.append(transition)

    def end_episode(self, transitions: Sequence[Transition]) -> None:
        """Complete the targets that reach the end of the episode."""
        last = transitions[-1]
        value = 0.0 if last.terminated else self.expected_value(last.next_state, self.epsilon())
        while self._waiting:
            self._learn(value)

    def _learn(self, value: float) -> None:
        """Learn from the oldest transition, given the value of the state after the waiting transitions."""
        target = discounted(self._waiting, self.config.gamma, value)
        oldest = self._waiting.pop(0)
        self.move_towards(oldest.state, oldest.action, target)


def discounted(transitions: Sequence[Transition], gamma: float, value: float) -> float:
    """The return of consecutive transitions before a state of value v: r_1 + γ r_2 + ... + γ^n v."""
    for transition in reversed(transitions):
        value = transition.reward + gamma * value
    return value
