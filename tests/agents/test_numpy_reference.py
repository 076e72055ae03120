"""The pure functions of `agents` against their independent NumPy references, on ragged, holed and broken batches."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings, strategies as st

from agents import advantages, importance, kl, losses
from tests.agents import numpy_reference as reference
from tests.agents.numpy_reference import Bools, Floats, Ints
from tests.agents.rounding import ROUNDING

TOLERANCE = 1e-10
thorough = settings(max_examples=60)


def tensor(value: object) -> object:
    return torch.from_numpy(value.copy()) if isinstance(value, np.ndarray) else value


def agree(function: Callable[..., object], *args: object, **kwargs: object) -> None:
    """The torch function and the reference of the same name give the same numbers."""
    expected = getattr(reference, function.__name__)(*args, **kwargs)
    actual = function(*map(tensor, args), **{name: tensor(value) for name, value in kwargs.items()})
    if isinstance(actual, torch.Tensor):
        assert actual.dtype == torch.float64
        assert not actual.requires_grad
    np.testing.assert_allclose(np.asarray(actual), expected, TOLERANCE, TOLERANCE, err_msg=function.__name__)


def agree_with_gradient(
    function: Callable[..., torch.Tensor], mask: Bools, first: Floats, *args: object, **kwargs: object
) -> None:
    """The same loss at the masked tokens, and, summed with random weights, the same derivative by the first argument."""
    expected, slope = getattr(reference, function.__name__)(first, *args, **kwargs)
    variable = torch.from_numpy(first.copy()).requires_grad_()
    actual = function(variable, *map(tensor, args), **kwargs)
    weights = np.where(mask, np.random.default_rng(0).uniform(0.5, 1.5, first.shape), 0.0)
    (actual * torch.from_numpy(weights)).sum().backward()
    assert variable.grad is not None
    np.testing.assert_allclose(actual.detach().numpy()[mask], expected[mask], rtol=TOLERANCE, atol=TOLERANCE)
    np.testing.assert_allclose(variable.grad.numpy(), weights * slope, rtol=TOLERANCE, atol=TOLERANCE)


# ---------------------------------------------------------------- random batches


@dataclass(frozen=True)
class Scores:
    """What the verifiers said of a batch of completions, in groups of unequal size and mixed order."""

    scores: Floats
    groups: Ints
    valid: Bools

    @property
    def arrays(self) -> tuple[Floats, Ints, Bools]:
        return self.scores, self.groups, self.valid

    def non_negative(self) -> Scores:
        return replace(self, scores=np.abs(self.scores))

    def of_groups_generated_with(self, smallest: int) -> Scores:
        """Without the groups that have fewer members, valid or not."""
        kept = np.array([(self.groups == group).sum() >= smallest for group in self.groups])
        return Scores(self.scores[kept], self.groups[kept], self.valid[kept])


LABELS = (-7, 0, 3, 10**12)


def scores_batch(scores: Floats, groups: Ints, valid: Bools) -> Scores:
    return Scores(np.where(valid, scores, np.nan), groups, valid)


@st.composite
def small_scores(draw: st.DrawFn) -> Scores:
    """Up to 10 completions, scores in sevenths so that ties are common and spreads are never tiny."""
    rows = draw(st.integers(1, 10))
    score = st.sampled_from((0.0, 1.0)) | st.integers(-20, 20).map(lambda i: i / 7)
    drawn = draw(st.lists(st.tuples(score, st.sampled_from(LABELS), st.booleans()), min_size=rows, max_size=rows))
    scores, groups, valid = (np.array(column) for column in zip(*drawn, strict=True))
    return scores_batch(scores, groups, valid)


@dataclass(frozen=True)
class Tokens:
    """Per-token arrays of a ragged batch whose rows have holes; a row may hold none of the policy's tokens."""

    mask: Bools
    rewards: Floats
    values: Floats
    bootstrap: Floats
    logprobs: Floats
    old_logprobs: Floats
    advantages: Floats

    def with_gaps(self, scale: float) -> Tokens:
        """lp - old between -scale and scale, and exactly 0 at about half of the tokens."""
        gap = scale * np.tanh(self.values) * (self.rewards != 0)
        return replace(self, old_logprobs=self.logprobs - gap)


