"""Ranks of models from comparisons of every two models, which may leave some ranks open."""

from __future__ import annotations

import itertools
from collections.abc import Hashable, Iterable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from agents.runs.decisions import PairDecision
from agents.runs.reading import RecordedRun, paired_clusters, paired_scores
from verifiers import DataError, statistics

Better = tuple[str, str]
"""The better of two models, then the worse."""


def rank_ranges(names: Sequence[str], better: Iterable[Better]) -> dict[str, tuple[int, int]]:
    """The range of ranks that each model may have: below all better models, and above all worse models.

    Args:
        names: The models.
        better: The decided pairs; in any other pair, either model may be ahead.
    """
    decided = set(better)
    ranges = {}
    for name in names:
        above, below = (sum(pair[side] == name for pair in decided) for side in (1, 0))
        ranges[name] = (1 + above, len(names) - below)
    return ranges


def better_by_decisions(decisions: Iterable[PairDecision]) -> list[Better]:
    """The better and the worse model of each decided pair, from comparisons that stopped as soon as they were decided."""
    return [
        (decision.second, decision.first) if decision.decision == "better" else (decision.first, decision.second)
        for decision in decisions
        if decision.decision in ("better", "worse")
    ]


def better_by_tests(runs: Mapping[str, Sequence[RecordedRun]]) -> list[Better]:
    """The better and the worse model of each decided pair, by the mean over some environments with equal weights.

    Differences are paired by problem, clusters stay together, and p-values are adjusted by Holm's method for all pairs: a pair
    is decided if the interval excludes 0 and the adjusted p-value is below 0.05. Problems are treated as drawn from all
    environments together, so differences between environments make the test more conservative, not less.

    Args:
        runs: The runs of each model, one for each environment, in the same order.
    """
    compared = []
    for one, two in itertools.combinations(runs, 2):
        parts = list(map(_shared, zip(runs[one], runs[two], strict=True)))
        if not all(of_part[1] for of_part in parts):  # on some environment, no problem has scores of both models
            continue
        size = sum(len(clusters) for _, clusters in parts) / len(parts)
        a, b = (np.concatenate([scores[side] * size / len(clusters) for scores, clusters in parts]) for side in (0, 1))
        together = [(number, cluster) for number, (_, clusters) in enumerate(parts) for cluster in clusters]
        compared.append(((one, two), statistics.compare(a, b, together)))
    adjusted = statistics.holm([result.p_value for _, result in compared])
    return [
        (two, one) if result.verdict == "better" else (one, two)
        for ((one, two), result), p_value in zip(compared, adjusted, strict=True)
        if result.verdict != "no difference shown" and p_value < 1 - statistics.LEVEL
    ]


def _shared(runs: tuple[RecordedRun, RecordedRun]) -> tuple[NDArray[np.float64], list[Hashable]]:
    """The scores f64[2 p] of the problems that two runs have in common, and their clusters."""
    try:
        problems, scores = paired_scores(runs)
    except DataError:
        return np.empty((2, 0)), []
    return scores, paired_clusters(runs, problems)
