"""Losses, KL estimators and importance weights by hand and at extremes; test_numpy_reference.py compares each with NumPy."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import Tensor

from agents import make_batch
from agents.importance import Correction, effective_share, importance_weights
from agents.kl import AdaptiveKLController, KLEstimator, kl_estimate
from agents.losses import (
    Aggregation,
    cispo,
    clipped_surrogate,
    policy_gradient,
    sequence_clipped_surrogate,
    squared_value_error,
    token_weights,
)
from tests.agents.agent_cases import make_agent, some_batch
from tests.agents.rounding import ROUNDING
from verifiers import InvalidArgumentError, UnknownNameError

Loss = Callable[..., Tensor]


def value_and_slope(
    loss: Loss, variable: float, *others: float, dtype: torch.dtype = torch.float64
) -> tuple[float, float]:
    """Of the loss of one token, with respect to its first argument."""
    first, *rest = (torch.tensor([[number]], dtype=dtype) for number in (variable, *others))
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


def test_policy_gradient_by_hand() -> None:
    assert value_and_slope(policy_gradient, -2.0, 3.0) == (6.0, -3.0)


def test_estimates_by_hand() -> None:
    logprobs, reference, old = (torch.full((1, 1), math.log(p), dtype=torch.float64) for p in (0.5, 0.25, 0.4))
    d = math.log(2)
    expected = {"k1": d, "k2": d**2 / 2, "k3": 0.5 + d - 1, "k3-ratio": 1.25 * (0.5 + d - 1)}
    for name, value in expected.items():
        assert float(kl_estimate(name, logprobs, reference, old)) == pytest.approx(value, abs=ROUNDING)


def test_k3_is_never_negative_and_0_only_where_the_policies_agree() -> None:
    """In float32, where rounding of small differences could give a negative number."""
    differences = torch.cat([torch.linspace(-30, 30, 2001), torch.logspace(-7, 0, 2000)])[None]
    estimates = kl_estimate("k3", torch.zeros_like(differences), differences)
    assert (estimates >= 0).all()
    assert (estimates[differences.abs() > 1e-3] > 0).all()


@pytest.mark.parametrize(
    ("estimator", "gap", "expected"),
    [
        # A bound of 10 on the value would leave no gradient from 2.6 on.
        *(("k3", gap, 1 - math.exp(gap)) for gap in (2.0, 3.0, 19.0)),
        *(("k3", gap, 1.0) for gap in (-19.0, -1000.0)),
        # On-policy, beyond the cut too.
        *(("k3-ratio", gap, -gap) for gap in (19.0, 21.0, 2000.0)),
    ],
)
def test_a_token_is_pulled_back_however_far_the_reference_is(estimator: str, gap: float, expected: float) -> None:
    """The derivative by log pi, in float32, at a token that pi_old sampled as pi does."""
    loss = functools.partial(kl_estimate, estimator)
    assert value_and_slope(loss, 0.0, gap, 0.0, dtype=torch.float32)[1] == pytest.approx(expected, rel=1e-5)


def test_the_controller_by_hand() -> None:
    controller = AdaptiveKLController(0.2, target=0.1, horizon=1000)
    assert controller.update(0.11, 100) == pytest.approx(0.2 * 1.01)
    controller.coefficient = 0.2
    assert controller.update(5.0, 500) == pytest.approx(0.2 * 1.1)  # an error above 0.2 counts as 0.2
    assert controller.update(-3.0, 500) == pytest.approx(0.2 * 1.1 * 0.9)


# Importance weights

OWN = torch.tensor([[False, True, True, True], [True, False, True, False], [False] * 4])
RATIOS = torch.tensor([[9, 4, 0.5, 0.25], [1.5, 9, 1.2, 9], [9, 9, 9, 9]], dtype=torch.float64)
OLD = torch.full((3, 4), -2.0, dtype=torch.float64)
BEHAVIOUR = OLD - RATIOS.log()


@pytest.mark.parametrize(
    ("correction", "first", "second"),
    [
        ("token-mask", [0, 0, 0.5, 0], [1.5, 0, 1.2, 0]),
        ("sequence-truncate", [0, 0.5, 0.5, 0.5], [1.8, 0, 1.8, 0]),  # the products are 4 / 8 and 1.5 * 1.2
        ("geometric-mask", [0, 2, 0.5, 0.4], [1.5, 0, 1.2, 0]),  # of the means 0.5 ** (1 / 3) and 1.8 ** 0.5
    ],
)
def test_weights_by_hand(correction: str, first: list[float], second: list[float]) -> None:
    weights = importance_weights(OLD, BEHAVIOUR, OWN, correction, cap=2.0, floor=0.4)
    expected = torch.tensor([first, second, [0.0] * 4], dtype=torch.float64)
    torch.testing.assert_close(weights, expected, rtol=ROUNDING, atol=0)


@pytest.mark.parametrize(("correction", "light"), [("token-mask", 0.0), ("token-truncate", 0.5)])
def test_an_agents_floor_cuts_weights_from_below(correction: str, light: float) -> None:
    """Half of the tokens were four times as likely where they were sampled: weight 1/4 is dropped, or lifted to the floor."""
    agent = make_agent("grpo", importance_correction=correction, importance_floor=0.5)
    rows = some_batch(agent.policy)
    for one in rows[1::2]:
        one.logprobs[one.policy_mask] += np.float32(math.log(4))
    batch = agent.prepare(make_batch(rows))
    assert batch.importance is not None
    for start, weight in ((0, 1.0), (1, light)):
        weights = batch.importance[start::2][batch.loss_mask[start::2]]
        np.testing.assert_allclose(weights, weight, atol=1e-5)


@pytest.mark.parametrize("correction", list(Correction))
def test_samples_of_the_policy_itself_weigh_exactly_1(correction: Correction) -> None:
    logprobs = -5 * torch.rand(3, 4, generator=torch.Generator().manual_seed(0))
    weights = importance_weights(logprobs, logprobs, OWN, correction, cap=1.0, floor=1.0)
    assert torch.equal(weights, OWN.float())


def test_the_effective_share_by_hand() -> None:
    assert effective_share(6 / 3, 14 / 3) == pytest.approx(36 / (3 * 14))  # of 1, 2 and 3
    assert effective_share(0.0, 0.0) == 0.0


TOKEN = torch.zeros(1, 1)
CONTROLLER = AdaptiveKLController(0.1, horizon=100)
NORM = Aggregation.SEQUENCE_MEAN_TOKEN_SUM_NORM


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda: clipped_surrogate(TOKEN, TOKEN, TOKEN, dual_clip=1.0), "above 1; got"),
        (lambda: clipped_surrogate(TOKEN, TOKEN, TOKEN, dual_clip=math.nan), "above 1; got"),
        (lambda: cispo(TOKEN, TOKEN, TOKEN, 0.0), "positive; got"),
        (lambda: cispo(TOKEN, TOKEN, TOKEN, math.nan), "positive; got"),
        (lambda: squared_value_error(TOKEN, TOKEN, clip=0.2), "old_values, which are missing"),
        (lambda: squared_value_error(TOKEN, TOKEN, TOKEN, clip=0.0), r"positive; got 0\.0"),
        (lambda: token_weights(MASK, NORM, num_completions=3), "needs max_tokens"),
        (lambda: token_weights(MASK, "token-meen", num_completions=3), "Did you mean 'token-mean'"),
        (lambda: kl_estimate(KLEstimator.K3_RATIO, TOKEN, TOKEN), "needs old_logprobs"),
        (lambda: kl_estimate("k4", TOKEN, TOKEN), r"unknown estimator 'k4'\. Known: k1, k2, k3,"),
        (lambda: AdaptiveKLController(-0.1), "at least 0; got -0.1"),
        (lambda: AdaptiveKLController(math.nan), "at least 0; got nan"),
        (lambda: AdaptiveKLController(0.1, target=0.0), "target = 0.0"),
        (lambda: AdaptiveKLController(0.1, horizon=0), "horizon = 0"),
        (lambda: CONTROLLER.update(math.nan, 1), "NaN"),
        (lambda: CONTROLLER.update(0.1, 500), "below 5 horizons"),
        (lambda: CONTROLLER.update(0.1, -1), "-1"),
        (lambda: importance_weights(OLD, OLD, OWN, "token-mask", cap=0.9), "0 <= floor <= 1 <= cap; got floor ="),
        (lambda: importance_weights(OLD, OLD, OWN, "token-mask", cap=math.nan), "<= 1 <= cap"),
        (lambda: importance_weights(OLD, OLD, OWN, "token-mask", floor=1.1), "<= 1 <= cap"),
        (lambda: importance_weights(OLD, OLD, OWN, "token-mask", floor=-0.1), "<= 1 <= cap"),
        (lambda: importance_weights(OLD, OLD, OWN, "token-clip"), "'token-clip'.*Known: geometric-mask, none"),
    ],
)
def test_bounds_and_names_without_meaning_are_named(wrong: Callable[[], object], message: str) -> None:
    with pytest.raises((InvalidArgumentError, UnknownNameError), match=message):
        wrong()
    assert CONTROLLER.coefficient == 0.1
