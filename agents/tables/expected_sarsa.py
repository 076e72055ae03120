"""Expected SARSA (van Seijen et al. 2009; Sutton & Barto 2018, section 6.6).

After each transition from s by a with reward r to s',

    Q(s, a) ← Q(s, a) + α (r + γ Σ_b π(b|s') Q(s', b) - Q(s, a))    (6.9)

SARSA uses the value of one action drawn from π in place of the mean over all, with the same expectation and more variance. π is
the ε-greedy policy that chooses the actions, or with `target_epsilon` another policy to learn about. With `target_epsilon=0`
it is the greedy policy, the sum is the maximum, and this is Q-learning.

A terminal state has value 0. An episode that reached its time limit did not end: its last target has the value of the state
where it was cut off.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from agents.tables.action_values import ActionValueAgent, ActionValueConfig
from agents.tables.agent import Transition
from verifiers import Between


@dataclass(frozen=True)
class ExpectedSARSAConfig(ActionValueConfig):
    """Settings of expected SARSA."""

    target_epsilon: Annotated[float | None, Between(0, 1)] = None
    """Probability of exploring in the policy whose values are learned; None learns the values of the policy that chooses the
    actions."""


class ExpectedSARSA(ActionValueAgent):
    """Action values of an ε-greedy policy, learned by the mean over its next actions."""

    name = "expected-sarsa"
    config: ExpectedSARSAConfig

    def observe(self, transition: Transition) -> None:
        """Move the action's value towards its target."""
        self.move_towards(transition.state, transition.action, self.target(transition))

    def target(self, transition: Transition) -> float:
        """R + γ Σ_b π(b|s') Q(s', b), without the second term if the episode terminated."""
        if transition.terminated:
            return transition.reward
        own = self.config.target_epsilon
        epsilon = self.epsilon() if own is None else own
        return transition.reward + self.config.gamma * self.expected_value(transition.next_state, epsilon)
