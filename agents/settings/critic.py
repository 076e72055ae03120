"""Settings of critics."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from verifiers import InvalidArgumentError, check_types, unknown_name

_LEARNING_RATES = {"head": 1e-3, "separate": 1e-5}
"""Default learning rate of each kind of critic."""


@dataclass(frozen=True)
class CriticConfig:
    """Settings of the critic.

    Raises:
        InvalidArgumentError: If a value is out of range.
    """

    critic: Literal["head", "separate"] = "head"
    """Kind of the critic: `"head"` is one linear layer on the policy's last hidden states, whose gradient also trains the
    policy's layers; `"separate"` is a separate model, a copy of the policy's, with such a layer."""
    critic_learning_rate: float | None = None
    """Learning rate of the critic's own weights. None uses 1e-3 for a head, which is one layer that starts at 0, and 1e-5
    for a separate model, a rate that is usual for fine-tuning whole language models."""
    value_coefficient: float = 0.5
    """Weight of the value loss relative to the policy loss."""
    value_clip: float | None = None
    """Largest change of a value from that before the update (PPO's value clipping); None does not clip."""

    def __post_init__(self) -> None:
        check_types(self)
        if self.critic not in _LEARNING_RATES:
            raise unknown_name("critic", self.critic, _LEARNING_RATES)
        if not self.learning_rate > 0:
            raise InvalidArgumentError(
                f"critic_learning_rate must be greater than 0, or None, got {self.learning_rate}"
            )
        if not self.value_coefficient > 0:
            raise InvalidArgumentError(f"value_coefficient must be greater than 0, got {self.value_coefficient}")
        if self.value_clip is not None and not self.value_clip > 0:
            raise InvalidArgumentError(f"value_clip must be greater than 0, or None, got {self.value_clip}")

    @property
    def learning_rate(self) -> float:
        """Learning rate of the critic's own weights: `critic_learning_rate`, or the default of its kind."""
        return _LEARNING_RATES[self.critic] if self.critic_learning_rate is None else self.critic_learning_rate
