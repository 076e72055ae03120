"""Statistics by hand, by enumeration, and by simulation of what they promise."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Callable

import mpmath
import numpy as np
import pytest
from hypothesis import given, strategies as st

from verifiers import InvalidArgumentError
from verifiers.statistics import (
    compare,
    holm,
    interquartile_mean,
    majority_at_k,
    mean_interval,
    normal_quantile,
    pass_at_k,
    proportion_interval,
    rerun_error,
    share_interval,
    sign_flip_test,
    t_quantile,
)

# Quantiles


@pytest.mark.parametrize(
    ("probability", "degrees", "expected"),
    [
        (0.975, 1, 12.70620),
        (0.975, 4, 2.77645),
        (0.975, 163, 1.97462),
        (0.8, 9, 0.88340),
        (0.025, 30, -2.04227),
        (0.5, 3, 0),
    ],
)
def test_quantiles_of_students_distribution_from_tables(probability: float, degrees: int, expected: float) -> None:
    assert t_quantile(probability, degrees) == pytest.approx(expected, abs=1e-5)


def test_quantiles_in_closed_form() -> None:
    """With one degree of freedom it is Cauchy's distribution, with two p = 1/2 + t / (2 sqrt(2 + t²))."""
    for probability in (0.6, 0.9, 0.999):
        assert t_quantile(probability, 1) == pytest.approx(math.tan(math.pi * (probability - 0.5)), rel=1e-12)
        t = t_quantile(probability, 2)
        assert 0.5 + t / (2 * math.sqrt(2 + t * t)) == pytest.approx(probability, abs=1e-14)
    assert t_quantile(0.975, 10**7) == pytest.approx(normal_quantile(0.975), abs=1e-6)


@pytest.mark.parametrize("degrees", [3, 4, 7, 30, 199, 200, 1318])
@pytest.mark.parametrize("probability", [0.55, 0.8, 0.975, 0.999])
def test_quantiles_against_the_incomplete_beta_function(probability: float, degrees: int) -> None:
    t = t_quantile(probability, degrees)
    tail = mpmath.betainc(degrees / 2, 0.5, 0, degrees / (degrees + mpmath.mpf(t) ** 2), regularized=True) / 2
    assert float(1 - tail) == pytest.approx(probability, abs=1e-10)


# Intervals by hand


@pytest.mark.parametrize(
    ("successes", "trials", "low", "high"),
    [(81, 263, 0.2553, 0.3662), (15, 148, 0.0624, 0.1605), (0, 20, 0.0, 0.1611), (1, 29, 0.0061, 0.1718)],
)
def test_wilson_intervals_of_newcombe_1998(successes: int, trials: int, low: float, high: float) -> None:
    interval = proportion_interval(successes, trials)
    assert (interval.low, interval.high) == pytest.approx((low, high), abs=6e-5)


def test_single_samples_have_the_wilson_interval_with_students_quantile() -> None:
    """Of 1s and 0s the standard error is that of n - 1 trials."""
    shares = [1.0] * 6 + [0.0] * 14
    t, n, p = t_quantile(0.975, 19), 19, 0.3
    center, spread = (p + t * t / (2 * n)) / (1 + t * t / n), t / (1 + t * t / n)
    half = spread * math.sqrt(p * (1 - p) / n + t * t / (4 * n * n))
    interval = share_interval(shares)
    assert (interval.low, interval.high) == pytest.approx((center - half, center + half), rel=1e-12)
    assert not interval.approximate


def test_mean_intervals_by_hand() -> None:
    """Of 1, 2, 3, 6: mean 3, standard error sqrt(14/3/4), three degrees of freedom."""
    interval = mean_interval([1.0, 2.0, 3.0, 6.0])
    half = 3.182446 * math.sqrt(14 / 3 / 4)
    assert (interval.low, interval.high) == pytest.approx((3 - half, 3 + half), abs=1e-5)


@given(st.lists(st.integers(0, 4), min_size=1, max_size=30))
def test_share_intervals_are_symmetric_and_stay_within_0_and_1(counts: list[int]) -> None:
    shares = [count / 4 for count in counts]
    interval, mirrored = share_interval(shares), share_interval([1 - share for share in shares])
    assert -1e-12 <= interval.low <= np.mean(shares) + 1e-12
    assert np.mean(shares) - 1e-12 <= interval.high <= 1 + 1e-12
    assert (interval.low, interval.high) == pytest.approx((1 - mirrored.high, 1 - mirrored.low), abs=1e-9)


def test_clusters_of_one_change_nothing_and_clusters_of_equal_problems_count_once() -> None:
    shares = [0.0, 1.0, 0.5, 0.25, 1.0, 0.0]
    assert share_interval(shares, clusters=list("abcdef")) == share_interval(shares)
    doubled = share_interval(shares * 2, clusters=list("abcdef") * 2)
    single = share_interval(shares)
    assert (doubled.low, doubled.high) == pytest.approx((single.low, single.high), rel=1e-12)


