"""How long the steps of a run take, and the rest of it."""

from __future__ import annotations

from dataclasses import dataclass, field

_FIRST = 3
"""Number of steps after which the pace is printed; the first one also compiles, loads and allocates."""


@dataclass
class Pace:
    """Measures the first steps of a run from the seconds that they report.

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
            done: The progress after it.
            seconds: Duration of the step.

        Returns:
            A line with the seconds of a step and the estimated rest, once; None after the other steps, and if nothing is left.
        """
        self._seconds.append(seconds)
        if len(self._seconds) != _FIRST or done >= self.total:
            return None
        later = sum(self._seconds[1:]) / (_FIRST - 1)
        rest = later * _FIRST * (self.total - done) / (done - self.begun)
        return f"{later:.2g} s a step; the rest takes about {_time(rest)}"


def _time(seconds: float) -> str:
    """A time to the second below a minute, and to the minute from there on."""
    if seconds < 59.5:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"
