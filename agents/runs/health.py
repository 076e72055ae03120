"""Warnings about failing training, derived from a run's metrics, with advice on what to try.

The warnings are a pure function of the metrics of the steps so far, so a resumed run only has to read them again. A sign is
looked for in the last `WINDOW` steps, and compared with the first `WINDOW` steps if it is one of change. It is reported when
it appears, and again only after `WINDOW` steps without it.

| kind | sign |
|---|---|
| `reward` | the mean reward is below that of the first steps, by more than `SIGMAS` standard errors of the difference |
| `gold_reward` | the mean gold score (of `verifiers.with_gold`) is below by as much, and the mean reward is not |
| `together` | the mean reward where tests run together with the program has risen by as much, and elsewhere it has not |
| `signal` | no reward of the window differs from another, or in most groups none does (`MOST_FLAT`) |
| `explained_variance` | below `LEAST_EXPLAINED`: the critic predicts returns worse than their mean |
| `entropy` | below a tenth of the first steps', while the rewards still vary at least half as much as then |
| `clipping` | more than `MOST_CLIPPED` of the tokens are clipped and have no gradient |
| `nonfinite` | a gradient of the current step was not finite, so that it changed no weight |

Rewards of steps are treated as independent with the variance of their window, so that a trend within a window makes the test
less sensitive, not more.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

WINDOW = 10
"""Number of steps in a window."""
SIGMAS = 6.0
LEAST_EXPLAINED = -0.5
ENTROPY_SHARE = 0.1
SPREAD_SHARE = 0.5
MOST_CLIPPED = 0.8
MOST_FLAT = 0.9

_WATCHED = (
    "reward",
    "gold_reward",
    "contracts/together/reward",
    "contracts/separate/reward",
    "reward_std",
    "frac_reward_zero_std",
    "frac_all_correct",
    "frac_all_wrong",
    "explained_variance",
    "entropy",
    "clip_ratio/region_mean",
)


@dataclass(frozen=True)
class HealthWarning:
    """A sign of failing training."""

    kind: str
    """`"reward"`, `"gold_reward"`, `"together"`, `"signal"`, `"explained_variance"`, `"entropy"`, `"clipping"`
    or `"nonfinite"`."""
    step: int
    """The step at which the sign appeared."""
    value: float
    """The mean of the metric over the last steps; for `"nonfinite"` the share of the step's updates."""
    text: str
    """Description of the sign, and advice on what to try."""

    def __str__(self) -> str:
        return f"warning: step {self.step}: {self.text}"


class Health:
    """Watches the metrics of a run, step by step."""

    def __init__(self) -> None:
        self.steps = 0
        """Number of observed steps."""
        self._first: dict[str, list[float]] = {name: [] for name in _WATCHED}
        self._last: dict[str, list[float]] = {name: [] for name in _WATCHED}
        self._seen: dict[str, int] = {}  # when each sign was last there

    def observe(self, step: int, metrics: Mapping[str, float | None]) -> list[HealthWarning]:
        """Record the metrics of a step, from `Agent.learn` or a run's file, and return new warnings.

        Args:
            step: Number of the step.
            metrics: Values by the names of `agents.learn.metrics`; one that is missing, None or not finite is ignored.
        """
        self.steps += 1
        for name in _WATCHED:
            value = metrics.get(name)
            if value is None or not math.isfinite(value):
                continue
            if len(self._first[name]) < WINDOW:
                self._first[name].append(value)
            self._last[name] = [*self._last[name], value][-WINDOW:]
        warnings = []
        for warning in (*_nonfinite(step, metrics), *self._signs(step)):
            if step - self._seen.get(warning.kind, -WINDOW - 1) > WINDOW:
                warnings.append(warning)
            self._seen[warning.kind] = step
        return warnings

    def _signs(self, step: int) -> Iterator[HealthWarning]:
        """All signs that are present at a step."""
        last = {name: np.array(values) for name, values in self._last.items() if len(values) == WINDOW}
        first = {name: np.array(self._first[name]) for name in last}
        yield from _reward_signs(step, first, last)
        yield from _forged(step, first, last)
        yield from _no_signal(step, last)
        if "explained_variance" in last and (value := float(last["explained_variance"].mean())) < LEAST_EXPLAINED:
            yield HealthWarning(
                "explained_variance",
                step,
                value,
                f"explained_variance {value:.2f} in the last {WINDOW} steps: the critic's values are worse than none, and so "
                "are the advantages. Try gae_lambda (trace_decay) closer to 1, a lower "
                "critic_learning_rate, or an agent without a critic",
            )
        if "entropy" in last and "reward_std" in last:
            value, start = float(last["entropy"].mean()), float(first["entropy"].mean())
            spread = float(last["reward_std"].mean())
            if value < ENTROPY_SHARE * start and spread > SPREAD_SHARE * float(first["reward_std"].mean()):
                yield HealthWarning(
                    "entropy",
                    step,
                    value,
                    f"entropy {value:.2g} nats in the last {WINDOW} steps, {start:.2g} in the first {WINDOW}: the policy "
                    "hardly explores any more, but rewards still vary. Try a lower learning rate, an entropy_coefficient such "
                    "as 0.01, or a kl_coefficient",
                )
        if "clip_ratio/region_mean" in last and (value := float(last["clip_ratio/region_mean"].mean())) > MOST_CLIPPED:
            yield HealthWarning(
                "clipping",
                step,
                value,
                f"{value:.0%} of the tokens clipped in the last {WINDOW} steps: hardly any has a gradient. Try a lower "
                "learning rate, fewer epochs and minibatches, or wider clip_low and clip_high",
            )


