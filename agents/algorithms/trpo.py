"""TRPO: Trust Region Policy Optimization (Schulman et al. 2015, arXiv:1502.05477, section 6 and appendix C).

Each step maximises the surrogate E[pi / pi_old A] subject to a mean divergence KL(pi_old || pi) of at most `max_kl`. By the
divergence's quadratic approximation, the natural gradient step (`npg.py`) is scaled to this bound. The step is then shortened
until the surrogate has improved and the exact divergence is within the bound. If there is no such length, the policy does not
change.

As in NPG, the divergence at each visited state is over all actions (the whole vocabulary), and the gradient has the biases of
PPO.

Departures from the paper: advantages are whitened generalised advantage estimates of a critic, as in later work (the paper:
Monte Carlo returns); and `damping` is added to the Fisher matrix's diagonal.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from agents import learn
from agents.algorithms.npg import NPG, NPGConfig
from agents.batch import Batch
from agents.deferred import torch
from verifiers import AtLeast, Between

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True)
class TRPOConfig(NPGConfig):
    """Settings of TRPO: the settings of NPG, with `max_kl` as an upper bound, and settings of the line search."""

    backtracks: Annotated[int, AtLeast(1)] = 10
    """Number of step lengths that the line search tries."""
    backtrack_ratio: Annotated[float, Between(0, 1, open_low=True, open_high=True)] = 0.8
    """Ratio of each step length of the line search to the previous step length."""


class TRPO(NPG):
    """Trust Region Policy Optimization."""

    name = "trpo"
    config: TRPOConfig

    def _move(self, batch: Batch, advantages: Tensor, old: Tensor, full: Tensor, before: float) -> dict[str, float]:
        """Backtrack from the full step. If no step length is acceptable, restore the old weights."""
        for tries in range(self.config.backtracks):
            learn.set_flat_parameters(self.policy, old - self.config.backtrack_ratio**tries * full)
            with torch.no_grad():
                after = self._surrogate(batch, advantages)["loss"]
            divergence = learn.mean_kl(self.policy, batch, old, self.config.learner.micro_batch_size)
            if divergence <= self.config.max_kl and after <= before:
                return {
                    "kl_step": divergence,
                    "backtracks": float(tries),
                    "improvement": before - after,
                    "skipped": 0.0,
                }
        learn.set_flat_parameters(self.policy, old)
        return {"kl_step": 0.0, "backtracks": float(self.config.backtracks), "improvement": 0.0, "skipped": 1.0}
