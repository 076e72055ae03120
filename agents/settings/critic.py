"""Settings of critics."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from verifiers import Above, check_types

_LEARNING_RATES = {"head": 1e-3, "separate": 1e-5}
"""The default learning rate for each kind of critic."""


@dataclass(frozen=True)
class CriticConfig:
    """Settings of the critic.

    Raises:
        InvalidArgumentError: If a value is out of range.
    """

    critic: Literal["head", "separate"] = "head"
    """Kind of critic. `"head"` is one linear layer on the policy's last hidden states, and its gradient also trains the
    policy's layers. `"separate"` is a separate copy of the policy's model with such a layer."""
    critic_learning_rate: Annotated[float | None, Above(0)] = None
    """Learning rate of the critic's own weights. None uses 1e-3 for a head, a single layer that starts at 0, and 1e-5 for a
    separate model, a usual rate for fine-tuning a whole language model."""
    value_coefficient: Annotated[float, Above(0)] = 0.5
    """Weight of the value loss relative to the policy loss."""
    value_clip: Annotated[float | None, Above(0)] = None
    """Largest change of a value from its value before the update (PPO's value clipping); None does not clip."""

    def __post_init__(self) -> None:
        check_types(self)

    @property
    def learning_rate(self) -> float:
        """Learning rate of the critic's own weights: `critic_learning_rate`, or the default for the kind of critic."""
        return _LEARNING_RATES[self.critic] if self.critic_learning_rate is None else self.critic_learning_rate
