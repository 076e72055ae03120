"""Runs compared with a first one, problem by problem."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from agents.files.json_files import differences
from agents.results.reading import RecordedRun, paired_scores
from verifiers import InvalidArgumentError, statistics

_COMPARED = (
    "env",
    "split",
    "environment.dataset",
    "environment.prompt",
    "environment.verifier",
    "environment.max_new_tokens",
)
"""Settings of which a difference makes scores those of another task."""


@dataclass(frozen=True)
class RunComparison:
    """One run beside the first."""

    run: RecordedRun
    score: float
    """Mean over the problems that all runs have."""
    interval: statistics.Interval
    comparison: statistics.PairedDifference | None
    """The run's score minus the first run's; None for the first itself."""
    p_value: float | None
    """Of the sign-flip test, adjusted for the number of runs by Holm's method."""

    def sentence(self, first: RecordedRun) -> str:
        """The comparison in words, which claim a difference only where the interval and the adjusted test both show it."""
        if self.comparison is None:
            raise InvalidArgumentError("the first run is compared with nothing")
        result, p_value = self.comparison, 1.0 if self.p_value is None else self.p_value
        low, high = result.interval.low, result.interval.high
        if low == high == 0:
            return (
                f"{self.run.name} and {first.name} have the same score on every one of the {result.problems} problems"
            )
        measured = f"{result.difference:+.3f}, 95 % interval {low:+.3f} to {high:+.3f}, p = {p_value:.3g}"
        # Of several runs some intervals miss 0 by chance, and so does that of few problems that happen to agree.
        if result.verdict == "no difference shown" or p_value > 1 - statistics.LEVEL:
            return (
                f"no difference between {self.run.name} and {first.name} is shown ({measured}; one of {result.detectable:.3f} "
                f"would be found in 4 of 5 such comparisons)"
            )
        return f"{self.run.name} is {result.verdict} than {first.name} ({measured})"


def compare_runs(runs: Sequence[RecordedRun]) -> tuple[int, list[RunComparison]]:
    """Compare every run with the first, on the problems that all of them have.

    Returns:
        How many problems these are, and one comparison for each run, in order.

    Raises:
        InvalidArgumentError: If there are fewer than two runs, or one is named twice.
        DataError: If the runs share no problem, or have several with one id.
    """
    if len(runs) < 2:
        raise InvalidArgumentError(f"a comparison takes at least two runs, got {len(runs)}")
    folders = [run.folder.resolve() for run in runs]
    if len(set(folders)) < len(folders):
        raise InvalidArgumentError("a run is named twice: compare different runs")
    problems, scores = paired_scores(runs)
    results = [statistics.compare(scores[0], other) for other in scores[1:]]
    adjusted = statistics.holm([result.p_value for result in results])
    rows: list[RunComparison] = []
    for run, values, result, p_value in zip(runs, scores, [None, *results], [None, *adjusted], strict=True):
        rows.append(RunComparison(run, float(values.mean()), statistics.score_interval(values), result, p_value))
    return len(problems), rows


def task_differences(runs: Sequence[RecordedRun]) -> list[str]:
    """What makes the runs' scores those of different tasks, a sentence each; empty where nothing does."""
    first, sentences = runs[0], []
    for run in runs[1:]:
        for name, one, two in differences(first.settings, run.settings):
            known = one is not None and two is not None  # graded completions do not say how they were sampled
            if known and any(f"{name}.".startswith(f"{setting}.") for setting in _COMPARED):
                sentences.append(f"{name} is {one!r} in {first.name} and {two!r} in {run.name}")
    return sentences