def _reward_signs(
    step: int, first: Mapping[str, NDArray[np.float64]], last: Mapping[str, NDArray[np.float64]]
) -> Iterator[HealthWarning]:
    """Of rewards and gold scores, the first that has fallen from the first window f64[n] to the last."""
    advice = {
        "reward": "training makes the policy worse. Try a lower learning rate (or max_kl), more completions per step, or fewer "
        "epochs and minibatches",
        "gold_reward": "the reward has not fallen, so the policy exploits the score that it is trained on. Try a "
        "kl_coefficient, the minimum of an ensemble of reward models, or stop earlier",
    }
    for name, text in advice.items():
        if name in last and _standard_errors_below(last[name], first[name]) > SIGMAS:
            now, start = float(last[name].mean()), float(first[name].mean())
            yield HealthWarning(
                name,
                step,
                now,
                f"{name} {now:.3f} in the last {WINDOW} steps, significantly below the {start:.3f} of the first {WINDOW}: "
                f"{text}",
            )
            return


def _forged(
    step: int, first: Mapping[str, NDArray[np.float64]], last: Mapping[str, NDArray[np.float64]]
) -> Iterator[HealthWarning]:
    """The sign that only verdicts which a program can forge get better, from the first window f64[n] to the last."""
    together, separate = "contracts/together/reward", "contracts/separate/reward"
    if not {together, separate} <= last.keys():
        return
    risen, elsewhere = (_standard_errors_below(first[name], last[name]) for name in (together, separate))
    if risen > SIGMAS and elsewhere <= SIGMAS:
        now, start = float(last[together].mean()), float(first[together].mean())
        yield HealthWarning(
            "together",
            step,
            now,
            f"{together} {now:.3f} in the last {WINDOW} steps, significantly above the {start:.3f} of the first {WINDOW}, and "
            f"{separate} has not risen so: programs may forge the verdicts of tests that run together with them. Read some "
            "that pass (rlvr show), and leave such problems out if they do",
        )


def _no_signal(step: int, last: Mapping[str, NDArray[np.float64]]) -> Iterator[HealthWarning]:
    """The sign that nothing is scored above anything else, from the metrics f64[n] of the last steps."""
    if "reward" in last and "reward_std" in last and not last["reward_std"].any() and np.ptp(last["reward"]) == 0:
        value = float(last["reward"][-1])
        advice = (
            "Check that the verifier finds the answers (outcomes/no_answer, and the completions in rollouts.parquet), that "
            "max_new_tokens leaves room for them (completions/clipped_ratio), and begin with easier problems or rlvr sft"
            if value <= 0
            else "Take harder problems, or stop if this is the highest reward"
        )
        yield HealthWarning(
            "signal",
            step,
            value,
            f"every completion of the last {WINDOW} steps has the same reward, {value:g}: there is nothing to learn from. "
            f"{advice}",
        )
    elif "frac_reward_zero_std" in last and (flat := float(last["frac_reward_zero_std"].mean())) >= MOST_FLAT:
        yield HealthWarning(
            "signal",
            step,
            flat,
            f"in {flat:.0%} of the groups of the last {WINDOW} steps no completion scored above another, so that agents which "
            f"compare within groups have no gradient there. {_advice_on_groups(last)}",
        )


def _advice_on_groups(last: Mapping[str, NDArray[np.float64]]) -> str:
    """What to do about groups without a signal: the cures of those that are all right and all wrong are opposite."""
    if "frac_all_correct" not in last or "frac_all_wrong" not in last:
        return "Try a larger group_size, a higher temperature, or other problems"
    right, wrong = float(last["frac_all_correct"].mean()), float(last["frac_all_wrong"].mean())
    shares = f"{right:.0%} are all right and {wrong:.0%} all wrong: "
    if right > wrong:
        return f"{shares}take harder problems, or stop"
    return (
        f"{shares}take easier problems or a larger group_size, begin with rlvr sft, and check that the verifier finds the "
        "answers (outcomes/no_answer)"
    )


def _nonfinite(step: int, metrics: Mapping[str, float | None]) -> Iterator[HealthWarning]:
    share = metrics.get("nonfinite_gradients")
    if share:
        yield HealthWarning(
            "nonfinite",
            step,
            share,
            f"the gradient was not finite in {share:.0%} of this step's updates, which changed no weight. Check a custom agent "
            "for logarithms of 0 and divisions by 0; otherwise try a lower learning rate, or --precision float32",
        )


def _standard_errors_below(now: NDArray[np.float64], start: NDArray[np.float64]) -> float:
    """By how many standard errors (Welch) the mean of `now` f64[n] is below that of `start`; 0 if it is not."""
    difference = float(start.mean() - now.mean())
    if difference <= 0:
        return 0.0
    error = math.sqrt(float(now.var(ddof=1)) / len(now) + float(start.var(ddof=1)) / len(start))
    return difference / error if error > 0 else math.inf
