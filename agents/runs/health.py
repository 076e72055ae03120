"""Warnings about failing training, derived from a run's metrics, with advice on what to try.

The warnings are a pure function of the metrics of the steps so far, so a resumed run only has to read the metrics again. A sign
is looked for in the last `WINDOW` steps; a sign of change is found by comparison with the first `WINDOW` steps. A sign is
reported when it appears, and again only after `WINDOW` steps without it.

| kind | sign |
|---|---|
| `reward` | the mean reward is below that of the first steps, by more than `SIGMAS` standard errors of the difference |
| `gold_reward` | the mean gold score (of `verifiers.with_gold`) has fallen in this sense, but the mean reward has not |
| `together` | the mean reward has risen in this sense for tests that run together with the program, not for others |
| `signal` | all rewards in the window are equal, or in most groups all rewards are equal (`MOST_FLAT`) |
| `explained_variance` | below `LEAST_EXPLAINED`: the critic predicts returns worse than their mean |
| `held_out` | every held-out score has risen by less than half the rise of the reward, by more than `SIGMAS` standard errors |
| `entropy` | below a tenth of its first value, while rewards still vary at least half as much as in the first steps |
| `truncation` | more than `MOST_TRUNCATED` of the completions are cut off, and significantly more than in the first steps |
| `kl` | above `MOST_KL`, in nats a token: the policy has left its reference |
| `noise` | in more than `MOST_BY_ERROR` of the groups with a signal, the signal is likely an error (with a verifier's card) |
| `clipping` | more than `MOST_CLIPPED` of the tokens are clipped and have no gradient |
| `nonfinite` | a gradient of the current step was not finite, so that it changed no weight |

Held-out scores are compared with the reward if both are from 0 to 1. The rewards of steps are treated as independent, with the
variance of their window, so a trend within a window makes the test less sensitive, not more.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

WINDOW = 10
"""Number of steps in a window."""
SIGMAS = 6.0
LEAST_EXPLAINED = -0.5
ENTROPY_SHARE = 0.1
SPREAD_SHARE = 0.5
MOST_CLIPPED = 0.5
MOST_TRUNCATED = 0.25
MOST_KL = 1.0
MOST_FLAT = 0.9
MOST_BY_ERROR = 0.5

_NORMAL = 1.96
"""Number of standard errors from a mean to an end of its 95 % interval."""
_WATCHED = (
    "reward",
    "gold_reward",
    "contracts/together/reward",
    "contracts/separate/reward",
    "reward_std",
    "frac_reward_zero_std",
    "frac_all_correct",
    "frac_all_wrong",
    "completions/clipped_ratio",
    "kl",
    "explained_variance",
    "entropy",
    "noise/groups_by_error",
    "clip_ratio/region_mean",
)


@dataclass(frozen=True)
class _Estimate:
    """A score, and its standard error."""

    value: float
    error: float


@dataclass(frozen=True)
class HealthWarning:
    """A sign of failing training."""

    kind: str
    """The sign's name in the table of `agents.runs.health`."""
    step: int
    """The step at which the sign appeared."""
    value: float
    """The mean of the metric over the last steps; for `"nonfinite"`, the share of the step's updates that were not finite."""
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
        self._held_out: dict[str, tuple[_Estimate, _Estimate]] = {}  # the first and last estimate of each environment
        self._evaluated: list[list[float]] = []  # the last rewards before the first evaluation and before the last
        self._seen: dict[str, int] = {}  # the step at which each sign was last present

    def observe(self, step: int, metrics: Mapping[str, float | None]) -> list[HealthWarning]:
        """Record the metrics of a step, from `Agent.learn` or a run's file, and return new warnings.

        Args:
            step: Number of the step.
            metrics: Values by the names of `agents.learn.metrics`; a value that is missing, None or not finite is ignored.
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

    def observe_held_out(self, metrics: Mapping[str, float | None]) -> None:
        """Record held-out scores, `eval/NAME` with the ends of their 95 % intervals, for the warnings of the next steps."""
        known = len(self._held_out)
        for name in metrics:
            if name.startswith("eval/") and name.endswith("/low"):
                env = name.removesuffix("/low")
                score, low, high = metrics.get(env), metrics[name], metrics.get(f"{env}/high")
                if score is not None and low is not None and high is not None:
                    now = _Estimate(score, (high - low) / (2 * _NORMAL))
                    self._held_out[env] = (self._held_out.get(env, (now, now))[0], now)
        if self._held_out:
            self._evaluated = [*self._evaluated[:1], self._last["reward"]] if known else [self._last["reward"]]

    def _signs(self, step: int) -> Iterator[HealthWarning]:
        """All signs that are present at a step."""
        last = {name: np.array(values) for name, values in self._last.items() if len(values) == WINDOW}
        first = {name: np.array(self._first[name]) for name in last}
        yield from _reward_signs(step, first, last)
        yield from _forged(step, first, last)
        yield from _no_signal(step, last)
        if len(self._evaluated) == 2 and len(self._evaluated[1]) == WINDOW:
            before, after = self._evaluated
            before = before if len(before) == WINDOW else self._first["reward"]
            yield from _without_gain(step, np.array(before), np.array(after), list(self._held_out.values()))
        yield from _truncation(step, first, last)
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
                f"{value:.0%} of the tokens clipped in the last {WINDOW} steps, so that they have no gradient. Try a lower "
                "learning rate, fewer epochs and minibatches, or wider clip_low and clip_high",
            )
        noise = last.get("noise/groups_by_error")
        if noise is not None and (value := float(noise.mean())) > MOST_BY_ERROR:
            yield HealthWarning(
                "noise",
                step,
                value,
                f"in {value:.0%} of the groups with different verdicts of the last {WINDOW} steps, all answers are likely "
                "right or all wrong, and the verifier's errors are the only difference. Mend the verifier (see "
                "rlvr audit-verifier), or take problems that are solved about half of the time",
            )
        if "kl" in last and (value := float(last["kl"].mean())) > MOST_KL:
            yield HealthWarning(
                "kl",
                step,
                value,
                f"kl {value:.2g} nats a token in the last {WINDOW} steps: the policy has little left of the reference, and may "
                "have lost what else that could do. Try a higher kl_coefficient or a lower learning rate, and evaluate on "
                "other tasks too",
            )


def _reward_signs(
    step: int, first: Mapping[str, NDArray[np.float64]], last: Mapping[str, NDArray[np.float64]]
) -> Iterator[HealthWarning]:
    """The sign that rewards have fallen from the first window f64[n] to the last; if they have not, that gold scores have."""
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


def _without_gain(
    step: int, first: NDArray[np.float64], last: NDArray[np.float64], held_out: Sequence[tuple[_Estimate, _Estimate]]
) -> Iterator[HealthWarning]:
    """The sign that the reward f64[n] had risen by the last evaluation, but no held-out score by half as much."""
    scale = (*first, *last, *(one.value for pair in held_out for one in pair))
    if min(scale) < 0 or max(scale) > 1:
        return  # the reward has another unit than the scores
    rise, errors = float(last.mean() - first.mean()), (first.var(ddof=1) + last.var(ddof=1)) / WINDOW
    gains = [
        (now.value - start.value, math.sqrt(errors + 4 * (start.error**2 + now.error**2))) for start, now in held_out
    ]
    if all(rise - 2 * gain > SIGMAS * error for gain, error in gains):
        best = max(gain for gain, _ in gains)
        yield HealthWarning(
            "held_out",
            step,
            rise - best,
            f"the reward has risen by {rise:.3f} since the first {WINDOW} steps, the score on held-out problems by "
            f"{best:.3f}: the policy exploits the verifier, knows the training problems by heart, or has only become more "
            "certain, if it is evaluated at temperature 0. Read completions with a high reward, audit the verifier "
            "(rlvr audit-verifier), and keep the best checkpoint",
        )


def _truncation(
    step: int, first: Mapping[str, NDArray[np.float64]], last: Mapping[str, NDArray[np.float64]]
) -> Iterator[HealthWarning]:
    name = "completions/clipped_ratio"
    if name not in last or (now := float(last[name].mean())) <= MOST_TRUNCATED:
        return
    if _standard_errors_below(first[name], last[name]) > SIGMAS:
        yield HealthWarning(
            "truncation",
            step,
            now,
            f"{now:.0%} of the completions of the last {WINDOW} steps are cut off by the token budget, "
            f"{first[name].mean():.0%} of the first {WINDOW}: their scores say more of the budget than of the policy. "
            "Raise max_new_tokens, choose how a truncated completion counts, or make length cost (length_penalty)",
        )


def _forged(
    step: int, first: Mapping[str, NDArray[np.float64]], last: Mapping[str, NDArray[np.float64]]
) -> Iterator[HealthWarning]:
    """The sign that, from the first window f64[n] to the last, only verdicts that a program can forge have improved."""
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
    """The sign that all scores are equal, from the metrics f64[n] of the last steps."""
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
    """Advice on groups without a signal: groups that are all right and groups that are all wrong need opposite remedies."""
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
            f"{_first_nonfinite(metrics)} not finite in {share:.0%} of this step's updates, which changed no weight. Check a "
            "custom agent for logarithms of 0 and divisions by 0; otherwise try a lower learning rate, or --precision float32",
        )


def _first_nonfinite(metrics: Mapping[str, float | None]) -> str:
    """The first of advantages, loss and gradient that is not finite, as the subject of a sentence."""
    for name, subject in (("advantages/mean", "the advantages were"), ("loss", "the loss was")):
        value = metrics.get(name, 0.0)
        if value is None or not math.isfinite(value):
            return subject
    return "the gradient was"


def _standard_errors_below(now: NDArray[np.float64], start: NDArray[np.float64]) -> float:
    """The number of standard errors (Welch) by which the mean of `now` f64[n] is below that of `start`; 0 if it is above."""
    difference = float(start.mean() - now.mean())
    if difference <= 0:
        return 0.0
    error = math.sqrt(float(now.var(ddof=1)) / len(now) + float(start.var(ddof=1)) / len(start))
    return difference / error if error > 0 else math.inf
