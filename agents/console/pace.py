"""Measures how long a step of a run takes, and estimates the time that remains."""

from __future__ import annotations

from dataclasses import dataclass, field

_FIRST = 3
"""Number of steps after which the pace is printed; the first step also compiles, loads and allocates."""


@dataclass
class Pace:
    """Measures the pace of a run from the durations of its first steps.

    Args:
        begun: The progress at the beginning, in steps or tokens.
        total: The progress at the end.
    """

    begun: float
    total: float
    _seconds: list[float] = field(default_factory=list)

    def after(self, done: float, seconds: float) -> str | None:
        """Count a step.

        Args:
            done: The progress after the step.
            seconds: Duration of the step.

        Returns:
            Once, a line with the seconds per step and the estimated time that remains; None after all other steps, or if no
            work remains.
        """
        self._seconds.append(seconds)
        if len(self._seconds) != _FIRST or done >= self.total:
            return None
        later = sum(self._seconds[1:]) / (_FIRST - 1)
        rest = later * _FIRST * (self.total - done) / (done - self.begun)
        return f"{later:.2g} s a step; the rest takes about {_time(rest)}"


def _time(seconds: float) -> str:
    """A duration, rounded to seconds if it is below a minute, otherwise to minutes."""
    if seconds < 59.5:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"
