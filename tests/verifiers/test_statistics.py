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
    Array,
    Interval,
    PairedDifference,
    compare,
    holm,
    interquartile_mean,
    majority_at_k,
    mean_interval,
    pass_at_k,
    problems_needed,
    proportion_interval,
    rerun_error,
    share_interval,
    sign_flip_test,
    t_quantile,
)

# Quantiles


@pytest.mark.parametrize("degrees", [1, 2, 3, 4, 7, 30, 199, 200, 1318])
@pytest.mark.parametrize("probability", [0.5, 0.55, 0.8, 0.975, 0.999])
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


@pytest.mark.parametrize(
    ("right", "rivals", "silent", "k"),
    [(520, 500, 4, 512), (300, 310, 414, 511), (100, 60, 40, 2), (512, 512, 0, 1024)],
)
def test_majority_votes_of_many_samples_by_integers(right: int, rivals: int, silent: int, k: int) -> None:
    ways = sum(
        (1 if drawn == rival else 2) * math.comb(right, drawn) * math.comb(rivals, rival) * math.comb(silent, rest)
        for drawn in range(1, min(right, k) + 1)
        for rival in range(min(rivals, drawn, k - drawn) + 1)
        if (rest := k - drawn - rival) <= silent
    )
    votes = ["a"] * right + ["b"] * rivals + [None] * silent
    assert majority_at_k(votes, "a", k) == pytest.approx(ways / (2 * math.comb(len(votes), k)), rel=1e-12)


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
    signs = itertools.product((1, -1), repeat=len(differences))
    sums = [abs(sum(map(math.prod, zip(of_each, differences, strict=True)))) for of_each in signs]
    expected = sum(difference >= abs(sum(differences)) for difference in sums) / len(sums)
    assert sign_flip_test([float(difference) for difference in differences]) == pytest.approx(expected)


def test_drawn_signs_agree_with_the_binomial_test() -> None:
    """Of 30 differences of one size, 21 up: the two-sided binomial test."""
    tail = 2 * sum(math.comb(30, count) for count in range(21, 31)) / 2**30
    assert sign_flip_test([1.0] * 21 + [-1.0] * 9) == pytest.approx(tail, abs=0.002)


def test_a_comparison_by_hand() -> None:
    """Differences 0.5, 0.5, 0, 1, twice: as shares 3/4, 3/4, 1/2, 1, of mean 3/4 and squares 1/4, seven degrees of freedom."""
    result = compare([0.0, 0.5, 1.0, 0.0] * 2, [0.5, 1.0, 1.0, 1.0] * 2)
    t, more = 2.364624, (math.log(0.05) / 1.959964) ** 2
    variance = (1 / 4 + more * 3 / 16) / ((8 + more) * 7)
    trials = 3 / 16 / variance
    center, half = (3 / 4 + t * t / trials / 2), t * math.sqrt(variance + t * t / trials**2 / 4)
    ends = [2 * (center + side * half) / (1 + t * t / trials) - 1 for side in (-1, 1)]
    assert result.difference == pytest.approx(0.5)
    assert (result.interval.low, result.interval.high) == pytest.approx(ends, abs=1e-5)
    assert result.detectable == pytest.approx((t + 0.896030) * 2 * math.sqrt(variance), abs=1e-5)
    assert result.p_value == pytest.approx(2 / 64)  # of the 64 signs of six differences all alike
    assert (result.verdict, result.problems, result.units, result.differing) == ("no difference shown", 8, 8, 6)


def test_a_comparison_of_other_scores_has_students_interval() -> None:
    """Differences 1, 1, 0, 2: mean 1, standard error sqrt(2/3/4), three degrees of freedom."""
    result = compare([0.0, 1.0, 2.0, 0.0], [1.0, 2.0, 2.0, 2.0])
    half = 3.182446 * math.sqrt(2 / 3 / 4)
    assert (result.interval.low, result.interval.high) == pytest.approx((1 - half, 1 + half), abs=1e-5)
    assert result.detectable == math.inf  # four problems show nothing, whatever they say
    assert compare([0.0, 1.0, 2.0, 0.0] * 2, [1.0, 2.0, 2.0, 2.0] * 2).detectable == pytest.approx(
        (2.364624 + 0.896030) * math.sqrt(4 / 7 / 8), abs=1e-5
    )


