"""Statistics of evaluations: intervals, pass@k, majority votes and comparisons, as pure functions of scores.

The problem is the unit: the samples of one problem are not independent, so every function takes one number for each problem,
such as the mean score of its samples, and treats problems as drawn at random. `clusters` groups problems that belong together,
such as variants of one template or problems with the same prompt; if it is given, the cluster is the unit.
"""

from __future__ import annotations

import functools
import math
from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from statistics import NormalDist

import numpy as np
from numpy.typing import ArrayLike, NDArray

from verifiers.errors import InvalidArgumentError

Array = NDArray[np.float64]

LEVEL = 0.95
"""Probability with which an interval should cover the true value."""
FEW = 5
"""Minimum number of correct and of incorrect problems for an exact interval of a share. With fewer, the interval is
approximate: in simulations, it covered the true value in 89 % of the cases for 164 problems with a mean of 0.01, and in 92 %
for 40 problems with a mean of 0.05.
"""
FEW_PROBLEMS = 50
"""Minimum number of problems for an exact interval by Student's distribution. With fewer, the interval is approximate, since
scores are not normally distributed.
"""
_FEWEST_UNITS = math.ceil(1 - math.log2(1 - LEVEL))
"""Minimum number of units, 6: with fewer, the smallest p-value of a sign-flip test, 2/2^n, is too large to show a
difference."""
_EXACT_SIGN_FLIPS = 16
"""Maximum number of nonzero differences for which all assignments of signs are enumerated; for more, signs are sampled."""
_DRAWN_SIGN_FLIPS = 100_000
_ROUNDING = 1e-12
"""Share of the sizes of a sum's terms below which the sum counts as 0, since it may be only a rounding error."""
_LOST_IN_ROUNDING = 1e-22
"""A probability so small that many such terms change no digit of a sum whose largest terms are about 1."""
_BINARY_UNITS = (math.log(1 - LEVEL) / NormalDist().inv_cdf((1 + LEVEL) / 2)) ** 2
"""Number of units with value 0 or 1 that are mixed into the variance of shares, 2.3. With it, the interval around n equal
shares is about as wide as the exact interval, in which a different share has a probability of up to -log(0.05)/n (the "rule of
three", Hanley & Lippman-Hand 1983, doi:10.1001/jama.1983.03330370053031).
"""


@dataclass(frozen=True)
class Interval:
    """A two-sided confidence interval of probability `LEVEL`."""

    low: float
    high: float
    approximate: bool = False
    """Whether there are so few problems that the probability is only roughly `LEVEL`; see `FEW`."""


@dataclass(frozen=True)
class PairedDifference:
    """The difference b - a of paired scores, with its uncertainty."""

    difference: float
    """Mean difference over problems."""
    interval: Interval
    p_value: float
    """The p-value of the sign-flip test: the probability of a difference of at least this size, in either direction, if a and b
    are exchangeable."""
    detectable: float
    """The difference that would be detected with a probability of 80 %, given the variance of the differences. Infinite if it
    is unknown because all differences are equal, if there are too few units to detect any difference, or if it exceeds the
    largest possible difference."""
    problems: int
    units: int
    """Number of independent differences: of clusters, or of problems if each is its own cluster."""
    differing: int
    """Number of problems whose two scores differ."""

    @property
    def verdict(self) -> str:
        """`"better"` or `"worse"` if the interval lies on one side of 0, else `"no difference shown"`."""
        if self.interval.low > 0:
            return "better"
        return "worse" if self.interval.high < 0 else "no difference shown"


# Intervals


def share_interval(shares: ArrayLike, clusters: Sequence[Hashable] | None = None) -> Interval:
    """Confidence interval of a mean of shares in [0, 1], such as an accuracy.

    Wilson's score interval (1927), with the number of independent trials that would have the same standard error,
    n = m(1 - m)/SE², and the quantile of Student's distribution. Shares that differ little say little about unseen shares, so
    the variance includes 2.3 more units that are 0 or 1, with the same mean (like the pseudo-observations of Agresti & Min
    2005, doi:10.1002/sim.1781). This makes no difference if all shares are 0 or 1.

    Args:
        shares: f64[n], one share for each problem.
        clusters: The cluster of each problem; with None, each problem is its own cluster.

    Raises:
        InvalidArgumentError: If there are no problems, or a share is outside [0, 1].
    """
    values = _values(shares)
    if not ((values >= 0) & (values <= 1)).all():
        raise InvalidArgumentError("a share must be from 0 to 1: use mean_interval for other scores")
    mean, error, units = _mean_and_error(values, clusters)
    if units == 1:
        return Interval(0.0, 1.0, approximate=True)
    error = _error_of_shares(mean, error, units)
    trials = mean * (1 - mean) / error**2 if error > 0 else float(units)
    low, high = _wilson(mean, trials, t_quantile((1 + LEVEL) / 2, units - 1))
    return Interval(low, high, approximate=units * min(mean, 1 - mean) < FEW)


