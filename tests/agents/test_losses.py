"""Losses against hand-computed numbers and, on a policy small enough to enumerate, against the exact gradient."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable

import numpy as np
import pytest
import torch
from beartype.roar import BeartypeException
from jaxtyping import TypeCheckError
from torch import Tensor

from agents.advantages import batch_mean_baseline, group_centered, group_z_score, returns_to_go
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
COMPLETIONS = torch.tensor(list(itertools.product(range(VOCAB), repeat=STEPS)))
"""All completions of two tokens."""


class TablePolicy:
    """A softmax for the first token, and one for the second after each first, over three tokens; in float64."""

    def __init__(self, seed: int) -> None:
        generator = torch.Generator().manual_seed(seed)
        self.first = torch.randn(VOCAB, generator=generator, dtype=torch.float64, requires_grad=True)
        self.second = torch.randn(VOCAB, VOCAB, generator=generator, dtype=torch.float64, requires_grad=True)

    def logprobs(self, completions: Tensor = COMPLETIONS) -> Tensor:
        """f64[b 2] of each token of completions i64[b 2]."""
        one, two = completions.T
        return torch.stack([self.first.log_softmax(-1)[one], self.second.log_softmax(-1)[one, two]], dim=1)

    def gradient(self, objective: Tensor) -> Tensor:
        gradients = torch.autograd.grad(objective, [self.first, self.second], allow_unused=True, materialize_grads=True)
        return torch.cat([gradient.flatten() for gradient in gradients])

    def probabilities(self) -> Tensor:
        return self.logprobs().sum(1).exp()


@pytest.fixture
def policy() -> TablePolicy:
    return TablePolicy(0)


@pytest.fixture
def rewards() -> Tensor:
    """f64[9 2]: what comes with each token of each completion; the first token's does not depend on the second."""
    generator = torch.Generator().manual_seed(1)
    first = torch.randn(VOCAB, 1, generator=generator, dtype=torch.float64).expand(VOCAB, VOCAB).reshape(-1)
    second = torch.randn(VOCAB * VOCAB, generator=generator, dtype=torch.float64)
    return torch.stack([first, second], dim=1)


EVERYWHERE = torch.ones(len(COMPLETIONS), STEPS, dtype=torch.bool)
"""Nine products of float64 numbers of order 1 round by less."""


def expected_return(policy: TablePolicy, rewards: Tensor, *, gamma: float = 1.0) -> Tensor:
    return (policy.probabilities() * (rewards[:, 0] + gamma * rewards[:, 1])).sum()


def expected_update(policy: TablePolicy, advantages: Tensor) -> Tensor:
    """E[-grad loss] over all completions, each with its exact probability."""
    losses = policy_gradient(policy.logprobs(), advantages).sum(1)
    return policy.gradient(-(policy.probabilities().detach() * losses).sum())


# The policy gradient


def test_policy_gradient_by_hand() -> None:
    logprobs = torch.tensor([[-1.0, -2.0]], requires_grad=True)
    loss = policy_gradient(logprobs, torch.tensor([[3.0, -0.5]], dtype=torch.float64))
    assert loss.tolist() == [[3.0, -1.0]]
    loss.sum().backward()
    assert logprobs.grad is not None
    assert logprobs.grad.tolist() == [[-3.0, 0.5]]


@pytest.mark.parametrize("baseline", [0.0, 0.7, -20.0])
def test_expected_update_is_the_gradient_of_the_expected_return(
    policy: TablePolicy, rewards: Tensor, baseline: float
) -> None:
    exact = policy.gradient(expected_return(policy, rewards))
    assert exact.abs().max() > 0.05
    to_go = expected_update(policy, returns_to_go(rewards, EVERYWHERE) - baseline)
    whole = expected_update(policy, rewards.sum(1, keepdim=True).expand(-1, STEPS) - baseline)
    tolerance = ROUNDING * (1 + abs(baseline))
    torch.testing.assert_close(to_go, exact, rtol=0, atol=tolerance)
    torch.testing.assert_close(whole, exact, rtol=0, atol=tolerance)


@pytest.mark.parametrize("gamma", [0.0, 0.5, 1.0])
def test_each_token_climbs_the_discounted_return_from_itself_on(
    policy: TablePolicy, rewards: Tensor, gamma: float
) -> None:
    result = expected_update(policy, returns_to_go(rewards, EVERYWHERE, gamma))
    exact_first = policy.gradient(expected_return(policy, rewards, gamma=gamma))[:VOCAB]
    exact_second = policy.gradient(expected_return(policy, rewards))[VOCAB:]  # its own reward, discounted by nothing
    torch.testing.assert_close(result, torch.cat([exact_first, exact_second]), rtol=0, atol=ROUNDING)


def expected_batch_update(
    policy: TablePolicy, rewards: Tensor, size: int, advantages_of: Callable[[Tensor], Tensor]
) -> Tensor:
    """E[-grad of the mean loss] over all batches of `size` completions: `advantages_of` maps returns f64[n 2] to f64[n 2]."""
    probabilities, logprobs = policy.probabilities().detach(), policy.logprobs()
    returns = returns_to_go(rewards, EVERYWHERE)
    total = torch.zeros((), dtype=torch.float64)
    for members in itertools.product(range(len(COMPLETIONS)), repeat=size):
        rows = torch.tensor(members)
        losses = policy_gradient(logprobs[rows], advantages_of(returns[rows]))
        weights = token_weights(EVERYWHERE[rows], Aggregation.SEQUENCE_MEAN_TOKEN_SUM, num_completions=size)
        total = total - probabilities[rows].prod() * (losses * weights).sum()
    return policy.gradient(total)


