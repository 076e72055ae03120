"""Losses by hand, one example or limit of each; test_numpy_reference.py compares every formula with NumPy."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import Tensor

from agents.losses import (
    Aggregation,
    cispo,
    clipped_surrogate,
    policy_gradient,
    sequence_clipped_surrogate,
    squared_value_error,
    token_weights,
)
from tests.agents.rounding import ROUNDING
from verifiers import InvalidArgumentError, UnknownNameError

Loss = Callable[..., Tensor]
NUMBER = torch.zeros(1, 1)


def value_and_slope(loss: Loss, variable: float, *others: float) -> tuple[float, float]:
    """Of the loss of one token, with respect to its first argument."""
    first, *rest = (torch.tensor([[number]], dtype=torch.float64) for number in (variable, *others))
    result = loss(first.requires_grad_(), *rest)
    (slope,) = torch.autograd.grad(result.sum(), first)
    return float(result.detach()), float(slope)


@pytest.mark.parametrize(
    ("dual_clip", "ratio", "advantage", "value", "slope"),
    [
        (None, 1.1, 2.0, -2.2, -2.2),  # inside the bounds: -r A, whose slope in log pi is -r A
        (None, 1.5, 2.0, -2.4, 0.0),  # a good token that is already likelier: nothing more to gain
        (None, 0.5, -2.0, 1.6, 0.0),  # a bad token that is already less likely
        (None, 1.5, -2.0, 3.0, 3.0),  # a bad token that has become likelier: pushed down
        (3.0, 2.9, -2.0, 5.8, 5.8),
        (3.0, 3.1, -2.0, 6.0, 0.0),  # beyond c = 3 a bad token counts no more than 3 times, and no longer moves
        (math.inf, 9.0, -2.0, 18.0, 18.0),  # an infinite bound is none
        (math.inf, 9.0, 0.0, 0.0, 0.0),
    ],
)
def test_clipping_saturates_on_the_side_of_the_advantage_only(
    dual_clip: float | None, ratio: float, advantage: float, value: float, slope: float
) -> None:
    loss = functools.partial(clipped_surrogate, dual_clip=dual_clip)
    result = value_and_slope(loss, math.log(ratio) - 1.0, -1.0, advantage)
    assert result == pytest.approx((value, slope), abs=ROUNDING)


def test_the_sequence_ratio_by_hand() -> None:
    """Two tokens of three are the policy's own; their mean difference is 0.1."""
    old = torch.full((1, 3), -10.0, dtype=torch.float64)
    logprobs = (old + torch.tensor([[0.3, 9.0, -0.1]])).requires_grad_()
    mask = torch.tensor([[True, False, True]])
    losses = sequence_clipped_surrogate(logprobs, old, torch.full_like(old, 2.0), mask, 0.25, 0.3)
    (gradient,) = torch.autograd.grad((losses * mask).sum(), logprobs)
    assert gradient[0].tolist() == pytest.approx([-2 * math.exp(0.1), 0.0, -2 * math.exp(0.1)])
    assert losses[0, 0].item() == pytest.approx(-2 * math.exp(0.1))


@pytest.mark.parametrize(("ratio", "advantage", "slope"), [(1.9, 2.0, -3.8), (9.0, -2.0, 4.0)])
def test_cispo_caps_the_weight_and_never_stops_the_gradient(ratio: float, advantage: float, slope: float) -> None:
    result = value_and_slope(functools.partial(cispo, is_cap=2.0), -1.5, -1.5 - math.log(ratio), advantage)
    assert result == pytest.approx((slope * -1.5, slope))


@pytest.mark.parametrize(
    ("value", "target", "loss", "slope"),
    [
        (0.75, 2.0, 1.125, 0.0),  # moved from 0 towards the target by more than 0.5: as if it had stopped there
        (2.0, 0.75, 0.78125, 1.25),  # moved past the target: the error itself is larger, and pulls it back
    ],
)
def test_the_clipped_value_error_by_hand(value: float, target: float, loss: float, slope: float) -> None:
    result = value_and_slope(functools.partial(squared_value_error, clip=0.5), value, target, 0.0)
    assert result == pytest.approx((loss, slope), abs=ROUNDING)


MASK = torch.tensor([[False, True, True, True], [False, True, False, False], [False, False, False, False]])


@pytest.mark.parametrize(
    ("aggregation", "long", "short"),
    [
        (Aggregation.TOKEN_MEAN, 1 / 4, 1 / 4),
        (Aggregation.SEQUENCE_MEAN_TOKEN_MEAN, 1 / 15, 1 / 5),
        (Aggregation.SEQUENCE_MEAN_TOKEN_SUM, 1 / 5, 1 / 5),
        (Aggregation.SEQUENCE_MEAN_TOKEN_SUM_NORM, 1 / 50, 1 / 50),
    ],
)
def test_token_weights_by_hand_and_of_an_empty_step(aggregation: Aggregation, long: float, short: float) -> None:
    weights = token_weights(MASK, aggregation, num_completions=5, max_tokens=10)
    expected: list[list[float]] = [[0, long, long, long], [0, short, 0, 0], [0, 0, 0, 0]]
    np.testing.assert_allclose(weights.numpy(), expected, rtol=ROUNDING, atol=0)
    assert weights.dtype == torch.float64
    empty = token_weights(torch.zeros(2, 3, dtype=torch.bool), aggregation, num_completions=0, max_tokens=4)
    assert torch.equal(empty, torch.zeros(2, 3, dtype=torch.float64))


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda: clipped_surrogate(NUMBER, NUMBER, NUMBER, dual_clip=1.0), "above 1; got"),
        (lambda: clipped_surrogate(NUMBER, NUMBER, NUMBER, dual_clip=math.nan), "above 1; got"),
        (lambda: cispo(NUMBER, NUMBER, NUMBER, 0.0), "positive; got"),
        (lambda: cispo(NUMBER, NUMBER, NUMBER, math.nan), "positive; got"),
        (lambda: squared_value_error(NUMBER, NUMBER, clip=0.2), "old_values, which are missing"),
        (lambda: squared_value_error(NUMBER, NUMBER, NUMBER, clip=0.0), r"positive; got 0\.0"),
        (lambda: token_weights(MASK, Aggregation.SEQUENCE_MEAN_TOKEN_SUM_NORM, num_completions=3), "needs max_tokens"),
        (lambda: token_weights(MASK, "token-meen", num_completions=3), "Did you mean 'token-mean'"),
    ],
)
def test_bounds_and_names_without_meaning_are_named(wrong: Callable[[], Tensor], message: str) -> None:
    with pytest.raises((InvalidArgumentError, UnknownNameError), match=message):
        wrong()


def test_policy_gradient_by_hand() -> None:
    assert value_and_slope(policy_gradient, -2.0, 3.0) == (6.0, -3.0)