def test_few_right_problems_make_an_interval_approximate() -> None:
    assert share_interval([1.0] * 4 + [0.0] * 996).approximate
    assert not share_interval([1.0] * 5 + [0.0] * 995).approximate
    assert share_interval([0.0] * 4 + [1.0] * 20).approximate
    assert share_interval([1.0]) == share_interval([0.0])  # of one problem nothing is known


@pytest.mark.parametrize("function", [share_interval, mean_interval])
@pytest.mark.parametrize("values", [[], [[0.5]], [math.nan, 0.0], [math.inf]])
def test_what_is_no_list_of_numbers_is_refused(function: Callable[..., object], values: object) -> None:
    with pytest.raises(InvalidArgumentError):
        function(values)


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(InvalidArgumentError, match="a share must be from 0 to 1: use mean_interval"):
        share_interval([1.5])
    with pytest.raises(InvalidArgumentError, match="a cluster for each of 2 problems, got 1"):
        share_interval([1.0, 0.0], clusters=["a"])
    with pytest.raises(InvalidArgumentError, match="got 3 of 2"):
        proportion_interval(3, 2)
    with pytest.raises(InvalidArgumentError, match="two scores of each problem, got 1 and 2"):
        compare([1.0], [1.0, 0.0])


# Coverage


def coverage(problems: int, samples: int, mean: float, *, spread: float = 1.0, trials: int = 2000) -> float:
    """How often the interval covers the mean of problems whose chances follow a beta distribution."""
    rng = np.random.default_rng(problems + samples)
    hits = 0
    for _ in range(trials):
        chances = rng.beta(mean * spread, (1 - mean) * spread, problems)
        interval = share_interval(rng.binomial(samples, chances) / samples)
        hits += interval.low <= mean <= interval.high
    return hits / trials


@pytest.mark.parametrize(
    ("problems", "samples", "mean"), [(164, 8, 0.3), (500, 1, 0.5), (1319, 1, 0.9), (30, 32, 0.2), (100, 8, 0.7)]
)
def test_intervals_cover_the_truth_as_often_as_they_say(problems: int, samples: int, mean: float) -> None:
    """Within 93 to 97 %, where 2000 trials have a standard error of 0.5 %."""
    assert 0.93 <= coverage(problems, samples, mean) <= 0.97


@pytest.mark.parametrize(("problems", "samples", "mean"), [(164, 8, 0.05), (500, 1, 0.02), (1000, 4, 0.01)])
def test_intervals_of_small_means_cover_the_truth_about_as_often(problems: int, samples: int, mean: float) -> None:
    assert 0.925 <= coverage(problems, samples, mean) <= 0.985


def test_intervals_of_clusters_cover_the_truth() -> None:
    """Six clusters of 50 problems that share their chance."""
    rng, hits = np.random.default_rng(0), 0
    names = np.repeat(np.arange(6), 50).tolist()
    for _ in range(2000):
        chances = np.repeat(rng.beta(2, 2, 6), 50)
        interval = share_interval(rng.binomial(1, chances).astype(float), clusters=names)
        hits += interval.low <= 0.5 <= interval.high
    assert 0.93 <= hits / 2000 <= 0.97


# Several samples of a problem


def test_rerun_noise_is_the_spread_of_scores_with_other_samples() -> None:
    """Of problems with chances 0.2, 0.5 and 1, in four samples each; by hand, and as often as it is run again."""
    assert rerun_error([[1.0], [0.0]]) is None  # one sample has none
    assert rerun_error([[0.0, 1.0], [1.0, 1.0]]) == pytest.approx((0.5 / 2) ** 0.5 / 2)
    assert rerun_error([[0.0, 1.0], [1.0]]) == pytest.approx((0.5 / 2 + 0.5) ** 0.5 / 2)  # the other's variance
    chances, rng = np.array([0.2, 0.5, 1.0]), np.random.default_rng(0)
    draws = rng.binomial(1, chances[:, None], (4000, 3, 4)).astype(float)
    expected = draws.mean(axis=(1, 2)).std()
    squares = [error**2 for draw in draws if (error := rerun_error(draw.tolist())) is not None]
    assert np.mean(squares) ** 0.5 == pytest.approx(expected, rel=0.05)  # of 4000, within 1.2 %


def answers() -> st.SearchStrategy[list[str | None]]:
    return st.lists(st.sampled_from(["a", "b", "c", None]), min_size=1, max_size=7)


