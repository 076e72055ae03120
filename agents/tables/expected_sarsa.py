"""Expected SARSA (van Seijen et al. 2009; Sutton & Barto 2018, section 6.6).

After each transition from s by a with reward r to s',

    Q(s, a) ← Q(s, a) + α (r + γ Σ_b π(b|s') Q(s', b) - Q(s, a))    (6.9)

In place of the mean over all actions, SARSA uses the value of one action drawn from π, which has the same expectation and more
variance. The policy π is the ε-greedy policy that chooses the actions or, with `target_epsilon`, an ε-greedy policy with
another ε. With `target_epsilon=0`, π is the greedy policy and the sum is the maximum, which makes the method Q-learning.

A terminal state has value 0. An episode that reached its time limit did not end, so its last target includes the value of the
last state.
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
    """Probability of exploring of the policy whose values are learned. With None, this policy is the policy that chooses the
    actions."""


class ExpectedSARSA(ActionValueAgent):
    """Learns the action values of an ε-greedy policy, from the mean over the policy's next actions."""

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
