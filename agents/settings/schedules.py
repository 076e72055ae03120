"""`Schedule`: a coefficient as a pure function of the step, so that resuming needs no state."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, get_args

from verifiers import InvalidArgumentError, unknown_name

Shape = Literal["constant", "linear", "cosine"]


@dataclass(frozen=True)
class Schedule:
    """A value that goes from `start` to `end` over `steps` steps, and stays at `end`.

    Raises:
        InvalidArgumentError: If a number is out of range.
    """

    start: float
    end: float = 0.0
    shape: Shape = "linear"
    """Shape of the schedule. `"constant"` stays at `start`, `"linear"` is a straight line, and `"cosine"` is half a period of a
    cosine, slow at both ends."""
    steps: int | None = None
    """Number of steps; None if the number is not known yet. Without a number, only a constant schedule can be called."""
    warmup_steps: int = 0
    """Number of steps over which the value first rises linearly to `start`."""

    def __post_init__(self) -> None:
        if self.shape not in get_args(Shape):
            raise unknown_name("schedule", self.shape, get_args(Shape))
        if self.shape != "constant" and self.steps is not None and self.steps < 1:
            raise InvalidArgumentError(f"schedule_steps must be at least 1, or None, got {self.steps}")
        if self.warmup_steps < 0:
            raise InvalidArgumentError(f"warmup_steps must be at least 0, got {self.warmup_steps}")
        if self.shape != "constant" and self.steps is not None and self.warmup_steps >= self.steps:
            raise InvalidArgumentError(
                f"warmup_steps={self.warmup_steps} must be less than the {self.steps} optimiser steps of the {self.shape} "
                "schedule"
            )

    def __call__(self, step: int) -> float:
        """Return the value at a step; the first step is 0.

        Raises:
            InvalidArgumentError: If the schedule is not constant and its number of steps is unknown.
        """
        warm = min(1.0, (step + 1) / (self.warmup_steps + 1))
        if self.shape == "constant":
            return self.start * warm
        if self.steps is None:
            raise InvalidArgumentError(
                f"a {self.shape} schedule needs its number of steps: train with `learn`, whose `steps` it uses, or set "
                "schedule_steps"
            )
        progress = min(1.0, max(0, step - self.warmup_steps) / (self.steps - self.warmup_steps))
        left = 1 - progress if self.shape == "linear" else 0.5 * (1 + math.cos(math.pi * progress))
        return warm * (self.end + (self.start - self.end) * left)