@given(answers(), st.data())
def test_majority_votes_equal_the_mean_over_all_draws(votes: list[str | None], data: st.DataObject) -> None:
    k = data.draw(st.integers(1, len(votes)))
    total, draws = 0.0, list(itertools.combinations(votes, k))
    for drawn in draws:
        counts = Counter(vote for vote in drawn if vote is not None)
        leaders = [vote for vote, count in counts.items() if count == max(counts.values())]
        total += ("a" in leaders) / max(1, len(leaders))
    assert majority_at_k(votes, "a", k) == pytest.approx(total / len(draws), abs=1e-12)


@given(st.lists(st.booleans(), min_size=1, max_size=9), st.data())
def test_pass_at_k_equals_the_mean_over_all_draws(right: list[bool], data: st.DataObject) -> None:
    k = data.draw(st.integers(1, len(right)))
    draws = list(itertools.combinations(right, k))
    assert pass_at_k(len(right), sum(right), k) == pytest.approx(sum(map(any, draws)) / len(draws), abs=1e-12)


def test_more_draws_than_samples_are_refused() -> None:
    for call in (lambda: pass_at_k(4, 1, 5), lambda: majority_at_k(["a"] * 4, "a", 5), lambda: pass_at_k(4, 1, 0)):
        with pytest.raises(InvalidArgumentError, match="k must be from 1 to the number of samples of each problem, 4"):
            call()
    with pytest.raises(InvalidArgumentError, match="correct must be from 0 to the 4 samples, got 5"):
        pass_at_k(4, 5, 1)


# Comparisons


@given(st.lists(st.integers(-3, 3), min_size=1, max_size=8))
def test_the_sign_flip_test_counts_every_assignment(differences: list[int]) -> None:
    sums = [
        abs(sum(map(math.prod, zip(signs, differences, strict=True))))
        for signs in itertools.product((1, -1), repeat=len(differences))
    ]
    expected = sum(difference >= abs(sum(differences)) for difference in sums) / len(sums)
    assert sign_flip_test([float(difference) for difference in differences]) == pytest.approx(expected)


def test_drawn_signs_agree_with_the_binomial_test() -> None:
    """Of 30 differences of one size, 21 up: the two-sided binomial test."""
    tail = 2 * sum(math.comb(30, count) for count in range(21, 31)) / 2**30
    assert sign_flip_test([1.0] * 21 + [-1.0] * 9) == pytest.approx(tail, abs=0.002)


def test_a_comparison_by_hand() -> None:
    """Differences 0.5, 0.5, 0, 1: mean 0.5, standard error sqrt(1/6/4), three degrees of freedom."""
    result = compare([0.0, 0.5, 1.0, 0.0], [0.5, 1.0, 1.0, 1.0])
    error = math.sqrt(1 / 6 / 4)
    assert result.difference == pytest.approx(0.5)
    assert result.interval.low == pytest.approx(0.5 - 3.182446 * error, abs=1e-5)
    assert result.detectable == pytest.approx((3.182446 + 0.978472) * error, abs=1e-5)
    assert result.p_value == pytest.approx(0.25)  # of the 8 signs of three differences all alike
    assert result.verdict == "no difference shown"


def test_verdicts_follow_the_interval() -> None:
    low, high = [0.0, 0.1, 0.0, 0.1] * 5, [0.8, 1.0, 1.0, 0.9] * 5
    assert compare(low, high).verdict == "better"
    assert compare(high, low).verdict == "worse"
    assert compare(low, low).verdict == "no difference shown"
    assert compare(low, low).p_value == 1.0
    assert compare(low[:1], high[:1]).verdict == "no difference shown"


def test_clusters_flip_together() -> None:
    """Two clusters of four problems have four assignments of signs, however many problems there are."""
    result = compare([0.0] * 8, [1.0] * 8, clusters=["x"] * 4 + ["y"] * 4)
    assert result.p_value == pytest.approx(0.5)


def test_comparisons_of_equal_policies_are_seldom_called_different() -> None:
    rng, called, rejected = np.random.default_rng(0), 0, 0
    for _ in range(1000):
        chances = rng.beta(1, 1, 60)
        a, b = rng.binomial(4, chances) / 4, rng.binomial(4, chances) / 4
        result = mean_interval(b - a)
        called += not result.low <= 0 <= result.high
        rejected += sign_flip_test((b - a)[:12]) <= 0.05
    assert 0.03 <= called / 1000 <= 0.07
    assert rejected / 1000 <= 0.065


def test_holms_adjustment_by_hand() -> None:
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert holm([0.6, 0.5]) == pytest.approx([1.0, 1.0])
    assert holm([]) == []


@pytest.mark.parametrize(
    ("values", "expected"),
    [([5.0], 5.0), ([1.0, 3.0], 2.0), ([9.0, 1.0, 2.0, 4.0], 3.0), ([100.0, 1.0, 2.0, 3.0, -50.0], 2.0)],
)
def test_interquartile_means(values: list[float], expected: float) -> None:
    assert float(interquartile_mean(values)) == pytest.approx(expected)
