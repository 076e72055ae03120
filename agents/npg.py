"""NPG: natural policy gradient (Kakade 2001, "A natural policy gradient").

The gradient is multiplied by the inverse of the Fisher matrix, so that the step is the steepest in the space of
distributions, whatever the parametrisation. Each step is scaled to a mean divergence of `max_kl` by its quadratic
approximation (Rajeswaran et al. 2017, arXiv:1703.02660), and taken: TRPO without its line search.

Departure from the paper: the normalised step length, and a critic's advantages in place of action values.
"""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from agents.batch import Batch
from agents.fisher import flat_parameters, mean_kl, set_flat_parameters
from agents.trpo import TRPO, TRPOConfig


@dataclass(frozen=True)
class NPGConfig(TRPOConfig):
    """Settings of the natural policy gradient; it has no use for `backtracks` and `backtrack_ratio`."""


class NPG(TRPO):
    """Natural policy gradient."""

    name = "npg"
    config: NPGConfig

    def _move(self, batch: Batch, advantages: Tensor, full: Tensor, before: float) -> dict[str, float]:
        """Take the full step."""
        old = flat_parameters(self.policy)
        set_flat_parameters(self.policy, old - full)
        divergence = mean_kl(self.policy, batch, old, self.config.learner.micro_batch_size)
        return {"kl_step": divergence, "skipped": 0.0}