def random_tokens(seed: int, rows: int = 6, width: int = 9) -> Tokens:
    """The first row is one whose verifier broke."""
    rng = np.random.default_rng(seed)
    lengths = rng.integers(0, width + 1, rows)
    mask = (np.arange(width) < lengths[:, None]) & (rng.random((rows, width)) < 0.75)
    mask[0] = False
    rewards, values, logprobs, gaps, advantages = rng.normal(size=(5, rows, width))
    rewards[rng.random((rows, width)) < 0.5] = 0.0
    rewards[0, -1] = np.nan
    advantages[rng.random((rows, width)) < 0.2] = 0.0
    logprobs = -3 * np.abs(logprobs)
    return Tokens(mask, rewards, values, rng.normal(size=rows), logprobs, logprobs + 0.3 * gaps, advantages)


token_batches = st.builds(random_tokens, st.integers(0, 2**32 - 1), st.integers(1, 4), st.integers(1, 7))
discounts = st.sampled_from((0.0, 0.5, 0.99, 1.0))

# ---------------------------------------------------------------- advantages of groups


@given(small_scores(), st.sampled_from((1e-9, 1e-6, 0.5)), st.integers(1, 4), st.integers(0, 2**32 - 1))
@thorough
def test_advantages_of_groups(batch: Scores, epsilon: float, k: int, seed: int) -> None:
    for method in (advantages.group_centered, advantages.leave_one_out):
        agree(method, *batch.arrays)
    for method in (advantages.group_z_score, advantages.group_centered_batch_std):
        agree(method, *batch.arrays)
        agree(method, *batch.arrays, epsilon=epsilon)
    rng = np.random.default_rng(seed)
    lengths = rng.integers(1, 2000, len(batch.scores))
    agree(advantages.length_weighted, batch.scores, lengths, batch.groups, batch.valid)
    agree(advantages.maximum_likelihood, *batch.non_negative().arrays)
    large = batch.of_groups_generated_with(k + 1)
    if len(large.scores):
        agree(advantages.pass_at_k, *large.arrays, k)
    others = rng.integers(0, 3, (len(batch.scores), k - 1)) / 2
    components = np.where(batch.valid[:, None], np.column_stack([batch.scores, others]), np.nan)
    agree(advantages.multi_reward, components, rng.choice([0.0, 0.25, 1.0, 3.0], k), batch.groups, batch.valid)
    if batch.valid.any():
        agree(advantages.batch_mean_baseline, batch.scores, batch.valid)
    agree(advantages.moving_average, 5 * rng.normal(), batch.scores, batch.valid, rng.choice([0.0, 0.5, 0.99, 1.0]))
    mean = advantages.group_mean(*map(torch.from_numpy, batch.arrays)).numpy()[batch.valid]
    np.testing.assert_allclose(mean, reference.group_mean(*batch.arrays)[batch.valid], TOLERANCE, TOLERANCE)


@given(st.lists(st.integers(0, 40), min_size=1, max_size=8), st.integers(1, 30), st.integers(1, 30))
@thorough
def test_soft_overlong_penalty(lengths: list[int], max_tokens: int, margin: int) -> None:
    agree(advantages.soft_overlong_penalty, np.array(lengths), max_tokens, min(margin, max_tokens))


# ---------------------------------------------------------------- advantages of tokens


@given(token_batches, discounts, discounts, st.integers(1, 9), st.booleans(), st.booleans())
@thorough
def test_advantages_of_tokens(
    batch: Tokens, gamma: float, lam: float, n: int, bootstrapped: bool, center: bool
) -> None:
    tokens = (batch.rewards, batch.values, batch.mask)
    bootstrap = batch.bootstrap if bootstrapped else None
    agree(advantages.returns_to_go, batch.rewards, batch.mask, gamma)
    agree(advantages.gae, *tokens, gamma=gamma, gae_lambda=lam, bootstrap=bootstrap)
    agree(advantages.n_step, *tokens, n, gamma=gamma, bootstrap=bootstrap)
    agree(advantages.whiten, batch.advantages, batch.mask, center=center)


# ---------------------------------------------------------------- losses

gaps = st.sampled_from((0.0, 1e-3, 0.5, 15.0))