def score_interval(scores: ArrayLike, clusters: Sequence[Hashable] | None = None) -> Interval:
    """Confidence interval of a mean score: `share_interval` if all scores are in [0, 1], else `mean_interval`.

    Args:
        scores: f64[n], one score for each problem.
        clusters: As for `share_interval`.

    Raises:
        InvalidArgumentError: If there are no scores, or one is not finite.
    """
    values = _values(scores)
    shares = bool(((values >= 0) & (values <= 1)).all())
    if shares:
        return share_interval(values, clusters)
    interval = mean_interval(values, clusters)
    return replace(interval, approximate=interval.approximate or len(_cluster_sums(values, clusters)) < FEW_PROBLEMS)


def mean_interval(values: ArrayLike, clusters: Sequence[Hashable] | None = None) -> Interval:
    """Confidence interval of a mean by Student's distribution, for scores that are not shares, and for training seeds.

    A single unit, or equal units, give no information about the variance, so the interval is unbounded.

    Args:
        values: f64[n], one value for each problem or seed.
        clusters: As for `share_interval`.

    Raises:
        InvalidArgumentError: If there are no values, or one is not finite.
    """
    mean, error, units = _mean_and_error(_values(values), clusters)
    if units == 1 or error == 0:
        return Interval(-math.inf, math.inf, approximate=True)
    half = t_quantile((1 + LEVEL) / 2, units - 1) * error
    return Interval(mean - half, mean + half)


def proportion_interval(successes: float, trials: int) -> Interval:
    """Wilson's score interval of a proportion of independent trials; [0, 1] if there are none.

    Raises:
        InvalidArgumentError: If `successes` is not from 0 to `trials`.
    """
    if not 0 <= successes <= trials:
        raise InvalidArgumentError(f"successes must be from 0 to the number of trials, got {successes} of {trials}")
    if trials == 0:
        return Interval(0.0, 1.0, approximate=True)
    low, high = _wilson(successes / trials, trials, normal_quantile((1 + LEVEL) / 2))
    return Interval(low, high)


def interquartile_mean(values: ArrayLike) -> Array:
    """The mean f64[...] of the middle half of values f64[... n]; a value at the edge counts by the part that is inside.

    A robust centre of a few training seeds (Agarwal et al. 2021, arXiv:2108.13264).
    """
    array = np.asarray(values, dtype=np.float64)
    n = array.shape[-1]
    ranks = np.arange(n)
    weights = np.clip(np.minimum(ranks + 1, 0.75 * n) - np.maximum(ranks, 0.25 * n), 0, None)
    mean: Array = np.sort(array, axis=-1) @ weights / weights.sum()
    return mean


def _wilson(share: float, trials: float, quantile: float) -> tuple[float, float]:
    square = quantile**2 / trials
    center = (share + square / 2) / (1 + square)
    half = quantile * math.sqrt(share * (1 - share) / trials + square / (4 * trials)) / (1 + square)
    return (0.0 if share == 0 else center - half), (1.0 if share == 1 else center + half)


def _values(values: ArrayLike) -> Array:
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 1 or not len(array):
        raise InvalidArgumentError(f"expected one number for each of at least one problem, got the shape {array.shape}")
    if not np.isfinite(array).all():
        raise InvalidArgumentError("a value is not finite: leave out problems without a score")
    return array


def _mean_and_error(values: Array, clusters: Sequence[Hashable] | None) -> tuple[float, float, int]:
    """The mean, its standard error and the number of independent units; for clusters, the sandwich estimate times G/(G - 1).

    A standard error that is only a rounding error is set to 0.
    """
    mean = float(values.mean())
    sums = _cluster_sums(values - mean, clusters)
    units = len(sums)
    if units == 1:
        return mean, math.inf, 1
    error = math.sqrt(float(sums @ sums) / len(values) ** 2 * units / (units - 1))
    return mean, 0.0 if error <= _ROUNDING * float(np.abs(values).max()) else error, units


def _error_of_shares(mean: float, error: float, units: int) -> float:
    """The standard error of a mean of shares, including the variance of `_BINARY_UNITS`; see `share_interval`."""
    squares = error**2 * units * (units - 1) + _BINARY_UNITS * max(0.0, mean * (1 - mean))
    return math.sqrt(squares / ((units + _BINARY_UNITS) * (units - 1)))


