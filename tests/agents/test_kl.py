"""KL estimators by hand and at their extremes; test_numpy_reference.py compares each with NumPy."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
import torch

from agents.kl import AdaptiveKLController, KLEstimator, kl_estimate
from tests.agents.rounding import ROUNDING
from verifiers import InvalidArgumentError, UnknownNameError


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
    logprobs = torch.zeros(1, 1, requires_grad=True)
    estimate = kl_estimate(estimator, logprobs, torch.full((1, 1), gap), logprobs.detach())
    (slope,) = torch.autograd.grad(estimate.sum(), logprobs)
    assert float(slope) == pytest.approx(expected, rel=1e-5)


def test_the_controller_by_hand() -> None:
    controller = AdaptiveKLController(0.2, target=0.1, horizon=1000)
    assert controller.update(0.11, 100) == pytest.approx(0.2 * 1.01)
    controller.coefficient = 0.2
    assert controller.update(5.0, 500) == pytest.approx(0.2 * 1.1)  # an error above 0.2 counts as 0.2
    assert controller.update(-3.0, 500) == pytest.approx(0.2 * 1.1 * 0.9)


CONTROLLER = AdaptiveKLController(0.1, horizon=100)
TOKEN = torch.zeros(1, 1)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda: kl_estimate(KLEstimator.K3_RATIO, TOKEN, TOKEN), "needs old_logprobs"),
        (lambda: kl_estimate("k4", TOKEN, TOKEN), r"unknown estimator 'k4'\. Known: k1, k2, k3,"),
        (lambda: AdaptiveKLController(-0.1), "at least 0; got -0.1"),
        (lambda: AdaptiveKLController(math.nan), "at least 0; got nan"),
        (lambda: AdaptiveKLController(0.1, target=0.0), "target = 0.0"),
        (lambda: AdaptiveKLController(0.1, horizon=0), "horizon = 0"),
        (lambda: CONTROLLER.update(math.nan, 1), "NaN"),
        (lambda: CONTROLLER.update(0.1, 500), "below 5 horizons"),
        (lambda: CONTROLLER.update(0.1, -1), "-1"),
    ],
)
def test_what_has_no_meaning_is_named_and_changes_nothing(wrong: Callable[[], object], message: str) -> None:
    with pytest.raises((InvalidArgumentError, UnknownNameError), match=message):
        wrong()
    assert CONTROLLER.coefficient == 0.1
