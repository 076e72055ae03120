"""Losses by hand; test_numpy_reference.py compares each formula with NumPy."""

from __future__ import annotations

import math

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

VOCAB, STEPS = 3, 2


# The policy gradient


def test_policy_gradient_by_hand() -> None:
    logprobs = torch.tensor([[-1.0, -2.0]], requires_grad=True)
    loss = policy_gradient(logprobs, torch.tensor([[3.0, -0.5]], dtype=torch.float64))
    assert loss.tolist() == [[3.0, -1.0]]
    loss.sum().backward()
    assert logprobs.grad is not None
    assert logprobs.grad.tolist() == [[-3.0, 0.5]]


# The clipped surrogate


def surrogate_gradient(ratio: float, advantage: float, **clip: float) -> tuple[float, float]:
    """Value and derivative with respect to the log-probability, for one token."""
    logprobs = torch.tensor([[math.log(ratio) - 1.0]], dtype=torch.float64, requires_grad=True)
    old = torch.tensor([[-1.0]], dtype=torch.float64)
    loss = clipped_surrogate(logprobs, old, torch.tensor([[advantage]], dtype=torch.float64), **clip)
    (gradient,) = torch.autograd.grad(loss.sum(), logprobs)
    return float(loss.detach()), float(gradient)


@pytest.mark.parametrize(
    ("ratio", "advantage", "value", "slope"),
    [
        # Inside the bounds: -r A, whose slope in log pi is -r A.
        (1.1, 2.0, -2.2, -2.2),
        (0.9, 2.0, -1.8, -1.8),
        (1.1, -2.0, 2.2, 2.2),
        # A good token that is already likelier: clipped, nothing more to gain.
        (1.5, 2.0, -2.4, 0.0),
        # A good token that has become less likely: pulled back.
        (0.5, 2.0, -1.0, -1.0),
        # A bad token that is already less likely: clipped.
        (0.5, -2.0, 1.6, 0.0),
        # A bad token that has become likelier: pushed down.
        (1.5, -2.0, 3.0, 3.0),
        (1.5, 0.0, 0.0, 0.0),
    ],
)
def test_clipping_saturates_on_the_side_of_the_advantage_only(
    ratio: float, advantage: float, value: float, slope: float
) -> None:
    result = surrogate_gradient(ratio, advantage)
    assert result == pytest.approx((value, slope), abs=ROUNDING)


# The dual clip


@pytest.mark.parametrize(
    ("ratio", "advantage", "value", "slope"),
    [
        (2.9, -2.0, 5.8, 5.8),
        # Beyond c = 3 a bad token counts no more than 3 times, and no longer moves.
        (3.1, -2.0, 6.0, 0.0),
        (1000.0, -2.0, 6.0, 0.0),
        # The ordinary clip stays where it was.
        (0.5, -2.0, 1.6, 0.0),
        (1000.0, 2.0, -2.4, 0.0),
        (1000.0, 0.0, 0.0, 0.0),
    ],
)
def test_the_dual_clip_bounds_the_loss_of_bad_tokens(
    ratio: float, advantage: float, value: float, slope: float
) -> None:
    assert surrogate_gradient(ratio, advantage, dual_clip=3.0) == pytest.approx((value, slope), abs=ROUNDING)


def off_policy_tokens() -> tuple[Tensor, Tensor, Tensor]:
    """Log-probabilities, those of an older policy, and advantages: f64[6 7], with ratios from 0.05 to 20."""
    generator = torch.Generator().manual_seed(2)
    logprobs = -3 * torch.rand(6, 7, generator=generator, dtype=torch.float64)
    old = logprobs - 3 * (2 * torch.rand(6, 7, generator=generator, dtype=torch.float64) - 1)
    return logprobs.requires_grad_(), old, torch.randn(6, 7, generator=generator, dtype=torch.float64)


@pytest.mark.parametrize("bound", [1e6, math.inf])
def test_a_dual_clip_at_infinity_is_ppo(bound: float) -> None:
    logprobs, old, advantages = off_policy_tokens()
    advantages[0, 0] = 0.0
    plain = clipped_surrogate(logprobs, old, advantages)
    dual = clipped_surrogate(logprobs, old, advantages, dual_clip=bound)
    assert torch.equal(plain, dual)
    result, expected = (torch.autograd.grad(loss.sum(), logprobs)[0] for loss in (dual, plain))
    assert torch.equal(result, expected)


@pytest.mark.parametrize("bound", [1.0, 0.0, -3.0, math.nan])
def test_a_dual_clip_that_would_cut_ppo_off_is_named(bound: float) -> None:
    with pytest.raises(InvalidArgumentError, match="above 1; got"):
        surrogate_gradient(1.0, 1.0, dual_clip=bound)


# One ratio for a completion

RAGGED = torch.tensor([[True, True, True, False], [True, False, True, False], [False] * 4])


