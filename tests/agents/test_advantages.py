"""Advantages against hand-computed numbers, closed forms and NumPy references written from the formulas."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest
import torch
from beartype.roar import BeartypeException
from hypothesis import given, settings
from hypothesis import strategies as st
from jaxtyping import TypeCheckError
from torch import Tensor

from agents.advantages import batch_mean_baseline, group_centered, group_mean, group_z_score, returns_to_go

GROUPED = (group_mean, group_centered, group_z_score)
FINITE = st.floats(-100, 100, allow_nan=False, width=32)


def f64(*values: float) -> Tensor:
    return torch.tensor(values, dtype=torch.float64)


def all_valid(scores: Tensor) -> Tensor:
    return torch.ones(len(scores), dtype=torch.bool)


def one_group(scores: Tensor) -> Tensor:
    return torch.zeros(len(scores), dtype=torch.long)


# Returns to go


def test_returns_to_go_by_hand() -> None:
    rewards = f64(9, 1, 2, 0, 4, 0)[None]
    mask = torch.tensor([[False, True, True, False, True, False]])
    # From the right: 4; the hole carries 4; 2 + 4 / 2 = 4; 1 + 4 / 2 = 3; the prompt has none.
    assert returns_to_go(rewards, mask, 0.5).tolist() == [[0, 3, 4, 0, 4, 0]]


def test_a_reward_in_a_hole_counts_for_the_decisions_before_it_only() -> None:
    rewards = f64(0, 0, 8, 0, 0)[None]
    mask = torch.tensor([[True, True, False, False, True]])
    assert returns_to_go(rewards, mask).tolist() == [[8, 8, 0, 0, 0]]
    assert returns_to_go(rewards, mask, 0.5).tolist() == [[2, 4, 0, 0, 0]]


def test_a_hole_of_any_width_does_not_discount() -> None:
    rewards, mask = f64(0, 0, 1), [True, True, True]
    expected = returns_to_go(rewards[None], torch.tensor([mask]), 0.9)[0]
    for width in (1, 2, 7):
        wide = torch.cat([rewards[:1], torch.zeros(width, dtype=torch.float64), rewards[1:]])
        holed = torch.tensor([mask[:1] + [False] * width + mask[1:]])
        assert returns_to_go(wide[None], holed, 0.9)[0][holed[0]].tolist() == expected.tolist()


def closed_form(rewards: np.ndarray, mask: np.ndarray, discount: float) -> np.ndarray:
    """G_t = sum over k >= t of discount^(decisions made from t to k - 1) r_k, term by term."""
    returns = np.zeros_like(rewards)
    for t in np.flatnonzero(mask):
        returns[t] = sum(discount ** int(mask[t:k].sum()) * rewards[k] for k in range(t, len(rewards)))
    return returns


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(FINITE, st.booleans()), min_size=1, max_size=12), st.sampled_from([0.0, 0.3, 0.99, 1.0]))
def test_returns_to_go_equal_the_closed_form(steps: list[tuple[float, bool]], discount: float) -> None:
    rewards = np.array([reward for reward, _ in steps])
    mask = np.array([decided for _, decided in steps])
    found = returns_to_go(torch.from_numpy(rewards)[None], torch.from_numpy(mask)[None], discount)[0]
    # Sums of up to 12 float64 numbers of up to 100: rounding below 1e-12.
    np.testing.assert_allclose(found.numpy(), closed_form(rewards, mask, discount), rtol=0, atol=1e-11)


def test_limits_of_the_discount() -> None:
    rewards = f64(1, -2, 4, 8)[None]
    mask = torch.ones(1, 4, dtype=torch.bool)
    assert returns_to_go(rewards, mask, 1.0).tolist() == [[11, 10, 12, 8]]
    assert returns_to_go(rewards, mask, 0.0).tolist() == rewards.tolist()


def test_returns_to_go_do_not_depend_on_other_rows_or_on_padding() -> None:
    generator = np.random.default_rng(0)
    rewards = torch.from_numpy(generator.normal(size=(5, 9)))
    mask = torch.from_numpy(generator.random((5, 9)) < 0.6)
    together = returns_to_go(rewards, mask, 0.7)
    padded = torch.nn.functional.pad(rewards, (0, 3)), torch.nn.functional.pad(mask, (0, 3))
    assert torch.equal(returns_to_go(*padded, 0.7)[:, :9], together)
    for row in range(5):
        alone = returns_to_go(rewards[row : row + 1], mask[row : row + 1], 0.7)
        assert torch.equal(alone[0], together[row])


def test_returns_to_go_are_summed_in_float64() -> None:
    rewards = torch.full((1, 1000), 0.1, dtype=torch.float32)
    returns = returns_to_go(rewards, torch.ones(1, 1000, dtype=torch.bool))
    assert returns.dtype == torch.float64
    assert float(returns[0, 0]) == pytest.approx(1000 * float(np.float32(0.1)), abs=1e-10)


# The batch's mean


def test_batch_mean_by_hand() -> None:
    scores = f64(1, 0, math.nan, 5)
    valid = torch.tensor([True, True, False, True])
    assert float(batch_mean_baseline(scores, valid)) == 2.0
    assert float(batch_mean_baseline(scores, torch.zeros(4, dtype=torch.bool))) == 0.0


def test_the_batch_mean_is_computed_in_float64() -> None:
    scores = torch.tensor([2.0**24, 1.0, 1.0, 2.0], dtype=torch.float32)  # float32 holds no odd number beyond 2^24
    baseline = batch_mean_baseline(scores, all_valid(scores))
    assert baseline.dtype == torch.float64
    assert float(baseline) == (2.0**24 + 4) / 4


@pytest.mark.parametrize("seed", range(5))
def test_broken_rows_leave_the_batch_mean_bitwise_as_it_is(seed: int) -> None:
    generator = np.random.default_rng(seed)
    scores = torch.from_numpy(generator.normal(size=37))
    valid = torch.from_numpy(generator.random(37) < 0.7)
    scores[~valid] = math.nan
    assert torch.equal(batch_mean_baseline(scores, valid), batch_mean_baseline(scores[valid], valid[valid]))


# Groups


def test_group_functions_by_hand() -> None:
    scores, groups = f64(1, 10, 0, 30, 0, 0), torch.tensor([7, -3, 7, -3, 7, 7])
    valid = all_valid(scores)
    assert group_mean(scores, groups, valid).tolist() == [0.25, 20, 0.25, 20, 0.25, 0.25]
    assert group_centered(scores, groups, valid).tolist() == [0.75, -10, -0.25, 10, -0.25, -0.25]
    # Group 7: variance (0.75^2 + 3 * 0.25^2) / 3 = 0.25; group -3: (10^2 + 10^2) / 1 = 200.
    first, second = 0.5 + 1e-4, math.sqrt(200) + 1e-4
    expected = [0.75 / first, -10 / second, -0.25 / first, 10 / second, -0.25 / first, -0.25 / first]
    assert group_z_score(scores, groups, valid).tolist() == pytest.approx(expected, abs=1e-14)


def reference(scores: np.ndarray, groups: np.ndarray, valid: np.ndarray, epsilon: float) -> dict[str, np.ndarray]:
    """The three quantities, one completion at a time."""
    names = ("group_mean", "group_centered", "group_z_score")
    found = {name: np.zeros(len(scores)) for name in names}
    for index in range(len(scores)):
        group = np.array([s for s, g, v in zip(scores, groups, valid, strict=True) if g == groups[index] and v])
        if len(group) == 0:
            continue
        found["group_mean"][index] = group.mean()
        if valid[index] and len(set(group.tolist())) > 1:
            found["group_centered"][index] = scores[index] - group.mean()
            found["group_z_score"][index] = (scores[index] - group.mean()) / (np.std(group, ddof=1) + epsilon)
    return found


ROWS = st.lists(
    st.tuples(FINITE | st.sampled_from([0.0, 1.0, 0.3, 0.1 + 0.2]), st.integers(0, 3), st.booleans()),
    min_size=1,
    max_size=16,
)


@settings(max_examples=150, deadline=None)
@given(ROWS)
def test_group_functions_equal_a_numpy_reference(rows: list[tuple[float, int, bool]]) -> None:
    valid = np.array([row[2] for row in rows])
    scores = np.where(valid, np.array([row[0] for row in rows]), np.nan)
    groups = np.array([row[1] for row in rows])
    expected = reference(scores, groups, valid, 1e-4)
    arguments = torch.from_numpy(scores), torch.from_numpy(groups), torch.from_numpy(valid)
    for function in GROUPED:
        found = function(*arguments)
        assert found.dtype == torch.float64
        # Means round by 1e-14; dividing by at least 1e-4 makes at most 1e-10 of that.
        np.testing.assert_allclose(found.numpy(), expected[function.__name__], rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("epsilon", [1e-4, 1e-12, 0.0])
@pytest.mark.parametrize("size", [1, 3, 8, 64])
def test_groups_of_equal_scores_get_exactly_0(size: int, epsilon: float) -> None:
    for score in (0.3, 0.1 + 0.2, 1 / 3, 1e-300, -7.7, 0.0, 1e16):
        scores = f64(*[score] * size)
        assert group_centered(scores, one_group(scores), all_valid(scores)).tolist() == [0.0] * size
        assert group_z_score(scores, one_group(scores), all_valid(scores), epsilon).tolist() == [0.0] * size


def test_an_equal_group_stays_at_0_beside_groups_that_vary() -> None:
    scores, groups = f64(0.3, 1, 0.3, 0, 0.3), torch.tensor([0, 1, 0, 1, 0])
    advantages = group_z_score(scores, groups, all_valid(scores))
    assert advantages[groups == 0].tolist() == [0.0] * 3
    assert advantages[groups == 1].abs().min() > 0.7


def test_scores_that_differ_by_rounding_alone_stay_without_weight() -> None:
    scores = f64(*[0.3] * 7, 0.1 + 0.2)
    assert scores[0] != scores[-1]
    assert group_z_score(scores, one_group(scores), all_valid(scores)).abs().max() < 1e-11


def test_single_members_get_exactly_0() -> None:
    scores, groups = f64(0.1, 0.7, -3.0), torch.tensor([2, 0, 1])
    for function in (group_centered, group_z_score):
        assert function(scores, groups, all_valid(scores)).tolist() == [0.0, 0.0, 0.0]


def test_the_only_member_that_was_verified_gets_exactly_0() -> None:
    scores, valid = f64(0.7, math.nan, math.nan), torch.tensor([True, False, False])
    for function in (group_centered, group_z_score):
        assert function(scores, one_group(scores), valid).tolist() == [0.0, 0.0, 0.0]
    assert group_mean(scores, one_group(scores), valid).tolist() == [0.7, 0.7, 0.7]


def test_nothing_was_verified() -> None:
    scores = f64(math.nan, math.nan)
    for function in GROUPED:
        assert function(scores, one_group(scores), ~all_valid(scores)).tolist() == [0.0, 0.0]


@pytest.mark.parametrize("function", GROUPED)
@pytest.mark.parametrize("seed", range(5))
def test_broken_rows_leave_the_others_bitwise_as_they_are(function: object, seed: int) -> None:
    assert callable(function)
    generator = np.random.default_rng(seed)
    scores = torch.from_numpy(generator.normal(size=40))
    groups = torch.from_numpy(generator.integers(0, 6, 40))
    valid = torch.from_numpy(generator.random(40) < 0.7)
    scores[~valid] = math.nan
    found = function(scores, groups, valid)
    assert torch.equal(found[valid], function(scores[valid], groups[valid], valid[valid]))
    if function is not group_mean:
        assert found[~valid].tolist() == [0.0] * int((~valid).sum())


@pytest.mark.parametrize("function", GROUPED)
def test_order_and_labels_of_groups_do_not_matter(function: object) -> None:
    assert callable(function)
    generator = np.random.default_rng(1)
    scores = torch.from_numpy(generator.integers(0, 8, 24) / 8.0)  # eighths sum exactly, in any order
    groups = torch.arange(24) // 4
    valid = torch.from_numpy(generator.random(24) < 0.8)
    expected = function(scores, groups, valid)
    for _ in range(5):
        order = torch.from_numpy(generator.permutation(24))
        labels = torch.from_numpy(generator.permutation(1000)[:6] - 500)
        found = function(scores[order], labels[groups[order]], valid[order])
        # Squares of centred scores are no longer exact, so the standard deviation may round differently.
        torch.testing.assert_close(found, expected[order], rtol=1e-14, atol=0)


def test_centred_scores_of_a_group_sum_to_0_and_ignore_a_shift() -> None:
    scores = torch.from_numpy(np.random.default_rng(2).normal(size=12))
    groups = torch.arange(12) % 3
    centered = group_centered(scores, groups, all_valid(scores))
    for group in range(3):
        assert abs(float(centered[groups == group].sum())) < 1e-14
    torch.testing.assert_close(group_centered(scores + 5, groups, all_valid(scores)), centered, rtol=0, atol=1e-14)


def test_z_scores_have_unit_unbiased_variance_and_ignore_scale_but_for_epsilon() -> None:
    scores = torch.from_numpy(np.random.default_rng(3).normal(size=9))
    unscaled = group_z_score(scores, one_group(scores), all_valid(scores), 0.0)
    assert float(unscaled.std(correction=1)) == pytest.approx(1, abs=1e-14)
    scaled = group_z_score(1000 * scores, one_group(scores), all_valid(scores), 0.0)
    torch.testing.assert_close(scaled, unscaled, rtol=1e-13, atol=0)


def test_centred_scores_are_leave_one_out_times_g_minus_1_over_g() -> None:
    scores = np.array([3.0, 1.0, 0.5, 0.0, 0.0])
    others = np.array([np.delete(scores, index).mean() for index in range(5)])
    centered = group_centered(torch.from_numpy(scores), torch.zeros(5, dtype=torch.long), torch.ones(5).bool())
    np.testing.assert_allclose(centered.numpy(), (scores - others) * 4 / 5, rtol=0, atol=1e-15)


# Shapes


def wrong_shapes() -> Sequence[tuple[object, tuple[Tensor, ...]]]:
    scores = f64(1, 2, 3)
    valid, groups = all_valid(scores), one_group(scores)
    return [
        (returns_to_go, (torch.zeros(2, 3), torch.ones(3, 2).bool())),
        (returns_to_go, (torch.zeros(2, 3), torch.ones(2, 3))),
        (batch_mean_baseline, (scores, valid[:2])),
        (group_mean, (scores[None], groups, valid)),
        (group_centered, (scores, groups.double(), valid)),
        (group_z_score, (scores, groups[:2], valid)),
    ]


@pytest.mark.parametrize("index", range(len(wrong_shapes())))
def test_annotations_are_checked_at_run_time(index: int) -> None:
    function, arguments = wrong_shapes()[index]
    assert callable(function)
    with pytest.raises((TypeCheckError, BeartypeException)):
        function(*arguments)