def test_equal_differences_are_not_certain() -> None:
    few = compare([0.0, 0.0], [1.0, 1.0])
    assert few.interval.low < -0.9
    assert few.interval.high == 1
    assert (few.verdict, few.detectable) == ("no difference shown", math.inf)
    same = compare([0.0] * 50, [0.0] * 50)
    assert (same.interval.low, same.interval.high) == pytest.approx((-0.06, 0.06), abs=0.005)
    assert (same.verdict, same.detectable, same.differing) == ("no difference shown", math.inf, 0)
    all_better = compare([0.0] * 50, [1.0] * 50)
    assert 0.8 < all_better.interval.low < all_better.interval.high == 1
    assert (all_better.verdict, all_better.detectable, all_better.differing) == ("better", math.inf, 50)
    assert compare([1.0] * 50, [0.0] * 50).verdict == "worse"
    for clusters in (None, list(range(9)), [0, 1, 2] * 3):
        other = compare([5.0] * 9, [6.0] * 9, clusters)  # nothing says how large an unseen difference may be
        assert (other.interval.low, other.interval.high, other.detectable) == (-math.inf, math.inf, math.inf)
        assert mean_interval([0.5] * 9, clusters) == Interval(-math.inf, math.inf, approximate=True)


def test_rounding_is_no_difference() -> None:
    """0.1 + 0.2 is not 0.3, and 0.9 - 0.2 not 0.8 - 0.1, but by rounding."""
    assert compare([0.3] * 9, [0.1 + 0.2] * 9) == compare([0.3] * 9, [0.3] * 9)
    assert compare([3.0] * 9, [3.0 + 1e-15] * 9).differing == 0
    result = compare([2.1, 1.2] * 9, [2.8, 1.9] * 9)
    assert (result.interval.low, result.interval.high) == (-math.inf, math.inf)


def test_power_is_claimed_only_where_a_difference_can_be_found() -> None:
    assert compare([0.0] * 5, [1.0, 1.0, 1.0, 0.0, 1.0]).detectable == math.inf  # p is 1/16 at the least
    assert compare([0.0, 1.0] * 4, [1.0, 0.0] * 4).detectable == math.inf  # it would be more than 1
    assert compare([0.0, 1.0] * 40, [1.0, 0.0] * 40).detectable < 0.4


