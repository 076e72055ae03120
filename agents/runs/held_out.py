"""The results of evaluations during training: their record, their metrics, the best step, and when to stop.

`evaluations.jsonl` in the folder of a run has a line for each evaluation of each environment:

| name | meaning |
|---|---|
| `step`, `env` | number of training steps done, and name of the environment |
| `first`, `problems`, `samples` | index of the first problem, number of problems, and number of completions of each |
| `score`, `low`, `high` | mean score and its 95 % interval; null if the verifier broke on every completion |
| `change`, `change_low`, `change_high` | paired difference from the preceding evaluation; null for the first |
| `verifier_errors` | number of completions without a score, since the verifier broke |
| `scores` | mean score of each problem; null for a problem without a score |
| `confirms` | in the final evaluation, on problems that did not choose the best checkpoint: its step; otherwise null |
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from agents.console.counting import counted
from agents.runs.files.json_files import JsonLines
from verifiers import FINITE, AtLeast, DataError, InvalidArgumentError, check_types, statistics

if TYPE_CHECKING:
    from agents.runs.evaluation import Evaluation

HELD_OUT = "evaluations.jsonl"
"""Name of the file that holds a run's evaluations."""


@dataclass(frozen=True)
class StopWhen:
    """Conditions on the held-out score (the mean over environments); the first condition that is met ends training.

    Raises:
        InvalidArgumentError: If there is no condition, or a number is out of range.
    """

    score: Annotated[float | None, FINITE] = None
    """Score at which training ends."""
    stale: Annotated[int | None, AtLeast(1)] = None
    """Number of evaluations in a row without a new best score after which training ends."""

    def __post_init__(self) -> None:
        check_types(self)
        if self.score is None and self.stale is None:
            raise InvalidArgumentError("stop_when has no condition: set score or stale, such as StopWhen(score=0.9)")


@dataclass(frozen=True)
class HeldOutScore:
    """The score of one environment at one step; the fields are the columns of `evaluations.jsonl`."""

    step: int
    env: str
    first: int
    problems: int
    samples: int
    score: float | None
    low: float | None
    high: float | None
    change: float | None
    change_low: float | None
    change_high: float | None
    verifier_errors: int
    scores: tuple[float | None, ...]
    confirms: int | None = None

    @classmethod
    def read(cls, line: object) -> HeldOutScore:
        """Read a line."""
        names = [field.name for field in dataclasses.fields(cls)]
        if not isinstance(line, dict) or sorted(line) != sorted(names):
            raise DataError(f"not an evaluation with {', '.join(names)}: {line!r}")
        return cls(**{**line, "scores": tuple(line["scores"])})

    @property
    def metrics(self) -> dict[str, float]:
        """The metrics for loggers, by name."""
        name = f"{'eval' if self.confirms is None else 'eval_best'}/{self.env}"
        columns = ("low", "high", "change", "change_low", "change_high", "verifier_errors")
        named = {name: self.score, **{f"{name}/{column}": getattr(self, column) for column in columns}}
        return {key: float(value) for key, value in named.items() if value is not None}

    def __str__(self) -> str:
        score = "unknown" if self.score is None else f"{self.score:.3f} [{self.low:.3f}, {self.high:.3f}]"
        broken = f", {self.verifier_errors} verifier errors left out" if self.verifier_errors else ""
        return f"{self.env} {score} ({counted(self.problems, 'problem')} x {self.samples}{broken})"