def _cluster_sums(values: Array, clusters: Sequence[Hashable] | None) -> Array:
    """The sums f64[g] of each cluster's values, in order of first appearance; without clusters, the values themselves.

    If values cancel, the rounding error that is left is set to 0; a variance computed from it would shrink an interval to a
    point.
    """
    if clusters is None:
        return values
    if len(clusters) != len(values):
        raise InvalidArgumentError(f"expected a cluster for each of {len(values)} problems, got {len(clusters)}")
    number = {name: index for index, name in enumerate(dict.fromkeys(clusters))}
    if len(number) == len(values):
        return values
    indices = [number[name] for name in clusters]
    sums: Array = np.bincount(indices, weights=values).astype(np.float64)
    sizes = np.bincount(indices, weights=np.abs(values))
    sums[np.abs(sums) <= _ROUNDING * sizes] = 0.0
    return sums


# Several samples of a problem


def rerun_error(samples: Sequence[Sequence[float]]) -> float | None:
    """Standard error of a mean score over re-runs that draw other samples of the same problems.

    Intervals over problems already include this noise. A problem with one sample is given the mean variance of the other
    problems.

    Args:
        samples: The scores of each problem's samples, at least one for each problem.

    Returns:
        The standard error; None if no problem has two samples, since the variance is then unknown.
    """
    variances = [float(np.var(scores, ddof=1)) for scores in samples if len(scores) > 1]
    if not variances:
        return None
    mean = sum(variances) / len(variances)
    known = iter(variances)
    total = sum((next(known) if len(scores) > 1 else mean) / len(scores) for scores in samples)
    return math.sqrt(total) / len(samples)


def pass_at_k(samples: int, correct: int, k: int) -> float:
    """Probability that at least one of k samples drawn without replacement is correct.

    Chen et al. 2021, arXiv:2107.03374, equation 1.

    Args:
        samples: Number of samples of the problem.
        correct: Number of correct samples.
        k: Number of samples drawn.

    Raises:
        InvalidArgumentError: If k is less than 1 or more than the number of samples.
    """
    _check_draw(samples, k)
    if not 0 <= correct <= samples:
        raise InvalidArgumentError(f"correct must be from 0 to the {samples} samples, got {correct}")
    return 1.0 - math.comb(samples - correct, k) / math.comb(samples, k)


def majority_at_k(votes: Sequence[Hashable | None], correct: Hashable, k: int) -> float:
    """Probability that a majority vote among k samples drawn without replacement is correct.

    Self-consistency, Wang et al. 2022, arXiv:2203.11171. Ties are broken at random, so a tie between n answers counts 1/n if
    the correct answer is among them.

    Args:
        votes: The answer of each sample, equal if the verifier considers answers equal; None for a sample without an answer,
            which does not vote.
        correct: The correct answer.
        k: Number of samples drawn.

    Raises:
        InvalidArgumentError: If k is less than 1 or more than the number of samples.
    """
    _check_draw(len(votes), k)
    sizes = Counter(vote for vote in votes if vote is not None)
    supporters, others = sizes.pop(correct, 0), sorted(sizes.values())
    draw = functools.partial(_drawn, k, len(votes))
    supporting, wins = draw(supporters), 0.0
    for count in range(1, min(supporters, k) + 1):
        if supporting[count] < _LOST_IN_ROUNDING:
            continue
        rivals = [size for size in others if size >= count]
        free = len(votes) - supporters - sum(rivals)  # samples whose draw can't change the winner
        wins += float(supporting[count]) * _won(draw(free), [draw(size) for size in rivals], count, k - count)
    return min(1.0, wins / float(draw(len(votes))[k]))  # rounding may leave slightly more than 1


