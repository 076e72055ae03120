"""Compares runs with the first of them, problem by problem."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from agents.runs.at_k import problem_maj_at, problem_pass_at
from agents.runs.files.json_files import differences
from agents.runs.reading import RecordedRun, check_named_once, paired_clusters, paired_scores
from verifiers import DataError, InvalidArgumentError, statistics

_COMPARED = (
    "env",
    "split",
    "environment.dataset",
    "environment.prompt",
    "environment.verifier",
    "environment.reader",
    "environment.max_new_tokens",
)
"""Settings that define the task: if they differ, scores are not comparable."""


@dataclass(frozen=True)
class RunComparison:
    """One run compared with the first run."""

    run: RecordedRun
    score: float
    """Mean over the problems that all runs have."""
    interval: statistics.Interval
    comparison: statistics.PairedDifference | None
    """The run's score minus the first run's; None for the first run itself."""
    p_value: float | None
    """p-value of the sign-flip test, adjusted for the number of runs by Holm's method."""

    def sentence(self, first: RecordedRun) -> str:
        """The comparison in words, which claim a difference only if the interval and the adjusted test both show it."""
        if self.comparison is None:
            raise InvalidArgumentError("the first run is compared with nothing")
        result, p_value = self.comparison, 1.0 if self.p_value is None else self.p_value
        low, high = result.interval.low, result.interval.high
        if not result.differing:
            same = (
                f"{self.run.name} and {first.name} have the same score on every one of the {result.problems} problems"
            )
            known = math.isfinite(low) and math.isfinite(high)
            return f"{same} (95 % interval of the difference {low:+.3f} to {high:+.3f})" if known else same
        measured = f"{result.difference:+.3f}, 95 % interval {low:+.3f} to {high:+.3f}, p = {p_value:.3g}"
        # With several runs, some intervals miss 0 by chance, and so may the interval of a few problems that happen to agree.
        if result.units == 1:
            return f"no difference between {self.run.name} and {first.name} can be shown by one problem ({measured})"
        if result.verdict == "no difference shown" or p_value > 1 - statistics.LEVEL:
            detectable = f"; one of {result.detectable:.3f} would be found in 4 of 5 such comparisons"
            power = detectable if math.isfinite(result.detectable) else ""
            return f"no difference between {self.run.name} and {first.name} is shown ({measured}{power})"
        return f"{self.run.name} is {result.verdict} than {first.name} ({measured})"


@dataclass(frozen=True)
class Measure:
    """A quantity by which runs are compared; each problem has a value."""

    name: str
    """Name of the measure, such as `"score"` or `"pass@4"`."""
    values: tuple[Mapping[str, float], ...]
    """For each run, the values by the problem's id."""


@dataclass(frozen=True)
class MeasureComparison:
    """All runs compared with the first run by one measure."""

    measure: str
    problems: int
    """Number of problems for which every run has the measure; other problems are left out."""
    distinct: int
    """Number of these problems, counting each cluster of problems with equal prompts once."""
    rows: tuple[RunComparison, ...]
    """One comparison for each run, in order."""
    scores: NDArray[np.float64]
    """The values of each run and problem, f64[r p]."""
    clusters: Sequence[Hashable]
    """The cluster of each problem."""

    def needed(self, row: int, difference: float) -> int | None:
        """The number of problems needed to find a difference between a run and the first: `statistics.problems_needed`."""
        return statistics.problems_needed(self.scores[0], self.scores[row], difference, self.clusters)


def compare_runs(runs: Sequence[RecordedRun]) -> tuple[int, tuple[RunComparison, ...]]:
    """Compare the scores of every run with those of the first run, on the problems that all runs have.

    Returns:
        The number of these problems, and one comparison for each run, in order.

    Raises:
        InvalidArgumentError: If there are fewer than two runs, or a run is named twice.
        DataError: If the runs share no problem, or a run has several problems with the same id.
    """
    (of_scores,) = compare_measures(runs, [score_measure(runs)])
    return of_scores.problems, of_scores.rows


def compare_measures(runs: Sequence[RecordedRun], measures: Sequence[Measure]) -> list[MeasureComparison]:
    """Compare every run with the first run by each measure; p-values are adjusted for the number of all comparisons.

    Raises:
        InvalidArgumentError: If there are fewer than two runs, or a run is named twice.
        DataError: If the runs share no problem that has a measure.
    """
    if len(runs) < 2:
        raise InvalidArgumentError(f"a comparison takes at least two runs, got {len(runs)}")
    check_named_once([run.folder for run in runs])
    pairs = [paired_scores(runs, measure.values, measure.name) for measure in measures]
    scores = [of_runs for _, of_runs in pairs]
    clusters = [paired_clusters(runs, problems) for problems, _ in pairs]
    results = [
        [statistics.compare(of_runs[0], other, together) for other in of_runs[1:]]
        for of_runs, together in zip(scores, clusters, strict=True)
    ]
    adjusted = iter(statistics.holm([result.p_value for of_measure in results for result in of_measure]))
    comparisons = []
    for measure, of_runs, together, of_measure in zip(measures, scores, clusters, results, strict=True):
        p_values = [None, *(next(adjusted) for _ in of_measure)]
        rows = tuple(
            RunComparison(run, float(values.mean()), statistics.score_interval(values, together), result, p_value)
            for run, values, result, p_value in zip(runs, of_runs, [None, *of_measure], p_values, strict=True)
        )
        comparisons.append(
            MeasureComparison(measure.name, of_runs.shape[1], len(set(together)), rows, of_runs, together)
        )
    return comparisons


def score_measure(runs: Sequence[RecordedRun]) -> Measure:
    """The mean score of each problem's samples.

    Raises:
        DataError: If a run has two problems with the same id.
    """
    return Measure("score", tuple(run.problem_scores() for run in runs))


def pass_measure(runs: Sequence[RecordedRun], k: int) -> Measure:
    """pass@k of each problem with at least k samples that are right or wrong.

    Raises:
        DataError: If a run has no such problem.
    """
    return _at_k_measure("pass", k, runs, [problem_pass_at(run.samples(), k) for run in runs])


def maj_measure(runs: Sequence[RecordedRun], votes: Sequence[Sequence[Sequence[int | None]]], k: int) -> Measure:
    """maj@k of each problem with at least k samples that are right or wrong.

    Raises:
        DataError: If a run has no such problem.
    """
    values = [problem_maj_at(run.samples(), of_run, k) for run, of_run in zip(runs, votes, strict=True)]
    return _at_k_measure("maj", k, runs, values)


def _at_k_measure(name: str, k: int, runs: Sequence[RecordedRun], values: Sequence[Mapping[int, float]]) -> Measure:
    by_id = []
    for run, of_run in zip(runs, values, strict=True):
        if not of_run:
            raise DataError(
                f"{run.folder} has no problem with {k} samples that are right or wrong, as {name}@{k} needs"
            )
        ids = {row["problem"]: row["problem_id"] for row in run.rows}
        by_id.append({ids[problem]: value for problem, value in of_run.items()})
    return Measure(f"{name}@{k}", tuple(by_id))


def task_differences(runs: Sequence[RecordedRun]) -> list[str]:
    """The reasons why the runs' scores are not comparable, as one sentence each; empty if they are comparable."""
    first, sentences = runs[0], []
    for run in runs[1:]:
        for name, one, two in differences(first.settings, run.settings):
            known = one is not None and two is not None  # graded completions do not say how they were sampled
            if known and any(f"{name}.".startswith(f"{setting}.") for setting in _COMPARED):
                sentences.append(f"{name} is {one!r} in {first.name} and {two!r} in {run.name}")
    return sentences