class HeldOutHistory:
    """The evaluations of a run so far, in order.

    Args:
        path: File to which evaluations are appended; None keeps them only in memory.
    """

    def __init__(self, path: Path | None = None) -> None:
        self._path, self._file = path, None if path is None or not path.exists() else JsonLines(path)
        self._scores = [] if self._file is None else self._file.read(HeldOutScore.read)

    def keep_until(self, step: int) -> None:
        """Remove the evaluations of later steps, which a resumed run repeats."""
        if self._file is not None:
            self._file.cut(lambda line: line["step"] <= step)
        self._scores = [score for score in self._scores if score.step <= step]

    def add(
        self, step: int, results: Mapping[str, Evaluation], *, first: Mapping[str, int], confirms: int | None = None
    ) -> dict[str, float]:
        """Record the results of an evaluation, by environment, and return its metrics.

        Args:
            step: Number of training steps done.
            results: The results.
            first: Index of the first problem of each environment.
            confirms: Step of the best checkpoint, if it was evaluated on problems that did not choose it.
        """
        added = [self._score(step, env, result, first[env], confirms) for env, result in results.items()]
        if self._path is not None:
            self._file = self._file or JsonLines(self._path)
            for score in added:
                self._file.write(dataclasses.asdict(score))
        self._scores += added
        metrics = {name: value for score in added for name, value in score.metrics.items()}
        if len(added) > 1 and confirms is None and step in (means := self.means):
            metrics["eval/mean"] = means[step]
        return metrics

    def of_step(self, step: int, *, confirms: int | None = None) -> list[HeldOutScore]:
        """The scores of the evaluation after a number of steps; empty if there was no evaluation."""
        return [score for score in self._scores if score.step == step and score.confirms == confirms]

    @property
    def means(self) -> dict[int, float]:
        """The mean score over environments by step, without confirming evaluations and steps at which a score is missing."""
        by_step: dict[int, list[float | None]] = {}
        for score in self._scores:
            if score.confirms is None:
                by_step.setdefault(score.step, []).append(score.score)
        return {
            step: math.fsum(known) / len(known)
            for step, scores in by_step.items()
            if len(known := [score for score in scores if score is not None]) == len(scores)
        }

    @property
    def best_step(self) -> int | None:
        """The step with the highest mean score, the first if several are equal; None without a score."""
        means = self.means
        return max(means, key=lambda step: (means[step], -step), default=None)

    @property
    def best_steps(self) -> int:
        """The number of steps that have the highest mean score."""
        means = list(self.means.values())
        return means.count(max(means)) if means else 0

    def stop_reason(self, when: StopWhen) -> str | None:
        """The reason why training ends with the latest evaluation; None if training continues."""
        means = list(self.means.values())
        if not means:
            return None
        if when.score is not None and means[-1] >= when.score:
            return f"the held-out score, {means[-1]:.3f}, has reached {when.score:g}"
        stale = len(means) - 1 - means.index(max(means))
        if when.stale is not None and stale >= when.stale:
            return f"the held-out score has not exceeded {max(means):.3f} in {stale} evaluations"
        return None

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()

    def _score(self, step: int, env: str, result: Evaluation, first: int, confirms: int | None) -> HeldOutScore:
        from agents.runs.evaluation import problem_means  # here, since options need `StopWhen` alone
        from agents.runs.evaluation_record import sample_clusters

        means, clusters = problem_means(result.rows), sample_clusters(result.rows)
        scores = tuple(means.get(first + index) for index in range(result.problems))
        before = next((one for one in reversed(self._scores) if one.env == env and one.confirms is None), None)
        paired = [] if before is None or confirms is not None else _pairs(before.scores, scores)
        change = _compared(paired, [clusters[first + index] for index, _, _ in paired]) if paired else None
        return HeldOutScore(
            step=step,
            env=env,
            first=first,
            problems=result.problems,
            samples=result.samples,
            score=_finite(result.score),
            low=_finite(result.interval[0]),
            high=_finite(result.interval[1]),
            change=None if change is None else change.difference,
            change_low=None if change is None else _finite(change.interval.low),
            change_high=None if change is None else _finite(change.interval.high),
            verifier_errors=result.verifier_errors,
            scores=scores,
            confirms=confirms,
        )


_Pair = tuple[int, float, float]


def _pairs(before: Sequence[float | None], now: Sequence[float | None]) -> list[_Pair]:
    """The index and both scores of each problem that has two scores."""
    both = enumerate(zip(before, now, strict=False))
    return [(index, old, new) for index, (old, new) in both if old is not None and new is not None]


def _compared(pairs: Sequence[_Pair], clusters: Sequence[Hashable]) -> statistics.PairedDifference:
    return statistics.compare([old for _, old, _ in pairs], [new for _, _, new in pairs], clusters)


def _finite(number: float) -> float | None:
    return number if math.isfinite(number) else None