def test_the_sequence_ratio_by_hand() -> None:
    difference = torch.tensor([[0.3, -0.1, 0.1, 9.0], [0.2, 9.0, -0.6, 9.0], [9.0] * 4], dtype=torch.float64)
    old = torch.full((3, 4), -10.0, dtype=torch.float64)
    logprobs = (old + difference).requires_grad_()
    advantages = torch.tensor([[2.0], [-1.0], [1.0]], dtype=torch.float64).expand(3, 4)
    losses = sequence_clipped_surrogate(logprobs, old, advantages, RAGGED, 0.25, 0.3)
    # Mean differences 0.1 and -0.2, and nothing to average in the last row.
    ratios = torch.tensor([math.exp(0.1), math.exp(-0.2), 1.0], dtype=torch.float64)[:, None]
    torch.testing.assert_close(losses, (-ratios * advantages).expand(3, 4), rtol=ROUNDING, atol=0)
    (gradient,) = torch.autograd.grad((losses * RAGGED).sum(), logprobs)
    torch.testing.assert_close(gradient, (-ratios * advantages) * RAGGED, rtol=ROUNDING, atol=0)


# CISPO


@pytest.mark.parametrize(
    ("ratio", "advantage", "slope"), [(0.01, 2.0, -0.02), (1.9, 2.0, -3.8), (9.0, 2.0, -4.0), (9.0, -2.0, 4.0)]
)
def test_cispo_caps_the_weight_and_never_stops_the_gradient(ratio: float, advantage: float, slope: float) -> None:
    logprobs = torch.tensor([[-1.5]], dtype=torch.float64, requires_grad=True)
    old = torch.tensor([[-1.5 - math.log(ratio)]], dtype=torch.float64)
    loss = cispo(logprobs, old, torch.tensor([[advantage]], dtype=torch.float64), is_cap=2.0)
    assert float(loss.detach()) == pytest.approx(slope * -1.5)
    (gradient,) = torch.autograd.grad(loss.sum(), logprobs)
    assert float(gradient) == pytest.approx(slope)


@pytest.mark.parametrize("cap", [0.0, -1.0, math.nan])
def test_a_cap_without_meaning_is_named(cap: float) -> None:
    with pytest.raises(InvalidArgumentError, match="positive; got"):
        cispo(torch.zeros(1, 1), torch.zeros(1, 1), torch.zeros(1, 1), cap)


# The value function


def value_gradient(value: float, target: float, old: float, clip: float | None) -> tuple[float, float]:
    values = torch.tensor([[value]], dtype=torch.float64, requires_grad=True)
    targets, before = (torch.tensor([[number]], dtype=torch.float64) for number in (target, old))
    loss = squared_value_error(values, targets, before, clip)
    (gradient,) = torch.autograd.grad(loss.sum(), values)
    return float(loss.detach()), float(gradient)


@pytest.mark.parametrize(
    ("value", "target", "clip", "loss", "slope"),
    [
        (3.0, 1.0, None, 2.0, 2.0),
        # The old value is 0. Within 0.5 of it the clip does nothing.
        (0.4, 1.0, 0.5, 0.18, -0.6),
        # Moved towards the target by more than 0.5: as if it had stopped there, and no gradient.
        (0.75, 2.0, 0.5, 1.125, 0.0),
        # Moved away, or past the target: the error itself is larger, and pulls it back.
        (-1.0, 2.0, 0.5, 4.5, -3.0),
        (2.0, 0.75, 0.5, 0.78125, 1.25),
    ],
)
def test_the_value_error_by_hand(value: float, target: float, clip: float | None, loss: float, slope: float) -> None:
    assert value_gradient(value, target, 0.0, clip) == pytest.approx((loss, slope), abs=ROUNDING)


def test_a_value_clip_needs_a_centre_and_a_width() -> None:
    values = torch.zeros(1, 2)
    with pytest.raises(InvalidArgumentError, match="old_values, which are missing"):
        squared_value_error(values, values, clip=0.2)
    with pytest.raises(InvalidArgumentError, match=r"positive; got -0\.2"):
        squared_value_error(values, values, values, clip=-0.2)


# Aggregation

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
def test_token_weights_by_hand(aggregation: Aggregation, long: float, short: float) -> None:
    weights = token_weights(MASK, aggregation, num_completions=5, max_tokens=10)
    expected: list[list[float]] = [[0, long, long, long], [0, short, 0, 0], [0, 0, 0, 0]]
    np.testing.assert_allclose(weights.numpy(), expected, rtol=ROUNDING, atol=0)
    assert weights.dtype == torch.float64


@pytest.mark.parametrize("aggregation", list(Aggregation))
def test_weights_of_an_empty_step_are_0(aggregation: Aggregation) -> None:
    weights = token_weights(torch.zeros(2, 3, dtype=torch.bool), aggregation, num_completions=0, max_tokens=4)
    assert torch.equal(weights, torch.zeros(2, 3, dtype=torch.float64))


def test_a_missing_constant_length_is_named() -> None:
    with pytest.raises(InvalidArgumentError, match=r"sequence-mean-token-sum-norm.*needs max_tokens"):
        token_weights(MASK, Aggregation.SEQUENCE_MEAN_TOKEN_SUM_NORM, num_completions=3)


def test_an_unknown_aggregation_suggests_the_nearest() -> None:
    with pytest.raises(UnknownNameError, match=r"unknown aggregation 'token-meen'\. Did you mean 'token-mean'\?"):
        token_weights(MASK, "token-meen", num_completions=3)