def less_batch_mean(returns: Tensor) -> Tensor:
    return returns - batch_mean_baseline(returns[:, 0], torch.ones(len(returns), dtype=torch.bool))


def centered(returns: Tensor) -> Tensor:
    size = len(returns)
    results = group_centered(returns[:, 0], torch.zeros(size, dtype=torch.long), torch.ones(size, dtype=torch.bool))
    return results[:, None].expand(-1, STEPS)


@pytest.mark.parametrize("size", [2, 3])
@pytest.mark.parametrize("advantages_of", [less_batch_mean, centered])
def test_a_baseline_that_contains_the_episode_scales_the_gradient_and_no_more(
    policy: TablePolicy, rewards: Tensor, size: int, advantages_of: Callable[[Tensor], Tensor]
) -> None:
    exact = policy.gradient(expected_return(policy, rewards))
    result = expected_batch_update(policy, rewards, size, advantages_of)
    torch.testing.assert_close(result, exact * (size - 1) / size, rtol=0, atol=ROUNDING)


def test_a_batch_of_one_without_baseline_is_unbiased(policy: TablePolicy, rewards: Tensor) -> None:
    exact = policy.gradient(expected_return(policy, rewards))
    torch.testing.assert_close(expected_batch_update(policy, rewards, 1, lambda g: g), exact, rtol=0, atol=ROUNDING)


def test_z_scores_still_point_uphill(policy: TablePolicy, rewards: Tensor) -> None:
    def standardized(returns: Tensor) -> Tensor:
        size = len(returns)
        groups, valid = torch.zeros(size, dtype=torch.long), torch.ones(size, dtype=torch.bool)
        return group_z_score(returns[:, 0], groups, valid)[:, None].expand(-1, STEPS)

    exact = policy.gradient(expected_return(policy, rewards))
    result = expected_batch_update(policy, rewards, 3, standardized)
    assert torch.nn.functional.cosine_similarity(result, exact, dim=0) > 0.8


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


def test_unclipped_it_corrects_for_the_distribution_that_was_sampled(rewards: Tensor) -> None:
    """E over pi_old of the ratio times the return is the expected return of pi, for each token's own ratio."""
    policy, old = TablePolicy(0), TablePolicy(5)
    behaviour, old_logprobs = old.probabilities().detach(), old.logprobs().detach()
    first_only = torch.stack([rewards[:, 0], torch.zeros(len(rewards), dtype=torch.float64)], dim=1)
    losses = clipped_surrogate(policy.logprobs(), old_logprobs, first_only, clip_low=1.0, clip_high=1e6)
    exact = policy.gradient((policy.probabilities() * rewards[:, 0]).sum())
    torch.testing.assert_close(policy.gradient(-(behaviour * losses.sum(1)).sum()), exact, rtol=0, atol=ROUNDING)


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


def test_with_one_advantage_its_gradient_is_that_of_the_sequence_objective() -> None:
    """GSPO, equations 5 and 7: the mean over completions of min(s A, clip(s) A), differentiated as a whole."""
    logprobs, old, advantages = off_policy_tokens()
    advantages = advantages[:, :1].expand(6, 7)
    mask = torch.rand(6, 7, generator=torch.Generator().manual_seed(0)) < 0.7
    lengths = mask.sum(1)
    assert (lengths > 0).all()
    weights = token_weights(mask, Aggregation.SEQUENCE_MEAN_TOKEN_MEAN, num_completions=6)
    by_tokens = (sequence_clipped_surrogate(logprobs, old, advantages, mask, 0.2, 0.3) * weights).sum()
    ratio = (((logprobs - old) * mask).sum(1) / lengths).exp()
    whole = -torch.minimum(ratio * advantages[:, 0], ratio.clamp(0.8, 1.3) * advantages[:, 0]).mean()
    torch.testing.assert_close(by_tokens, whole, rtol=ROUNDING, atol=0)
    result, expected = (torch.autograd.grad(loss, logprobs)[0] for loss in (by_tokens, whole))
    assert expected.abs().max() > 0.01
    torch.testing.assert_close(result, expected, rtol=ROUNDING, atol=ROUNDING)


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


# Shapes


@pytest.mark.parametrize(
    "call",
    [
        lambda: policy_gradient(torch.zeros(2, 3), torch.zeros(2, 1)),
        lambda: clipped_surrogate(torch.zeros(2, 3), torch.zeros(2, 4), torch.zeros(2, 3)),
        lambda: clipped_surrogate(torch.zeros(2, 3), torch.zeros(2, 3), torch.zeros(2, 3).long()),
        lambda: sequence_clipped_surrogate(torch.zeros(2, 3), torch.zeros(2, 3), torch.zeros(2, 3), torch.ones(2, 3)),
        lambda: cispo(torch.zeros(2, 3), torch.zeros(2, 3), torch.zeros(3, 2), 2.0),
        lambda: squared_value_error(torch.zeros(2, 3), torch.zeros(2, 3), torch.zeros(2), 0.2),
        lambda: token_weights(torch.ones(2, 3), Aggregation.TOKEN_MEAN, num_completions=2),
    ],
)
def test_annotations_are_checked_at_run_time(call: Callable[[], Tensor]) -> None:
    with pytest.raises((TypeCheckError, BeartypeException)):
        call()
