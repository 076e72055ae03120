"""KL estimators by hand and at their extremes; test_numpy_reference.py compares each with NumPy."""

from __future__ import annotations

import math

import pytest
import torch

from agents.kl import AdaptiveKLController, KLEstimator, kl_estimate
from tests.agents.rounding import ROUNDING
from verifiers import InvalidArgumentError, UnknownNameError

# Values


def test_estimates_by_hand() -> None:
    logprobs, reference, old = (torch.full((1, 1), math.log(p), dtype=torch.float64) for p in (0.5, 0.25, 0.4))
    d = math.log(2)
    expected = {"k1": d, "k2": d**2 / 2, "k3": 0.5 + d - 1, "k3-ratio": 1.25 * (0.5 + d - 1)}
    for name, value in expected.items():
        assert float(kl_estimate(name, logprobs, reference, old)) == pytest.approx(value, abs=ROUNDING)


def test_k3_is_never_negative_and_0_only_where_the_policies_agree() -> None:
    differences = torch.cat([torch.linspace(-30, 30, 2001), torch.logspace(-7, 0, 2000)])[None]
    estimates = kl_estimate("k3", torch.zeros_like(differences), differences)
    assert (estimates >= 0).all()
    assert (estimates[differences.abs() > 1e-3] > 0).all()
    assert float(kl_estimate("k3", torch.tensor([[-0.7]]), torch.tensor([[-0.7]]))) == 0


# Gradients


@pytest.mark.parametrize("gap", [19.0, 21.0, 30.0, 2000.0])
def test_k3_ratio_pulls_towards_a_reference_that_is_far_above(gap: float) -> None:
    """By hand: on-policy the derivative by log pi is log pi - log ref = -gap, in float32 and beyond the cut too."""
    logprobs = torch.full((1, 1), -gap, requires_grad=True)
    (slope,) = torch.autograd.grad(
        kl_estimate("k3-ratio", logprobs, torch.zeros(1, 1), logprobs.detach()).sum(), logprobs
    )
    assert float(slope) == pytest.approx(-gap, rel=1e-6)


def slope(estimator: str, logprob: float, reference: float) -> tuple[float, float]:
    """Value and derivative in log pi, in float32, at a token that pi_old sampled as pi does."""
    logprobs = torch.tensor([[logprob]], requires_grad=True)
    estimate = kl_estimate(estimator, logprobs, torch.tensor([[reference]]), logprobs.detach())
    (gradient,) = torch.autograd.grad(estimate.sum(), logprobs)
    return float(estimate.detach()), float(gradient)


def test_k3_pulls_a_token_back_however_much_the_reference_prefers_it_or_rules_it_out() -> None:
    for above in (2.0, 3.0, 10.0, 19.0):  # a bound of 10 on the value would leave no gradient from 2.6 on
        assert slope("k3", -above, 0.0)[1] == pytest.approx(1 - math.exp(above), rel=1e-5)
    for below in (5.0, 19.0, 25.0, 1000.0):
        assert slope("k3", 0.0, -below) == pytest.approx((below - 1, 1.0), abs=0.01)


# Names


def test_the_ratio_needs_the_policy_that_was_sampled_from() -> None:
    with pytest.raises(InvalidArgumentError, match="needs old_logprobs"):
        kl_estimate(KLEstimator.K3_RATIO, torch.zeros(1, 1), torch.zeros(1, 1))
    with pytest.raises(UnknownNameError, match=r"unknown estimator 'k4'\. Known: k1, k2, k3,"):
        kl_estimate("k4", torch.zeros(1, 1), torch.zeros(1, 1))


# The controller


def test_the_controller_by_hand() -> None:
    controller = AdaptiveKLController(0.2, target=0.1, horizon=1000)
    assert controller.update(0.11, 100) == pytest.approx(0.2 * 1.01)
    controller.coefficient = 0.2
    assert controller.update(5.0, 500) == pytest.approx(0.2 * 1.1)  # an error above 0.2 counts as 0.2
    controller.coefficient = 0.2
    assert controller.update(-3.0, 500) == pytest.approx(0.2 * 0.9)
    assert controller.update(0.1, 500) == pytest.approx(0.2 * 0.9)
    assert controller.update(7.0, 0) == pytest.approx(0.2 * 0.9)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((-0.1, 0.1), "at least 0; got -0.1"),
        ((math.nan, 0.1), "at least 0; got nan"),
        ((0.1, 0.0), "target = 0.0"),
    ],
)
def test_a_controller_without_meaning_is_named(arguments: tuple[float, float], message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        AdaptiveKLController(*arguments)
    with pytest.raises(InvalidArgumentError, match="horizon = 0"):
        AdaptiveKLController(0.1, horizon=0)


@pytest.mark.parametrize(
    ("kl", "n", "message"), [(math.nan, 1, "NaN"), (0.1, 500, "below 5 horizons"), (0.1, -1, "-1")]
)
def test_an_update_without_meaning_is_named(kl: float, n: int, message: str) -> None:
    controller = AdaptiveKLController(0.1, horizon=100)
    with pytest.raises(InvalidArgumentError, match=message):
        controller.update(kl, n)
    assert controller.coefficient == 0.1
