"""Thompson sampling (Thompson 1933, "On the likelihood that one unknown probability exceeds another").

The probability of choosing an action is the probability that this action is the best, given the rewards so far. A mean is drawn
from each action's posterior, and the action with the highest draw is chosen.

    rewards 0 and 1:    θ_a ~ Beta(1 + S_a, 1 + n_a - S_a)                       uniform prior; S_a is the number of 1s
    normal rewards:     θ_a ~ N(m_a, v_a),  1/v_a = 1/τ² + n_a/σ²,  m_a = v_a n_a Q(a) / σ²      prior N(0, τ²), noise σ

For rewards 0 and 1, the regret reaches the lower bound that Lai and Robbins 1985 prove for every consistent agent (Kaufmann,
Korda and Munos 2012, arXiv:1205.4217). So the regret grows asymptotically as

    E[R_n] ~ ln n Σ_a Δ_a / KL(q_a, q_*),    KL(p, q) = p ln(p/q) + (1-p) ln((1-p)/(1-q))

where q_a is the mean of action a, q_* the best mean and Δ_a = q_* - q_a.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

import numpy as np

from agents.settings.config_checks import require_defaults
from agents.tables.agent import TabularConfig, Transition
from agents.tables.bandits import BanditAgent
from verifiers import Above, InvalidArgumentError

Rewards = Literal["bernoulli", "normal"]


@dataclass(frozen=True)
class ThompsonConfig(TabularConfig):
    """Settings of Thompson sampling."""

    rewards: Rewards = "bernoulli"
    """Distribution of rewards: 0 and 1 (`bernoulli`), or normal around the mean (`normal`)."""
    noise: Annotated[float, Above(0)] = 1.0
    """Standard deviation σ of normal rewards."""
    prior_std: Annotated[float, Above(0)] = 1.0
    """Standard deviation τ of the prior of the means of normal rewards."""

    def check_effects(self) -> None:
        """Reject settings of normal rewards if rewards are 0 and 1."""
        if self.rewards == "bernoulli":
            require_defaults(self, ("noise", "prior_std"), "Rewards of 0 and 1 have none: set rewards='normal'.")


class Thompson(BanditAgent):
    """Chooses each action with the probability that the action is the best."""

    name = "thompson"
    config: ThompsonConfig

    def choose(self, state: int, rng: np.random.Generator) -> int:
        """Draw a mean for each action, and choose the action with the highest draw."""
        counts, means = self.counts[state], self.means[state]
        if self.config.rewards == "bernoulli":
            successes = counts * means
            return int(rng.beta(1 + successes, 1 + counts - successes).argmax())
        variance = 1 / (1 / self.config.prior_std**2 + counts / self.config.noise**2)
        return int(rng.normal(variance * counts * means / self.config.noise**2, np.sqrt(variance)).argmax())

    def observe(self, transition: Transition) -> None:
        """Update the count and the mean of the action."""
        if self.config.rewards == "bernoulli" and transition.reward not in (0, 1):
            raise InvalidArgumentError(
                f"thompson with rewards='bernoulli' expects rewards of 0 and 1, got {transition.reward}: set rewards='normal' "
                "(--rewards normal)"
            )
        super().observe(transition)