def _won(free: Array, rivals: Sequence[Array], count: int, draws: int) -> float:
    """The weight of all draws in which no wrong answer ("rival") has more than `count` samples.

    A draw in which t rivals tie with the correct answer counts 1/(1 + t).

    Args:
        free: f64[f], the weight of each number of samples that belong to no rival.
        rivals: f64[size + 1] for each rival, the weight of each number of its samples.
        count: Number of samples that the correct answer has, at least 1.
        draws: Number of samples left to draw.
    """
    # 1/(1 + t) is the integral of y^t from 0 to 1, so each tie has the factor y; Gauss's rule is exact for the polynomial.
    nodes, weights = np.polynomial.legendre.leggauss(min(len(rivals), draws // count) // 2 + 1)
    ways = np.zeros((len(nodes), draws + 1))
    ways[:, : len(free)] = free[: draws + 1]
    for rival in rivals:
        factors = np.tile(rival[: count + 1, None], len(nodes))
        factors[count] *= (nodes + 1) / 2
        before, ways = ways, ways * factors[0][:, None]
        for number in range(1, min(count, draws) + 1):
            ways[:, number:] += before[:, : draws + 1 - number] * factors[number][:, None]
    return float(weights @ ways[:, -1]) / 2


def _drawn(k: int, samples: int, size: int) -> Array:
    """Probability f64[size + 1] of each number of hits if each of `size` samples is drawn with the probability k/samples.

    If the total is k, these are the probabilities of a draw without replacement, and no number overflows.
    """
    weights = np.ones(size + 1)  # relative to the likeliest number; tails may underflow to 0, which changes no sum
    if k == samples:
        weights[:size] = 0.0
        return weights
    number = np.arange(size)
    ratios = (size - number) * k / ((number + 1) * (samples - k))
    likeliest = int(np.count_nonzero(ratios >= 1))
    weights[likeliest + 1 :] = np.cumprod(ratios[likeliest:])
    weights[:likeliest] = np.cumprod(1 / ratios[:likeliest][::-1])[::-1]
    drawn: Array = weights / weights.sum()
    return drawn


def _check_draw(samples: int, k: int) -> None:
    if not 1 <= k <= samples:
        raise InvalidArgumentError(f"k must be from 1 to the number of samples of each problem, {samples}, got {k}")


# Comparisons


def compare(
    a: ArrayLike, b: ArrayLike, clusters: Sequence[Hashable] | None = None, *, seed: int = 0
) -> PairedDifference:
    """Compare two scores of each problem.

    If all scores are shares, the interval is computed by `share_interval` for (1 + b - a)/2, which is a share too. It therefore
    lies within -1 and 1, and holds its level even if all differences are equal or nearly so. Differences of other scores may
    have any size; their interval is computed by `mean_interval`.

    Args:
        a: f64[n], one score for each problem.
        b: f64[n], the other scores of the same problems in the same order.
        clusters: As for `share_interval`.
        seed: Seeds the sampling of signs if there are too many assignments to enumerate.

    Raises:
        InvalidArgumentError: If the numbers of problems differ, or there are none.
    """
    differences, largest = _differences(a, b)
    mean, error, units = _mean_and_error(differences, clusters)
    p_value = sign_flip_test(_cluster_sums(differences, clusters), seed=seed)
    if largest < math.inf:
        shares = share_interval((1 + differences) / 2, clusters)
        interval = Interval(2 * shares.low - 1, 2 * shares.high - 1, shares.approximate)
    else:
        interval = mean_interval(differences, clusters)
    detectable = _detectable(mean, error, units, largest)
    differing = int(np.count_nonzero(differences))
    return PairedDifference(mean, interval, p_value, detectable, len(differences), units, differing)


def problems_needed(
    a: ArrayLike, b: ArrayLike, difference: float, clusters: Sequence[Hashable] | None = None
) -> int | None:
    """The number of problems that `compare` needs to detect a difference in 4 of 5 comparisons.

    The variance of the differences and the sizes of clusters are taken from these scores, as from a pilot study.

    Args:
        a: f64[n], one score for each problem.
        b: f64[n], the other scores of the same problems in the same order.
        difference: The size of the difference to detect.
        clusters: As for `share_interval`.

    Returns:
        The number of problems; None if the variance is unknown because there is only one unit or all differences are equal.

    Raises:
        InvalidArgumentError: If the numbers of problems differ, there are none, or `difference` is not positive or exceeds the
            largest possible difference.
    """
    differences, largest = _differences(a, b)
    if not 0 < difference <= largest or difference == math.inf:
        raise InvalidArgumentError(
            f"a difference to detect must be more than 0 and at most {largest:g}, got {difference}"
        )
    mean, error, units = _mean_and_error(differences, clusters)
    if units == 1 or error == 0:
        return None
    low, high = _FEWEST_UNITS - 1, _FEWEST_UNITS
    while _detectable(mean, error * math.sqrt(units / high), high, largest) > difference:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        enough = _detectable(mean, error * math.sqrt(units / middle), middle, largest) <= difference
        low, high = (low, middle) if enough else (middle, high)
    return math.ceil(high * len(differences) / units)


def _differences(a: ArrayLike, b: ArrayLike) -> tuple[Array, float]:
    """The differences b - a f64[n], with rounding errors set to 0, and their largest possible size: 1 for shares, else inf."""
    first, second = _values(a), _values(b)
    if len(first) != len(second):
        raise InvalidArgumentError(f"expected two scores of each problem, got {len(first)} and {len(second)}")
    both = np.stack([first, second])
    differences = second - first
    differences[np.abs(differences) <= _ROUNDING * np.abs(both).max(axis=0)] = 0.0
    return differences, 1.0 if ((both >= 0) & (both <= 1)).all() else math.inf


def _detectable(mean: float, error: float, units: int, largest: float) -> float:
    """The difference that would be detected in 4 of 5 comparisons; infinite if unknown or larger than possible."""
    if error == 0 or units < _FEWEST_UNITS:
        return math.inf
    if largest < math.inf:
        error = 2 * _error_of_shares((1 + mean) / 2, error / 2, units)
    detectable = (t_quantile((1 + LEVEL) / 2, units - 1) + t_quantile(0.8, units - 1)) * error
    return detectable if detectable <= largest else math.inf


def sign_flip_test(differences: ArrayLike, *, seed: int = 0) -> float:
    """Two-sided p-value of the sum of differences f64[n], if each sign is equally probable (Fisher 1935).

    Exact for up to 16 nonzero differences. For more, signs are sampled, and the observed signs count as one of the samples, so
    that the test keeps its level.
    """
    values = _values(differences)
    values = values[values != 0]
    observed = abs(values.sum()) * (1 - 1e-12)  # so that rounding does not decide
    if len(values) <= _EXACT_SIGN_FLIPS:
        sums = np.zeros(1)
        for value in values:
            sums = np.concatenate([sums + value, sums - value])
        return float((np.abs(sums) >= observed).mean())
    generator = np.random.default_rng(seed)
    hits, left = 1, _DRAWN_SIGN_FLIPS
    while left > 0:
        rows = min(left, max(1, 10**6 // len(values)))
        signs = generator.integers(0, 2, size=(rows, len(values)), dtype=np.int8) * 2 - 1
        hits += int((np.abs(signs @ values) >= observed).sum())
        left -= rows
    return hits / (_DRAWN_SIGN_FLIPS + 1)


def holm(p_values: Sequence[float]) -> list[float]:
    """Adjust the p-values of several tests so that the chance of any false finding stays below the level (Holm 1979)."""
    order = sorted(range(len(p_values)), key=p_values.__getitem__)
    adjusted, largest = [0.0] * len(p_values), 0.0
    for rank, index in enumerate(order):
        largest = max(largest, min(1.0, (len(p_values) - rank) * p_values[index]))
        adjusted[index] = largest
    return adjusted


# Quantiles


_MANY_DEGREES = 200


@functools.lru_cache(maxsize=4096)
def t_quantile(probability: float, degrees: int) -> float:
    """The quantile of Student's distribution, accurate to ten digits.

    Args:
        probability: In (0, 1).
        degrees: Degrees of freedom, at least 1.
    """
    if probability < 0.5:
        return -t_quantile(1 - probability, degrees)
    if degrees >= _MANY_DEGREES:
        return _t_quantile_of_many(normal_quantile(probability), degrees)
    low, high = 0.0, math.pi / 2  # bounds of the angle whose tangent is t / sqrt(degrees)
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if _within(middle, degrees) < 2 * probability - 1 else (low, middle)
    return math.sqrt(degrees) * math.tan(low)


def _within(angle: float, degrees: int) -> float:
    """The probability that Student's t is less than sqrt(degrees) tan(angle) in size (Abramowitz & Stegun 26.7.3, 26.7.4)."""
    square = math.cos(angle) ** 2
    odd = degrees % 2
    term, total = (math.cos(angle), 0.0) if odd else (1.0, 0.0)
    for power in range(odd + 1, degrees, 2):
        total += term
        term *= square * power / (power + 1)
    total *= math.sin(angle)
    return 2 / math.pi * (angle + total) if odd else total


def _t_quantile_of_many(z: float, degrees: int) -> float:
    """The quantile of Student's distribution by Fisher's expansion about the normal quantile z (Abramowitz & Stegun 26.7.5)."""
    terms = (
        z,
        (z**3 + z) / 4,
        (5 * z**5 + 16 * z**3 + 3 * z) / 96,
        (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384,
        (79 * z**9 + 776 * z**7 + 1482 * z**5 - 1920 * z**3 - 945 * z) / 92160,
    )
    return math.fsum(term / float(degrees) ** power for power, term in enumerate(terms))


def normal_quantile(probability: float) -> float:
    """The quantile of the normal distribution for a probability in (0, 1)."""
    return NormalDist().inv_cdf(probability)
