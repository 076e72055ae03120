"""Confidence sequences: by a slow implementation, by what must not matter, and by simulation of what they promise."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, strategies as st

from verifiers import InvalidArgumentError
from verifiers.confidence_sequences import compare_sequentially, log_evidence

SCORES = st.lists(st.tuples(*[st.sampled_from([0.0, 0.25, 0.5, 1.0])] * 2), min_size=1, max_size=30)
STAKES = [0.03 * (0.95 / 0.03) ** (number / 9) for number in range(10)]


def slowly(
    differences: Sequence[float], sizes: Sequence[int], margin: float, level: float
) -> tuple[str | None, int | None]:
    """The decision by the definition: the capital of each stake, value by value, in plain arithmetic."""
    most, count = max(sizes), 0
    claims = {(side, mean): [1.0] * len(STAKES) for side in (1, -1) for mean in (0.0, -margin)}
    reached = set()
    for value, size in zip(differences, sizes, strict=True):
        count += size
        for (side, mean), capital in claims.items():
            for number, stake in enumerate(STAKES):
                capital[number] *= 1 + stake * size / most * (side * value - mean) / (1 + mean)
            if sum(capital) / len(STAKES) >= 2 / (1 - level):
                reached.add((side, mean))
        if (1, 0.0) in reached:
            return "better", count
        if (-1, 0.0) in reached:
            return "worse", count
        if margin and {(1, -margin), (-1, -margin)} <= reached:
            return "equal", count
    return None, None


@given(scores=SCORES, margin=st.sampled_from([0.0, 0.3, 0.7]), level=st.sampled_from([0.5, 0.8, 0.95]), data=st.data())
def test_decisions_are_those_of_the_definition(
    scores: list[tuple[float, float]], margin: float, level: float, data: st.DataObject
) -> None:
    sizes, clusters, values = [], [], []
    while len(clusters) < len(scores):
        size = data.draw(st.integers(1, min(4, len(scores) - len(clusters))))
        members = scores[len(clusters) : len(clusters) + size]
        values.append(sum(b - a for a, b in members) / size)
        clusters += [len(sizes)] * size
        sizes.append(size)
    a, b = zip(*scores, strict=True)
    result = compare_sequentially(a, b, clusters, margin=margin, level=level)
    assert (result.decision, result.decided_after) == slowly(values, sizes, margin, level)
    low, high = result.interval.low, result.interval.high
    if result.decision in ("better", "worse"):
        assert low > 0 or high < 0
    if result.decision == "equal":
        assert -margin < low <= high < margin


@given(scores=SCORES, seed=st.integers(0, 2**32))
def test_what_must_not_matter_does_not(scores: list[tuple[float, float]], seed: int) -> None:
    first, second = np.array(scores).T
    values = second - first
    shuffled = np.random.default_rng(seed).permutation(values)
    assert log_evidence(values, 0.1)[-1] == pytest.approx(log_evidence(shuffled, 0.1)[-1], abs=1e-12)
    there, back = compare_sequentially(first, second, margin=0.2), compare_sequentially(second, first, margin=0.2)
    assert there.decided_after == back.decided_after
    assert {there.decision, back.decision} in ({None}, {"equal"}, {"better", "worse"})
    assert there.interval.low == pytest.approx(-back.interval.high, abs=1e-9)
    assert compare_sequentially(first, second, list(range(len(values))), margin=0.2) == there


@given(scores=SCORES)
def test_more_problems_revoke_nothing(scores: list[tuple[float, float]]) -> None:
    looks = [
        compare_sequentially(*zip(*scores[: n + 1], strict=True), margin=0.3, level=0.6) for n in range(len(scores))
    ]
    for before, after in itertools.pairwise(looks):
        assert before.interval.low <= after.interval.low
        assert before.interval.high >= after.interval.high
        if before.decision is not None:
            assert (after.decision, after.decided_after) == (before.decision, before.decided_after)


def samples_of(generator: np.random.Generator, shape: tuple[int, int], kind: str) -> np.ndarray:
    """Differences of two equal models: of one sample of each problem, of four, or with rare large differences."""
    if kind == "one sample":
        return generator.choice([-1.0, 0.0, 1.0], p=[0.1, 0.8, 0.1], size=shape)
    if kind == "four samples":
        hard = generator.beta(0.5, 0.5, size=shape)
        return (generator.binomial(4, hard) - generator.binomial(4, hard)) / 4
    return np.where(generator.random(shape) < 0.01, generator.choice([-1.0, 1.0], size=shape), 0.0)


@pytest.mark.parametrize("kind", ["one sample", "four samples", "rare"])
def test_equal_models_are_told_apart_in_fewer_than_one_run_of_twenty(kind: str) -> None:
    """With a look after each of 400 problems; a fixed test would be wrong in about 40 % of the runs."""
    values = samples_of(np.random.default_rng(0), (2000, 400), kind)
    false = sum((log_evidence(side, 0.0) >= math.log(40)).any(axis=1) for side in (values, -values))
    assert (false > 0).mean() < 0.05  # 100 runs; the bound is not tight, and chance adds 10 at most


def test_what_has_no_known_range_or_order_is_refused() -> None:
    for a, b, clusters, message in [
        ([0.0], [1.5], None, "scores from 0 to 1"),
        ([0.0], [math.nan], None, "scores from 0 to 1"),
        ([0.0], [0.0, 1.0], None, "got the shapes"),
        ([0.0] * 3, [0.0] * 3, ["a", "b", "a"], "must stand together"),
        ([0.0] * 3, [0.0] * 3, ["a"], "a cluster for each of 3 problems, got 1"),
    ]:
        with pytest.raises(InvalidArgumentError, match=message):
            compare_sequentially(a, b, clusters)
    with pytest.raises(InvalidArgumentError, match="a cluster has 2 problems, and largest_cluster is 1"):
        compare_sequentially([0.0] * 2, [0.0] * 2, ["a", "a"], largest_cluster=1)
    empty = compare_sequentially([], [])
    assert (empty.decision, empty.interval.low, empty.interval.high) == (None, -1.0, 1.0)