def test_a_difference_that_is_said_to_be_found_is_found_in_four_of_five_comparisons(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Of 80 problems with means of eight samples; 400 comparisons have a standard error of 2 %."""
    monkeypatch.setattr("verifiers.statistics._DRAWN_SIGN_FLIPS", 999)
    rng, found = np.random.default_rng(0), 0

    def drawn(gain: float) -> PairedDifference:
        chances = rng.uniform(0.2, 0.6, 80)
        return compare(rng.binomial(8, chances) / 8, rng.binomial(8, chances + gain) / 8)

    gain = float(np.mean([drawn(0.1).detectable for _ in range(50)]))
    assert 0.05 < gain < 0.15
    for _ in range(400):
        result = drawn(gain)
        found += result.verdict == "better" and result.p_value <= 0.05
    assert 0.7 <= found / 400 <= 0.9


def test_clusters_flip_together() -> None:
    """Two clusters of four problems have four assignments of signs, however many problems there are."""
    result = compare([0.0] * 8, [1.0] * 8, clusters=["x"] * 4 + ["y"] * 4)
    assert result.p_value == pytest.approx(0.5)


def jumps(rng: np.random.Generator, units: int, up: float, down: float, rest: float) -> Array:
    """Differences that are 1 or -1 with some probability, and else the same, or random where the rest is NaN."""
    others = rng.normal(0, 0.002, units) if math.isnan(rest) else np.full(units, rest)
    draws = rng.random(units)
    return np.where(draws < up, 1.0, np.where(draws < up + down, -1.0, others))


@pytest.mark.parametrize("units", [2, 3, 5, 10, 30, 100, 300])
@pytest.mark.parametrize(
    ("up", "down", "rest"),
    [
        *((0.0, 0.0, 0.0), (0.02, 0.0, 0.0), (0.1, 0.0, 0.0), (0.5, 0.0, 0.0), (0.9, 0.0, 0.0), (0.98, 0.0, 0.0)),
        *((0.1, 0.05, 0.0), (0.3, 0.3, 0.0), (0.02, 0.0, math.nan), (0.0, 0.1, math.nan), (0.03, 0.0, -0.02)),
        *((0.02, 0.0, 0.25), (0.0, 0.0, 0.25)),
    ],
)
def test_intervals_of_differences_cover_the_truth(units: int, up: float, down: float, rest: float) -> None:
    """Equal, nearly equal and rare differences: at least 92.5 %, where 500 trials of 95 % have a standard error of 1 %.

    Student's interval covers 18 % where one in fifty of ten problems has a difference of 1, since it is a point without any.
    """
    rng, hits = np.random.default_rng(units), 0
    truth = up - down + (1 - up - down) * (0.0 if math.isnan(rest) else rest)
    for _ in range(500):
        differences = jumps(rng, units, up, down, rest)
        b = np.maximum(differences, 0.0)
        interval = compare_interval(b - differences, b)
        hits += interval.low - 1e-9 <= truth <= interval.high + 1e-9
    assert hits / 500 >= 0.925


def compare_interval(a: Array, b: Array, clusters: list[int] | None = None) -> Interval:
    """The interval of a comparison, without its test, which takes longer."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("verifiers.statistics.sign_flip_test", lambda *_, **__: 1.0)
        return compare(a, b, clusters).interval


@pytest.mark.parametrize(("clusters", "size"), [(3, 10), (6, 20), (20, 4), (60, 1)])
@pytest.mark.parametrize(("up", "shared"), [(0.05, True), (0.05, False), (0.4, True), (0.4, False)])
def test_intervals_of_differences_of_clusters_cover_the_truth(
    clusters: int, size: int, up: float, shared: bool
) -> None:
    """Problems of a cluster that differ together, or each by itself; few clusters, and clusters of one."""
    rng, hits = np.random.default_rng(clusters), 0
    names = np.repeat(np.arange(clusters), size).tolist()
    for _ in range(500):
        drawn = np.repeat(rng.random(clusters), size) if shared else rng.random(clusters * size)
        interval = compare_interval(np.zeros(clusters * size), (drawn < up).astype(float), names)
        hits += interval.low <= up <= interval.high
    assert hits / 500 >= 0.925


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


def test_the_problems_that_a_difference_needs_find_it_in_four_of_five_comparisons() -> None:
    """By simulation of one look at as many problems as a pilot of 300 says; 400 comparisons leave a standard error of 0.02."""
    generator = np.random.default_rng(0)

    def drawn(problems: int, difference: float) -> tuple[Array, Array]:
        worse, better = 0.15 - difference / 2, 0.15 + difference / 2
        values = generator.choice([-1, 0, 1], p=[worse, 1 - worse - better, better], size=problems)
        return (values < 0).astype(np.float64), (values > 0).astype(np.float64)

    needed = problems_needed(*drawn(3000, 0.0), 0.1)
    assert needed == pytest.approx((1.96 + 0.84) ** 2 * 0.3 / 0.1**2, rel=0.12)
    assert needed is not None
    found = sum(compare(*drawn(needed, 0.1)).interval.low > 0 for _ in range(400))
    assert 0.72 <= found / 400 <= 0.88
    a, b = drawn(300, 0.1)
    alone, doubled = problems_needed(a, b, 0.05), problems_needed(np.tile(a, 2), np.tile(b, 2), 0.05, [*range(300)] * 2)
    assert alone is not None
    assert doubled == pytest.approx(2 * alone, abs=1)  # copies of a problem say nothing new
    assert problems_needed(a, a, 0.05) is None
    with pytest.raises(InvalidArgumentError, match="more than 0 and at most 1, got 2"):
        problems_needed(a, b, 2)