@given(token_batches, gaps, st.sampled_from((0.1, 0.2)), st.sampled_from((0.2, 0.28)), st.sampled_from((1.5, 3.0)))
@thorough
def test_losses_of_policies(batch: Tokens, gap: float, low: float, high: float, most: float) -> None:
    batch = batch.with_gaps(gap)
    tokens = (batch.logprobs, batch.old_logprobs, batch.advantages)
    clips = {"clip_low": low, "clip_high": high}
    agree_with_gradient(losses.policy_gradient, batch.mask, batch.logprobs, batch.advantages)
    agree_with_gradient(losses.clipped_surrogate, batch.mask, *tokens)
    agree_with_gradient(losses.clipped_surrogate, batch.mask, *tokens, **clips)
    agree_with_gradient(losses.clipped_surrogate, batch.mask, *tokens, **clips, dual_clip=most)
    agree_with_gradient(losses.sequence_clipped_surrogate, batch.mask, *tokens, batch.mask)
    agree_with_gradient(losses.sequence_clipped_surrogate, batch.mask, *tokens, batch.mask, **clips)
    agree_with_gradient(losses.cispo, batch.mask, *tokens, most)


@given(token_batches, st.sampled_from((0.1, 0.5)))
@thorough
def test_squared_value_error(batch: Tokens, clip: float) -> None:
    """Old values that differ by less and by more than the clip, to either side of a target on either side."""
    targets = batch.values + 2 * np.nan_to_num(batch.rewards)
    agree_with_gradient(losses.squared_value_error, batch.mask, batch.values, targets)
    old_values = batch.values + 0.3 * batch.advantages
    agree_with_gradient(losses.squared_value_error, batch.mask, batch.values, targets, old_values, clip)


@pytest.mark.parametrize("gap", [50.0, 800.0, 2000.0])
def test_a_ratio_that_overflows_does_not_reach_a_clipped_gradient(gap: float) -> None:
    """Rows: A > 0 above the range, A < 0 below it, A = 0 on both sides: the objective is flat there, whatever the ratio."""
    old_logprobs, mask = np.full((4, 3), -3000.0), np.ones((4, 3), np.bool_)
    signs = np.repeat([[2.0], [-2.0], [0.0], [0.0]], 3, axis=1)
    tokens = (old_logprobs + gap * np.array([[1], [-1], [1], [-1]]), old_logprobs, signs)
    agree_with_gradient(losses.clipped_surrogate, mask, *tokens)
    agree_with_gradient(losses.sequence_clipped_surrogate, mask, *tokens, mask)
    above = (old_logprobs + gap, old_logprobs, np.full((4, 3), -2.0))
    agree_with_gradient(losses.clipped_surrogate, mask, *above, dual_clip=3.0)
    # Tokens far apart that nearly cancel: a sequence's ratio is of the mean before anything is bounded.
    cancelling = (old_logprobs + np.array([gap, 0.75 - gap, 0.0]), old_logprobs, np.full((4, 3), -1.5))
    agree_with_gradient(losses.sequence_clipped_surrogate, mask, *cancelling, mask)
    capped = (np.array([[-2.0, -2.0 - gap]]), np.array([[-2.0 - gap, -2.0]]), np.array([[1.5, 0.0]]))
    agree_with_gradient(losses.cispo, mask[:1, :2], *capped, 5.0)


@pytest.mark.parametrize("aggregation", list(losses.Aggregation))
@given(token_batches, st.integers(0, 3))
@thorough
def test_token_weights(aggregation: losses.Aggregation, batch: Tokens, more: int) -> None:
    rows, width = batch.mask.shape
    arguments = {"num_completions": rows + more, "max_tokens": width + more}
    expected = reference.token_weights(batch.mask, aggregation.value, **arguments)
    if aggregation is not losses.Aggregation.SEQUENCE_MEAN_TOKEN_SUM_NORM:
        arguments = {"num_completions": rows + more}
    actual = losses.token_weights(torch.from_numpy(batch.mask), aggregation, **arguments)
    # Losses are float32 in training, and so are their weights.
    np.testing.assert_allclose(actual, expected, rtol=1e-6, atol=ROUNDING)


# ---------------------------------------------------------------- KL divergence and importance weights


@pytest.mark.parametrize("estimator", list(kl.KLEstimator))
@given(token_batches, st.sampled_from((0.0, 0.01, 0.5, 15.0)))
@thorough
def test_kl_estimate(estimator: kl.KLEstimator, batch: Tokens, gap: float) -> None:
    ref_logprobs = batch.with_gaps(gap).old_logprobs
    expected, slope = reference.kl_estimate(estimator.value, batch.logprobs, ref_logprobs, batch.old_logprobs)
    variable = torch.from_numpy(batch.logprobs).requires_grad_()
    actual = kl.kl_estimate(estimator, variable, torch.from_numpy(ref_logprobs), torch.from_numpy(batch.old_logprobs))
    actual.sum().backward()
    np.testing.assert_allclose(actual.detach(), expected, rtol=TOLERANCE, atol=TOLERANCE)
    np.testing.assert_allclose(variable.grad, slope, rtol=TOLERANCE, atol=TOLERANCE)


