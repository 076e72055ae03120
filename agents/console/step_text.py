"""The text about the last step in the progress line of a training run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass
class StepText:
    """Describes a step's metrics, with the last evaluation, since not every step has its own."""

    _evaluation: float | None = None

    def after(self, metrics: Mapping[str, float]) -> str:
        """Reward, held-out score, share of groups whose rewards differ and speed, as far as they are known.

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
