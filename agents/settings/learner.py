"""Settings of the optimiser, and of critics."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from agents.settings.learning_rate import learning_rate_for
from agents.settings.schedules import Schedule, Shape
from verifiers import Above, AtLeast, Between, InvalidArgumentError, check_types


@dataclass(frozen=True)
class LearnerConfig:
    """Settings of the optimiser.

    Raises:
        InvalidArgumentError: If a value is out of range.
    """

    learning_rate: Annotated[float | None, Above(0)] = None
    """Learning rate of AdamW. None chooses a rate by the number of parameters: about 1e-4 for a million, 1.5e-5 for 135 million
    and 1e-6 for a billion or more. Supervised learning uses ten times these rates, and LoRA ten times the rate without LoRA."""
    weight_decay: Annotated[float, AtLeast(0)] = 0.0
    """Weight decay of AdamW."""
    beta1: Annotated[float, Between(0, 1, open_high=True)] = 0.9
    """Decay rate of AdamW's running mean of the gradient."""
    beta2: Annotated[float, Between(0, 1, open_high=True)] = 0.999
    """Decay rate of AdamW's running mean of the squared gradient."""
    max_grad_norm: Annotated[float, Above(0, infinite=True)] = 1.0
    """Maximum global norm of the gradient; larger gradients are scaled down to this norm. The gradients of a critic's own
    weights are scaled separately."""
    schedule: Shape = "constant"
    """Shape of the learning rate's decay from the full rate to 0 at `schedule_steps`."""
    warmup_steps: int = 0
    """Number of optimiser steps over which the learning rate rises linearly from 0."""
    schedule_steps: int | None = None
    """Number of optimiser steps after which schedules end. None takes the length of the run (`--steps`, or `steps` of `learn`).
    If a run is resumed with more steps, the schedule becomes the schedule of the longer run."""
    micro_batch_size: Annotated[int, AtLeast(1)] = 64
    """Number of completions in one forward and backward pass. Except for rounding, this number does not change results."""
    skip_zero_advantages: bool = True
    """Skip completions without a gradient because their advantages are 0, as in groups of equal scores. Skipped completions
    still count in every mean of the loss, so gradients do not change, but the metrics `entropy` and `ratio` leave them out.
    This setting has no effect on supervised learning or on agents with a critic."""

    def __post_init__(self) -> None:
        check_types(self)
        self._schedule(1.0, None)  # raises if the settings are inconsistent

    def for_model(self, model: Any, *, supervised: bool = False) -> LearnerConfig:
        """Return these settings with a learning rate chosen for a torch model, unless a rate is set."""
        if self.learning_rate is not None:
            return self
        return dataclasses.replace(self, learning_rate=learning_rate_for(model, supervised=supervised))

    def learning_rate_at(self, step: int, run_steps: int | None = None) -> float:
        """The learning rate of an optimiser step, as a pure function, so that resuming needs no state.

        Args:
            step: Number of the optimiser step, from 0.
            run_steps: Number of optimiser steps of the whole run, used if `schedule_steps` is None.

        Raises:
            InvalidArgumentError: If no learning rate is set, or the length of the schedule is unknown.
        """
        if self.learning_rate is None:
            raise InvalidArgumentError("no learning rate is set: `for_model` chooses one")
        return self._schedule(self.learning_rate, run_steps)(step)

    def check_schedule(self, run_steps: int) -> None:
        """Check that the schedule fits into a run with this number of optimiser steps.

        Raises:
            InvalidArgumentError: If the warm-up is as long as the schedule.
        """
        self._schedule(1.0, run_steps)

    def _schedule(self, rate: float, run_steps: int | None) -> Schedule:
        steps = run_steps if self.schedule_steps is None else self.schedule_steps
        return Schedule(rate, 0.0, self.schedule, steps, self.warmup_steps)


_LEARNING_RATES = {"head": 1e-3, "separate": 1e-5}
"""Default learning rate of each kind of critic."""


@dataclass(frozen=True)
class CriticConfig:
    """Settings of the critic.

    Raises:
        InvalidArgumentError: If a value is out of range.
    """

    critic: Literal["head", "separate"] = "head"
    """Kind of critic: `"head"` is one linear layer on the policy's last hidden states, and its gradient also trains the
    policy's layers; `"separate"` is a separate copy of the policy's model with such a layer."""
    critic_learning_rate: Annotated[float | None, Above(0)] = None
    """Learning rate of the critic's own weights. None uses 1e-3 for a head, which is a single layer that starts at 0, and 1e-5
    for a separate model, a usual rate for fine-tuning whole language models."""
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