@pytest.mark.parametrize("estimator", list(kl.KLEstimator))
@pytest.mark.parametrize("gap", [-2000.0, -30.0, -21.0, 21.0, 30.0, 2000.0])
def test_kl_of_a_policy_far_from_its_reference(estimator: kl.KLEstimator, gap: float) -> None:
    """Finite; and, but for k1 with its constant derivative, never pulling away from the reference, whatever is clamped."""
    logprobs = torch.full((1, 1), -3000.0, dtype=torch.float64, requires_grad=True)
    estimate = kl.kl_estimate(estimator, logprobs, logprobs.detach() + gap, logprobs.detach())
    estimate.sum().backward()
    assert logprobs.grad is not None
    assert torch.isfinite(estimate).all()
    assert torch.isfinite(logprobs.grad).all()
    if estimator is not kl.KLEstimator.K1:
        assert estimate.item() >= 0
        assert logprobs.grad.item() * gap <= 0


@given(st.floats(0, 2), st.floats(0, 1), st.integers(0, 5000), st.floats(0.01, 1), st.integers(5000, 20000))
@thorough
def test_adaptive_kl_controller(coefficient: float, observed: float, n: int, target: float, horizon: int) -> None:
    controller = kl.AdaptiveKLController(coefficient, target=target, horizon=horizon)
    expected = reference.adaptive_kl_coefficient(coefficient, observed, n, target, horizon)
    assert controller.update(observed, n) == pytest.approx(expected, rel=TOLERANCE, abs=TOLERANCE)
    again = reference.adaptive_kl_coefficient(expected, observed / 2, n, target, horizon)
    assert controller.update(observed / 2, n) == pytest.approx(again, rel=TOLERANCE, abs=TOLERANCE)


@pytest.mark.parametrize("correction", list(importance.Correction))
@given(
    token_batches, st.sampled_from((0.1, 2.0)), st.sampled_from((1.5, 2.0)), st.sampled_from((0.0, 0.6)), st.booleans()
)
@thorough
def test_importance_weights(
    correction: importance.Correction, batch: Tokens, gap: float, cap: float, floor: float, unknown: bool
) -> None:
    """Where `unknown`, some tokens have no log-probability from the sampler."""
    behaviour = batch.with_gaps(gap).old_logprobs
    if unknown:
        behaviour = np.where(batch.advantages == 0, np.nan, behaviour)
    arguments = {"cap": cap, "floor": floor}
    expected = reference.importance_weights(batch.logprobs, behaviour, batch.mask, correction.value, **arguments)
    logprobs, samplers, mask = map(torch.from_numpy, (batch.logprobs, behaviour, batch.mask))
    actual = importance.importance_weights(logprobs.requires_grad_(), samplers, mask, correction, **arguments)
    assert not actual.requires_grad
    np.testing.assert_allclose(actual, expected, rtol=TOLERANCE, atol=TOLERANCE)
    if expected[batch.mask].any():
        counted = actual[mask].double()
        size = importance.effective_share(float(counted.mean()), float(counted.square().mean()))
        assert size == pytest.approx(reference.effective_sample_size(expected, batch.mask), rel=1e-9)


@pytest.mark.parametrize("correction", list(importance.Correction))
@pytest.mark.parametrize("gap", [50.0, 800.0])
def test_importance_weights_that_overflow(correction: importance.Correction, gap: float) -> None:
    """Rows: one token far above, one far below, both so that they nearly cancel, and one of many tokens."""
    rows = np.zeros((4, 200))
    rows[0, 0], rows[1, 0], rows[2, :2], rows[3, :] = gap, -gap, (gap, 0.3 - gap), 1e-3
    rows[3, 7] = gap
    mask = np.ones(rows.shape, np.bool_)
    mask[:3, 2:] = False
    expected = reference.importance_weights(rows - 3000.0, np.full(rows.shape, -3000.0), mask, correction.value)
    arrays = map(torch.from_numpy, (rows - 3000.0, np.full(rows.shape, -3000.0), mask))
    np.testing.assert_allclose(importance.importance_weights(*arrays, correction), expected, rtol=1e-8, atol=1e-8)
