"""Confidence sequences: comparisons that may be checked after every problem and stopped as soon as they are decided.

A p-value or an interval for a fixed number of problems is valid for a single look. A confidence sequence is valid for all looks
together: the probability that it ever misses the true value is at most 1 - level, however often it is checked and whatever the
reason to stop.

Evidence against the claim that a mean is at most m is the capital of a gambler who bets on the next value being larger: each
value x from -1 to 1 multiplies it by 1 + λ(x - m). If the claim holds, no strategy is expected to gain, so the probability that
the capital ever reaches 1/α times its start is at most α (Ville 1939). Here the capital is divided evenly among a few fixed λ,
so it depends on the values and not on their order. Small λ find small differences; large λ find large differences soon. The
interval contains every m against which the evidence, from either side, is less than 1/α.

Sources: Waudby-Smith & Ramdas 2024, "Estimating means of bounded random variables by betting", arXiv:2010.09686 (bets, and
capital divided among several); Howard, Ramdas, McAuliffe & Sekhon 2021, "Time-uniform, nonparametric, nonasymptotic confidence
sequences", arXiv:1810.08240 (mixtures over λ).
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from verifiers.errors import InvalidArgumentError
from verifiers.statistics import LEVEL, Array, Interval

Decision = Literal["better", "worse", "equal"]

_BETS = np.geomspace(0.03, 0.95, 10)
"""The stakes λ, as shares of the largest stake at which no value can ruin the gambler. Each stake is about half as large again
as the one before, so the best stake is within a quarter of one of them. The smallest suits a difference of 0.006 if a fifth of
the problems differ.
"""
_HALVINGS = 40
"""Number of bisection steps for each end of an interval; they find the end to within 1e-12."""


@dataclass(frozen=True)
class SequentialComparison:
    """The difference b - a of paired scores, over all problems so far."""

    decision: Decision | None
    """`"better"` or `"worse"` once the interval lies on one side of 0, `"equal"` once it lies within the margin; the first
    decision stays. None if nothing is decided."""
    decided_after: int | None
    """Number of problems after which the decision was made."""
    difference: float
    """Mean difference over problems."""
    interval: Interval
    """All differences that no look has excluded so far."""
    problems: int


def compare_sequentially(
    a: ArrayLike,
    b: ArrayLike,
    clusters: Sequence[Hashable] | None = None,
    *,
    margin: float = 0.0,
    level: float = LEVEL,
    largest_cluster: int | None = None,
) -> SequentialComparison:
    """Compare two scores of each problem, with a look at the result after each problem or each cluster.

    A decision is wrong with a probability of at most 1 - level, and more problems never revoke it. Problems are assumed to be
    drawn at random, one after the other or cluster by cluster.

    Args:
        a: f64[n], a score from 0 to 1 for each problem: the mean over its samples.
        b: f64[n], the other scores of the same problems in the same order.
        clusters: The cluster of each problem; the problems of a cluster are adjacent. With None, each problem is its own
            cluster.
        margin: Differences of less than this are practically none; 0 if every difference matters.
        level: Probability that all looks are right; for each of k pairs that are compared, 1 - (1 - level)/k.
        largest_cluster: Number of problems of the largest cluster that may follow; None for the largest of `clusters`.

    Raises:
        InvalidArgumentError: If scores are not from 0 to 1, their numbers differ, the problems of a cluster are not adjacent, a
            cluster is larger than `largest_cluster`, or `margin` or `level` is not from 0 to 1.
    """
    differences = _differences(a, b)
    if not 0 <= margin < 1 or not 0 < level < 1:
        raise InvalidArgumentError(f"margin and level must be from 0 to 1, got {margin} and {level}")
    sizes = _cluster_sizes(clusters, len(differences))
    most = int(sizes.max(initial=1)) if largest_cluster is None else largest_cluster
    if sizes.max(initial=1) > most:
        raise InvalidArgumentError(f"a cluster has {int(sizes.max())} problems, and largest_cluster is {most}")
    ends = np.cumsum(sizes)
    values = np.add.reduceat(differences, ends - sizes) / sizes if len(sizes) else differences
    shares, needed = sizes / most, math.log(2 / (1 - level))
    moments: dict[Decision, float] = {
        "better": _first(values, shares, 0.0, needed),
        "worse": _first(-values, shares, 0.0, needed),
        "equal": max(_first(side, shares, -margin, needed) for side in (values, -values)) if margin else math.inf,
    }
    decision = min(moments, key=moments.__getitem__)
    decided = math.isfinite(moments[decision])
    return SequentialComparison(
        decision=decision if decided else None,
        decided_after=int(ends[int(moments[decision])]) if decided else None,
        difference=float(differences.mean()) if len(differences) else 0.0,
        interval=Interval(_lower_end(values, shares, needed), -_lower_end(-values, shares, needed)),
        problems=len(differences),
    )


def log_evidence(values: ArrayLike, mean: float, shares: ArrayLike = 1.0) -> Array:
    """The logarithm of the evidence, after each value, against the claim that the mean of the values is at most `mean`.

    If the claim holds, the probability that this logarithm ever exceeds log(1/α) is at most α.

    Args:
        values: f64[... n], from -1 to 1.
        mean: The mean that is claimed, more than -1 and at most 1.
        shares: f64[n], from 0 to 1, the share of the stakes to bet on each value; it must be known before the value. A
            cluster's share is proportional to its size.

    Returns:
        f64[... n].
    """
    gains = np.asarray(shares) * (np.asarray(values, dtype=np.float64) - mean) / (1 + mean)
    capitals = np.stack([np.cumsum(np.log1p(bet * gains), axis=-1) for bet in _BETS])
    largest = capitals.max(axis=0)
    evidence: Array = largest + np.log(np.exp(capitals - largest).mean(axis=0))
    return evidence


def _differences(a: ArrayLike, b: ArrayLike) -> Array:
    first, second = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
    if first.ndim != 1 or first.shape != second.shape:
        raise InvalidArgumentError(
            f"expected two scores of each problem, got the shapes {first.shape} and {second.shape}"
        )
    both = np.stack([first, second])
    if not ((both >= 0) & (both <= 1)).all():
        raise InvalidArgumentError(
            "a comparison that is looked at all along needs scores from 0 to 1, whose range is known"
        )
    return second - first


def _cluster_sizes(clusters: Sequence[Hashable] | None, problems: int) -> NDArray[np.int64]:
    """The number of problems of each cluster, i64[g], in order."""
    if clusters is None:
        return np.ones(problems, dtype=np.int64)
    if len(clusters) != problems:
        raise InvalidArgumentError(f"expected a cluster for each of {problems} problems, got {len(clusters)}")
    starts = [index for index in range(problems) if index == 0 or clusters[index] != clusters[index - 1]]
    if len({clusters[index] for index in starts}) < len(starts):
        raise InvalidArgumentError("the problems of a cluster must stand together, since it is one draw")
    return np.diff([*starts, problems]).astype(np.int64)


def _first(values: Array, shares: Array, mean: float, needed: float) -> float:
    """The index of the value after which the mean is shown to be above `mean`; infinite if it never is."""
    reached = log_evidence(values, mean, shares) >= needed
    return float(reached.argmax()) if reached.any() else math.inf


def _lower_end(values: Array, shares: Array, needed: float) -> float:
    """The largest lower bound on the mean that was established at any look; -1 if none was."""
    low, high = -1.0, 1.0
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if math.isfinite(_first(values, shares, middle, needed)) else (low, middle)
    return low
