"""Compares pairs of models as their problems are drawn, until each pair is decided."""

from __future__ import annotations

import itertools
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass

from agents.console.counting import counted
from agents.runs.drawing_order import drawing_order
from agents.runs.evaluation import MAX_ERROR_SHARE
from agents.runs.reading import RecordedRun, paired_clusters
from verifiers import DataError
from verifiers.confidence_sequences import SequentialComparison, compare_sequentially
from verifiers.statistics import LEVEL


@dataclass(frozen=True)
class Rules:
    """Rules for when a pair is decided."""

    margin: float = 0.0
    """Models whose scores differ by less than this are practically equal."""
    max_error_share: float = MAX_ERROR_SHARE
    """Largest share of problems on which one of the two models has no score; above it nothing is decided."""
    order_seed: int = 0
    """Seed of the order in which problems are drawn."""
    largest_cluster: int | None = None
    """Number of problems of the largest cluster; None for the largest cluster among the problems drawn."""


@dataclass(frozen=True)
class PairDecision:
    """The state of a comparison of two models after some problems."""

    first: str
    second: str
    comparison: SequentialComparison
    """The second model's score minus the first model's."""
    excluded: int
    """Number of problems on which one of the two models has no score."""
    rules: Rules

    @property
    def too_many_errors(self) -> bool:
        """Whether so many problems have no score that nothing is decided."""
        return self.excluded > self.rules.max_error_share * (self.excluded + self.comparison.problems)

    @property
    def decision(self) -> str | None:
        """Whether the second model is `"better"`, `"worse"` or `"equal"`; None if nothing is decided."""
        return None if self.too_many_errors else self.comparison.decision

    def __str__(self) -> str:
        result = self.comparison
        low, high = result.interval.low, result.interval.high
        measured = f"{result.difference:+.3f}, 95 % at all looks {low:+.3f} to {high:+.3f}"
        measured += f"; left out: {counted(self.excluded, 'problem')} without a score" if self.excluded else ""
        pair = f"{self.second} and {self.first}"
        if self.too_many_errors:
            share = f"{self.rules.max_error_share:.0%}"
            return f"{pair} are not compared: more than {share} of the problems are left out ({measured})"
        if self.decision is None:
            return f"{pair} are not decided after {counted(result.problems, 'problem')} ({measured})"
        after = f"decided after {counted(result.decided_after or 0, 'problem')} ({measured})"
        if self.decision == "equal":
            return f"{pair} are practically equal, within {self.rules.margin:g}: {after}"
        return f"{self.second} is {self.decision} than {self.first}: {after}"


def decide_pairs(runs: Sequence[RecordedRun], rules: Rules, names: Sequence[str] | None = None) -> list[PairDecision]:
    """Compare every two runs on the problems that both answered, in the order in which problems are drawn.

    The probability that any decision is wrong is at most 5 %, over all pairs and all looks, if the runs answered the first
    problems of this order, as do runs with this `order_seed`, or runs on a whole data set.

    Args:
        runs: Two or more runs.
        rules: Rules for when a pair is decided.
        names: Names of the runs; None for their folders.

    Raises:
        DataError: If a run has two problems with the same id, or two runs share no problem.
        InvalidArgumentError: If a score is not from 0 to 1.
    """
    pairs = list(itertools.combinations(range(len(runs)), 2))
    level = 1 - (1 - LEVEL) / len(pairs)
    scores = [run.problem_scores() for run in runs]
    asked = [dict.fromkeys(row["problem_id"] for row in run.rows) for run in runs]
    known = list(dict.fromkeys(itertools.chain.from_iterable(asked)))
    clusters = dict(zip(known, paired_clusters(runs, known), strict=True))
    order = drawing_order(known, clusters, rules.order_seed)
    called = [run.name for run in runs] if names is None else names
    decisions = []
    for one, two in pairs:
        shared = [problem for problem in order if problem in asked[one] and problem in asked[two]]
        if not shared:
            raise DataError(f"{runs[one].folder} and {runs[two].folder} have no problem in common")
        decisions.append(
            _decided(shared, (scores[one], scores[two]), clusters, level, rules, (called[one], called[two]))
        )
    return decisions


def _decided(
    shared: Sequence[str],
    scores: tuple[Mapping[str, float], Mapping[str, float]],
    clusters: Mapping[str, Hashable],
    level: float,
    rules: Rules,
    names: tuple[str, str],
) -> PairDecision:
    first, second = scores
    paired = [problem for problem in shared if problem in first and problem in second]
    comparison = compare_sequentially(
        [first[problem] for problem in paired],
        [second[problem] for problem in paired],
        [clusters[problem] for problem in paired],
        margin=rules.margin,
        level=level,
        largest_cluster=rules.largest_cluster,
    )
    return PairDecision(*names, comparison, len(shared) - len(paired), rules)
