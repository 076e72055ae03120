"""Advantages by hand and at their limits; test_numpy_reference.py compares each formula with NumPy."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable

import numpy as np
import pytest
import torch
from beartype.roar import BeartypeException
from jaxtyping import TypeCheckError
from torch import Tensor

from agents.advantages import (
    batch_mean_baseline,
    gae,
    group_centered,
    group_centered_batch_std,
    group_mean,
    group_z_score,
    leave_one_out,
    length_weighted,
    maximum_likelihood,
    moving_average,
    multi_reward,
    n_step,
    pass_at_k,
    returns_to_go,
    soft_overlong_penalty,
    whiten,
)
from tests.agents.rounding import ROUNDING
from verifiers import InvalidArgumentError


def f64(*values: float) -> Tensor:
    return torch.tensor(values, dtype=torch.float64)


def all_valid(scores: Tensor) -> Tensor:
    return torch.ones(len(scores), dtype=torch.bool)


def one_group(scores: Tensor) -> Tensor:
    return torch.zeros(len(scores), dtype=torch.long)


def test_returns_to_go_by_hand() -> None:
    rewards = f64(9, 1, 2, 0, 4, 0)[None]
    mask = torch.tensor([[False, True, True, False, True, False]])
    # From the right: 4; the hole carries 4; 2 + 4 / 2 = 4; 1 + 4 / 2 = 3; the prompt has none.
    assert returns_to_go(rewards, mask, 0.5).tolist() == [[0, 3, 4, 0, 4, 0]]
    # Worth 8 after its end: half of it more at the last decision, a quarter and an eighth before.
    assert returns_to_go(rewards, mask, 0.5, f64(8)).tolist() == [[0, 4, 6, 0, 8, 0]]


def test_sums_of_float32_are_computed_in_float64() -> None:
    rewards = torch.full((1, 1000), 0.1, dtype=torch.float32)
    returns = returns_to_go(rewards, torch.ones(1, 1000, dtype=torch.bool))
    assert returns.dtype == torch.float64
    assert float(returns[0, 0]) == pytest.approx(1000 * float(np.float32(0.1)), abs=1e-10)
    scores = torch.tensor([2.0**24, 1.0, 1.0, 2.0], dtype=torch.float32)  # float32 holds no odd number beyond 2^24
    assert float(batch_mean_baseline(scores, all_valid(scores))) == (2.0**24 + 4) / 4


def test_baselines_of_batches_by_hand() -> None:
    scores, valid = f64(1, 3, math.nan, 2), torch.tensor([True, True, False, True])
    assert float(batch_mean_baseline(scores, valid)) == 2.0
    assert float(batch_mean_baseline(scores, ~all_valid(scores))) == 0.0
    assert moving_average(10.0, scores, valid, 0.75) == 0.75 * 10 + 0.25 * 2
    assert moving_average(10.0, scores, ~all_valid(scores), 0.75) == 10.0
    for decay in (-0.1, 1.1, math.nan):
        with pytest.raises(InvalidArgumentError, match="from 0 to 1"):
            moving_average(0.0, scores, valid, decay)


def test_group_functions_by_hand() -> None:
    scores, groups = f64(1, 10, 0, 30, 0, 0), torch.tensor([7, -3, 7, -3, 7, 7])
    valid = all_valid(scores)
    assert group_mean(scores, groups, valid).tolist() == [0.25, 20, 0.25, 20, 0.25, 0.25]
    assert group_centered(scores, groups, valid).tolist() == [0.75, -10, -0.25, 10, -0.25, -0.25]
    # Group 7: variance (0.75^2 + 3 * 0.25^2) / 3 = 0.25; group -3: (10^2 + 10^2) / 1 = 200.
    first, second = 0.5 + 1e-4, math.sqrt(200) + 1e-4
    expected = [0.75 / first, -10 / second, -0.25 / first, 10 / second, -0.25 / first, -0.25 / first]
    assert group_z_score(scores, groups, valid).tolist() == pytest.approx(expected, abs=ROUNDING)
    others = leave_one_out(scores, groups, valid).tolist()
    assert others == pytest.approx([1, -20, -1 / 3, 20, -1 / 3, -1 / 3], abs=ROUNDING)


Method = Callable[[Tensor, Tensor, Tensor], Tensor]


def two_rewards(scores: Tensor, groups: Tensor, valid: Tensor) -> Tensor:
    return multi_reward(torch.stack([scores, scores**2], dim=1), f64(1, 0.5), groups, valid)


def with_lengths(scores: Tensor, groups: Tensor, valid: Tensor) -> Tensor:
    """Lengths that go with the scores, so that they move with their rows."""
    return length_weighted(scores, (scores.nan_to_num(posinf=0).abs() * 8).long() + 1, groups, valid)


METHODS: dict[str, Method] = {
    "group_centered": group_centered,
    "group_z_score": group_z_score,
    "group_z_score_without_epsilon": lambda scores, groups, valid: group_z_score(scores, groups, valid, 0.0),
    "leave_one_out": leave_one_out,
    "group_centered_batch_std": group_centered_batch_std,
    "length_weighted": with_lengths,
    "multi_reward": two_rewards,
    "maximum_likelihood": maximum_likelihood,
    "pass_at_2": lambda scores, groups, valid: pass_at_k(scores, groups, valid, 2),
}
every_method = pytest.mark.parametrize("method", METHODS.values(), ids=METHODS.keys())


@every_method
@pytest.mark.parametrize("score", [0.3, 0.1 + 0.2, 1 / 3, 1e-300, 0.0, 1e16])
def test_equal_groups_and_lone_members_get_exactly_0_beside_a_group_that_varies(method: Method, score: float) -> None:
    scores = f64(*[score] * 64, 0.7, math.nan, math.nan, 0, 1, 0)
    advantages = method(scores, torch.tensor([0] * 64 + [1] * 3 + [2] * 3), ~scores.isnan())
    assert advantages.dtype == torch.float64
    assert advantages[:67].tolist() == [0.0] * 67
    assert advantages[68] > 0


@every_method
def test_a_batch_without_verdicts_or_without_rows_gets_0(method: Method) -> None:
    scores = f64(math.nan, math.nan, math.nan)
    assert method(scores, one_group(scores), ~all_valid(scores)).tolist() == [0.0] * 3
    assert method(scores[:0], one_group(scores)[:0], all_valid(scores)[:0]).tolist() == []


@every_method
@pytest.mark.parametrize("score", [math.nan, math.inf])
def test_a_valid_score_that_is_no_number_is_named(method: Method, score: float) -> None:
    scores = f64(0, 1, math.nan, score)
    with pytest.raises(InvalidArgumentError, match=rf"completion 3 is {score} although its verdict is valid"):
        method(scores, one_group(scores), torch.tensor([True, True, False, True]))
    with pytest.raises(InvalidArgumentError, match="completion 3"):
        moving_average(0.0, scores, torch.tensor([True, True, False, True]), 0.5)


def test_the_batch_std_is_that_of_the_raw_scores() -> None:
    scores, groups = f64(0, 1, 4, 5, math.nan), torch.tensor([0, 0, 1, 1, 1])
    # Mean 2.5; variance (6.25 + 2.25 + 2.25 + 6.25) / 3 = 17 / 3.
    scale = math.sqrt(17 / 3) + 1e-4
    result = group_centered_batch_std(scores, groups, ~scores.isnan())
    assert result.tolist() == pytest.approx([-0.5 / scale, 0.5 / scale, -0.5 / scale, 0.5 / scale, 0], abs=ROUNDING)


def test_length_weighted_by_hand() -> None:
    scores, lengths = f64(1, 0, 0, math.nan), torch.tensor([6, 2, 4, 100])
    result = length_weighted(scores, lengths, one_group(scores), ~scores.isnan())
    assert result.tolist() == pytest.approx([0.5, -0.5, -0.5, 0], abs=ROUNDING)  # the baseline is 6 / 12
    assert length_weighted(scores, 0 * lengths, one_group(scores), ~scores.isnan()).tolist() == [0.0] * 4
    with pytest.raises(InvalidArgumentError, match="must not be negative; got -2"):
        length_weighted(scores, lengths - 4, one_group(scores), ~scores.isnan())


def test_multi_reward_by_hand() -> None:
    components = torch.tensor([[1, 0], [0, 0], [0, 10], [1, 10]], dtype=torch.float64)
    groups, valid = torch.tensor([0, 0, 1, 1]), torch.ones(4, dtype=torch.bool)
    # Only the first component varies within groups: z = +-0.5 / sqrt(0.5). Times 2; the batch's variance is 4 (2 z)^2 / 3.
    z = 0.5 / (math.sqrt(0.5) + 1e-4)
    scale = math.sqrt(4 * (2 * z) ** 2 / 3) + 1e-4
    expected = [2 * z / scale, -2 * z / scale, -2 * z / scale, 2 * z / scale]
    assert multi_reward(components, f64(2, 1), groups, valid).tolist() == pytest.approx(expected, abs=ROUNDING)


def test_components_that_cancel_leave_exactly_0() -> None:
    scores = f64(0.3, 0.7, 0.1, 0.2)
    components = torch.stack([scores, -scores], dim=1)
    result = multi_reward(components, f64(1, 1), torch.tensor([0, 0, 1, 1]), all_valid(scores), 1e-12)
    assert result.tolist() == [0.0] * 4


def test_maximum_likelihood_by_hand() -> None:
    scores, groups = f64(1, 0, 0, 0, 0, 0), torch.tensor([0, 0, 0, 0, 1, 1])
    assert maximum_likelihood(scores, groups, all_valid(scores)).tolist() == [3, -1, -1, -1, 0, 0]
    assert maximum_likelihood(scores - 1, groups, scores > 0).tolist() == [0.0] * 6  # those below 0 have no verdict
    with pytest.raises(InvalidArgumentError, match=r"at least 0 .*; got -0.5"):
        maximum_likelihood(scores - 0.5, groups, all_valid(scores))


@pytest.mark.parametrize(("size", "correct", "k"), [(8, 3, 2), (8, 1, 7), (16, 4, 5), (64, 2, 32), (512, 3, 200)])
def test_binary_pass_at_k_has_a_closed_form(size: int, correct: int, k: int) -> None:
    """f and b from the chance that a subset holds no success."""
    scores = f64(*[1] * correct, *[0] * (size - correct))
    results = pass_at_k(scores, one_group(scores), all_valid(scores), k)
    right = math.comb(size - correct, k) / math.comb(size - 1, k)
    none_with, none_without = math.comb(size - correct - 1, k - 1), math.comb(size - correct - 1, k)
    wrong = none_without / math.comb(size - 1, k) - none_with / math.comb(size - 1, k - 1)
    expected = [k * right] * correct + [k * wrong] * (size - correct)
    assert results.tolist() == pytest.approx(expected, rel=1e-11, abs=ROUNDING)


def test_groups_too_small_for_k_are_named_and_those_that_broke_get_0() -> None:
    scores, groups = f64(1, 0, math.nan, 1, 0, 0), torch.tensor([-9, -9, -9, 1, 1, 1])
    results = pass_at_k(scores, groups, ~scores.isnan(), 2)
    assert results[:3].tolist() == [0.0] * 3
    assert results[3:].tolist() == pytest.approx([2, -1, -1])  # 2 (1 - 0) and 2 (1/2 - 1)
    with pytest.raises(InvalidArgumentError, match=r"groups of at least 3; group -9 has 2"):
        pass_at_k(scores[1:], groups[1:], ~scores[1:].isnan(), 2)
    with pytest.raises(InvalidArgumentError, match="at least 1; got 0"):
        pass_at_k(scores, groups, ~scores.isnan(), 0)


def test_gae_by_hand() -> None:
    rewards, values = f64(5, 1, 2, 3, 9)[None], f64(7, 1, 4, 2, 7)[None]
    mask = torch.tensor([[False, True, False, True, False]])
    # Decisions 1 and 3 earn 1 + 2 and 3 + 9, what was paid after them included. The errors are 12 - 2 = 10, without a value
    # after, and 3 + 2 / 2 - 1 = 3; a quarter of 10 comes on top.
    result = gae(rewards, values, mask, gamma=0.5, gae_lambda=0.5)
    assert result.tolist() == [[0, 5.5, 0, 10, 0]]
    # A truncated episode that is worth 8 after its end: half of 8 more in the last error.
    result = gae(rewards, values, mask, gamma=0.5, gae_lambda=0.5, bootstrap=f64(8))
    assert result.tolist() == [[0, 6.5, 0, 14, 0]]
    assert n_step(rewards, values, mask, 1, gamma=0.5, bootstrap=f64(8)).tolist() == [[0, 3, 0, 14, 0]]
    # 3 + 12 / 2 + 8 / 4 - 1.
    assert n_step(rewards, values, mask, 2, gamma=0.5, bootstrap=f64(8)).tolist() == [[0, 10, 0, 14, 0]]


@pytest.mark.parametrize("function", [gae, functools.partial(n_step, n=2)], ids=["gae", "n_step"])
def test_no_gradient_flows_through_the_values(function: Callable[..., Tensor]) -> None:
    values, bootstrap = torch.ones(1, 3, requires_grad=True), torch.ones(1, requires_grad=True)
    mask = torch.ones(1, 3, dtype=torch.bool)
    assert not function(torch.zeros(1, 3), values, mask, bootstrap=bootstrap).requires_grad


def test_token_advantages_of_nothing() -> None:
    empty, mask = torch.zeros(2, 0), torch.zeros(2, 0, dtype=torch.bool)
    assert gae(empty, empty, mask).shape == n_step(empty, empty, mask, 2).shape == (2, 0)
    with pytest.raises(InvalidArgumentError, match="at least 1; got 0"):
        n_step(empty, empty, mask, 0)


def test_whitening_by_hand() -> None:
    advantages = torch.tensor([[1.0, 100.0, 3.0], [5.0, 7.0, -9.0]])
    mask = torch.tensor([[True, False, True], [True, True, False]])
    # Of 1, 3, 5, 7: mean 4, unbiased variance 20 / 3.
    std = math.sqrt(20 / 3 + 1e-8)
    expected = [[-3 / std, 0, -1 / std], [1 / std, 3 / std, 0]]
    np.testing.assert_allclose(whiten(advantages, mask).numpy(), expected, rtol=ROUNDING)
    scaled = whiten(advantages, mask, center=False)
    np.testing.assert_allclose(scaled.numpy(), [[1 / std, 0, 3 / std], [5 / std, 7 / std, 0]], rtol=ROUNDING)


@pytest.mark.parametrize("count", [0, 1, 7])
def test_without_spread_nothing_is_blown_up(count: int) -> None:
    advantages = torch.full((2, 4), 0.3, dtype=torch.float64)
    mask = (torch.arange(8) < count).reshape(2, 4)
    assert whiten(advantages, mask).tolist() == [[0.0] * 4] * 2
    assert torch.equal(whiten(advantages, mask, center=False), torch.where(mask, advantages, 0.0))


def test_the_overlong_penalty_by_hand() -> None:
    lengths = torch.tensor([0, 12, 13, 14, 16, 17, 1000])
    assert soft_overlong_penalty(lengths, 16, 4).tolist() == [0, 0, -0.25, -0.5, -1, -1, -1]
    assert soft_overlong_penalty(lengths[:5], 16, 16).tolist() == [0, -12 / 16, -13 / 16, -14 / 16, -1]


@pytest.mark.parametrize("margin", [0, 17])
def test_a_margin_that_does_not_fit_is_named(margin: int) -> None:
    with pytest.raises(InvalidArgumentError, match=f"1 to max_tokens = 16 tokens; got {margin}"):
        soft_overlong_penalty(torch.tensor([3]), 16, margin)


SCORES = f64(1, 2, 3)
VALID, GROUPS = all_valid(SCORES), one_group(SCORES)


@pytest.mark.parametrize(
    ("function", "arguments"),
    [
        (returns_to_go, (torch.zeros(2, 3), torch.ones(3, 2).bool())),
        (returns_to_go, (torch.zeros(2, 3), torch.ones(2, 3))),
        (batch_mean_baseline, (SCORES, VALID[:2])),
        (group_mean, (SCORES[None], GROUPS, VALID)),
        (group_centered, (SCORES, GROUPS.double(), VALID)),
        (length_weighted, (SCORES, SCORES, GROUPS, VALID)),
        (multi_reward, (SCORES[:, None], f64(1, 2), GROUPS, VALID)),
        (gae, (torch.zeros(2, 3), torch.zeros(2, 4), torch.ones(2, 3).bool())),
        (whiten, (torch.zeros(2, 3), torch.ones(2).bool())),
    ],
)
def test_annotations_are_checked_at_run_time(function: Callable[..., object], arguments: tuple[object, ...]) -> None:
    with pytest.raises((TypeCheckError, BeartypeException)):
        function(*arguments)
