"""Advantages and value targets of agents with a critic, by generalised advantage estimation with the values in a batch."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from agents.advantages import gae
from agents.batch import Batch
from agents.settings.learner import CriticConfig

if TYPE_CHECKING:
    from torch import Tensor


VALUE_CONTROL: Mapping[str, Any] = {
    "gamma": 0.99,
    "truncation": "bootstrap",
    "critic": CriticConfig("separate", critic_learning_rate=1e-3),
}
"""Defaults of agents with a critic for environments such as CartPole-v1; see `AgentConfig.for_control`."""


def critic_advantages(batch: Batch, *, gamma: float, gae_lambda: float) -> Tensor:
    """Generalised advantage estimates f64[b l] with the values in a batch; see `agents.advantages.gae`."""
    assert batch.values is not None
    return gae(
        batch.rewards,
        batch.values,
        batch.loss_mask,
        gamma=gamma,
        gae_lambda=gae_lambda,
        bootstrap=batch.bootstrap,
    )


def lambda_returns(batch: Batch, *, gamma: float, gae_lambda: float) -> Tensor:
    """Value targets f64[b l]: the advantage estimates plus the values, A_t + V_t."""
    assert batch.values is not None
    return critic_advantages(batch, gamma=gamma, gae_lambda=gae_lambda) + batch.values
