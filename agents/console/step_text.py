"""The text about the last step in the progress line of a training run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass
class StepText:
    """Describes a step's metrics together with the last evaluation, since not every step has an evaluation."""

    _evaluation: float | None = None

    def after(self, metrics: Mapping[str, float]) -> str:
        """The step's reward, held-out score, share of groups with different rewards, and speed; unknown ones are left out.

        Args:
            metrics: The step's metrics by the names of `agents.learn.metrics`; `eval/NAME` is a held-out score, `eval/mean` the
                mean over several environments, and longer names are details of one environment.
        """
        scores = {name: value for name, value in metrics.items() if name.startswith("eval/")}
        if scores:
            self._evaluation = scores.get("eval/mean", scores[min(scores, key=len)])
        flat, speed = metrics.get("frac_reward_zero_std"), metrics.get("tokens_per_s")
        words = [
            f"reward {metrics['reward']:.3f}",
            None if self._evaluation is None else f"eval {self._evaluation:.3f}",
            None if flat is None else f"signal {1 - flat:.0%}",
            None if speed is None else f"{speed:.0f} tokens/s",
        ]
        return ", ".join(filter(None, words))


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
