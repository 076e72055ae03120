"""Advantages and value targets of agents with a critic: generalised advantage estimation against the values in a batch."""

from __future__ import annotations

from torch import Tensor

from agents.advantages import gae
from agents.batch import Batch


def critic_advantages(batch: Batch, *, discount: float, trace_decay: float) -> Tensor:
    """Generalised advantage estimates f64[b l] against the values in a batch; see `agents.advantages.gae`."""
    assert batch.values is not None
    return gae(
        batch.rewards,
        batch.values,
        batch.loss_mask,
        discount=discount,
        trace_decay=trace_decay,
        bootstrap=batch.bootstrap,
    )


def lambda_returns(batch: Batch, *, discount: float, trace_decay: float) -> Tensor:
    """What values are fitted to, f64[b l]: the estimates plus the values that they compare with, A_t + V_t."""
    assert batch.values is not None
    return critic_advantages(batch, discount=discount, trace_decay=trace_decay) + batch.values
