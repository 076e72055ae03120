"""The optimiser step against a plain reference, and what it must not depend on: micro-batches, order, padding."""

from __future__ import annotations

import copy
import dataclasses
import math
import signal
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from agents import (
    GRPO,
    Batch,
    CausalLMPolicy,
    GRPOConfig,
    Learner,
    LearnerConfig,
    PolicyConfig,
    Reinforce,
    ReinforceConfig,
    TokenOutputs,
    Trajectory,
    make_batch,
)
from agents.learn.learner import Loss, TokenLoss
from agents.losses import Aggregation, clipped_surrogate, policy_gradient
from tests.agents.agent_cases import MAX_TOKENS, UNCLIPPED, flat, on_policy
from tests.agents.rounding import FLOAT64, assert_equal, assert_equal_stored
from tests.agents.trajectories import (
    VOCAB,
    gradients,
    largest_difference,
    random_trajectory,
    scored,
    tiny_policy,
    trajectory,
    weights,
)
from verifiers import InvalidArgumentError

MEAN_OF_TOKENS = Aggregation.TOKEN_MEAN


def some_trajectories(count: int = 9, seed: int = 0) -> list[Trajectory]:
    generator = np.random.default_rng(seed)
    return [random_trajectory(generator, score=generator.normal(), group=index // 3) for index in range(count)]


def some_advantages(batch: Batch, seed: int = 0) -> Tensor:
    return torch.from_numpy(np.random.default_rng(seed).normal(size=tuple(batch.tokens.shape)))


def surrogate(batch: Batch, outputs: TokenOutputs, advantages: Tensor) -> dict[str, Tensor]:
    return {"policy": clipped_surrogate(outputs.logprobs, batch.logprobs, advantages)}


def plain(batch: Batch, outputs: TokenOutputs, advantages: Tensor) -> dict[str, Tensor]:
    return {"policy": policy_gradient(outputs.logprobs, advantages)}


def step(
    batch: Batch,
    advantages: Tensor,
    *,
    aggregation: Aggregation = MEAN_OF_TOKENS,
    loss: TokenLoss = surrogate,
    micro_batch_size: int = 64,
    temperature: float = 1.0,
) -> tuple[list[Tensor], dict[str, float]]:
    """Gradients and metrics of one step of a fresh tiny policy."""
    policy = tiny_policy(temperature)
    learner = Learner(policy, LearnerConfig(max_grad_norm=UNCLIPPED, micro_batch_size=micro_batch_size))
    metrics = learner.step(batch, advantages, Loss(loss, aggregation=aggregation, max_tokens=MAX_TOKENS))
    return gradients(policy), metrics


def descend(learner: Learner, batch: Batch, advantages: Tensor, loss: TokenLoss = plain) -> dict[str, float]:
    return learner.step(batch, advantages, Loss(loss, aggregation=MEAN_OF_TOKENS))


# A reference: one unpadded completion at a time, from the formulas


def reference_weight(aggregation: Aggregation, own_tokens: int, all_tokens: int, completions: int) -> float:
    return {
        Aggregation.TOKEN_MEAN: 1 / all_tokens,
        Aggregation.SEQUENCE_MEAN_TOKEN_MEAN: 1 / (completions * max(own_tokens, 1)),
        Aggregation.SEQUENCE_MEAN_TOKEN_SUM: 1 / completions,
        Aggregation.SEQUENCE_MEAN_TOKEN_SUM_NORM: 1 / (completions * MAX_TOKENS),
    }[aggregation]


def reference_step(
    trajectories: Sequence[Trajectory],
    advantages: Tensor,
    aggregation: Aggregation,
    temperature: float = 1.0,
    legal: Sequence[np.ndarray] | None = None,
) -> tuple[list[Tensor], dict[str, float]]:
    """PPO's loss at clip bounds of 0.2, its gradient, and means over tokens."""
    model = tiny_policy().model
    all_tokens = sum(int(one.policy_mask.sum()) for one in trajectories)
    totals = dict.fromkeys(("loss", "entropy", "sampling/kl"), 0.0)
    for row, one in enumerate(trajectories):
        ids, own = torch.from_numpy(one.tokens.astype(np.int64)), np.flatnonzero(one.policy_mask)
        scores = model(input_ids=ids[None]).logits[0, own - 1].double() / temperature
        if legal is not None:
            scores = scores.masked_fill(~torch.from_numpy(legal[row][own]), -math.inf)
        distribution = torch.distributions.Categorical(logits=scores)
        change = distribution.log_prob(ids[own]) - torch.from_numpy(one.logprobs[own])
        ratio, advantage = change.exp(), advantages[row, own]
        loss = -torch.minimum(ratio * advantage, ratio.clamp(0.8, 1.2) * advantage).sum()
        loss = loss * reference_weight(aggregation, len(own), all_tokens, len(trajectories))
        loss.backward()
        totals["loss"] += float(loss.detach())
        totals["entropy"] += float(distribution.entropy().sum().detach()) / all_tokens
        totals["sampling/kl"] += float((change.expm1() - change).sum().detach()) / all_tokens
    return [parameter.grad for parameter in model.parameters() if parameter.grad is not None], totals


@FLOAT64
@pytest.mark.parametrize("aggregation", list(Aggregation))
@pytest.mark.parametrize("temperature", [1.0, 0.7])
def test_the_step_equals_a_reference_without_batches(aggregation: Aggregation, temperature: float) -> None:
    trajectories = some_trajectories()
    batch = make_batch(trajectories)
    advantages = some_advantages(batch)
    result, metrics = step(batch, advantages, aggregation=aggregation, temperature=temperature, micro_batch_size=4)
    expected, totals = reference_step(trajectories, advantages, aggregation, temperature)
    scale = max(float(gradient.abs().max()) for gradient in expected)
    assert scale > 1e-3
    assert_equal(flat(result), flat(expected))
    for name, value in totals.items():
        assert_equal(metrics[name], value)
    assert metrics["tokens"] == sum(int(one.policy_mask.sum()) for one in trajectories)
    assert metrics["grad_norm"] == pytest.approx(float(flat(expected).norm()), rel=1e-9)


@FLOAT64
def test_illegal_tokens_take_no_part_in_the_step() -> None:
    """Tokens of the prompt and of the environment come from no distribution, and some of their masks are empty."""
    generator = np.random.default_rng(3)
    trajectories, legal = [], []
    for number, one in enumerate(some_trajectories(5)):
        masks = generator.random((len(one.tokens), VOCAB)) < 0.4
        masks[np.arange(len(one.tokens)), one.tokens] = True
        masks[~one.policy_mask] &= number % 2 == 0
        legal.append(masks)
        trajectories.append(dataclasses.replace(one, action_masks=np.packbits(masks, axis=1)))
    batch = make_batch(trajectories)
    advantages = some_advantages(batch)
    expected, totals = reference_step(trajectories, advantages, MEAN_OF_TOKENS, legal=legal)
    for micro_batch_size in (64, 2):
        result, metrics = step(batch, advantages, micro_batch_size=micro_batch_size)
        assert metrics["skipped"] == 0
        assert_equal(flat(result), flat(expected))
        assert_equal(metrics["entropy"], totals["entropy"])


@pytest.mark.parametrize("noise", [1e6, math.nan, math.inf])
@pytest.mark.parametrize("loss", [plain, surrogate])
def test_what_stands_off_the_mask_is_not_learned_from(noise: float, loss: TokenLoss) -> None:
    trajectories = some_trajectories(4)
    batch = make_batch(trajectories)
    advantages = some_advantages(batch)
    off = ~batch.loss_mask
    noisy = dataclasses.replace(batch, logprobs=torch.where(off, noise, batch.logprobs))
    expected, metrics = step(batch, advantages, loss=loss)
    result, noisy_metrics = step(noisy, torch.where(off, noise, advantages), loss=loss)
    assert largest_difference(result, expected) == 0
    assert noisy_metrics == metrics


def test_a_step_without_a_token_to_learn_from_is_skipped() -> None:
    policy = tiny_policy()
    batch = make_batch([scored(math.nan), scored(math.nan)])
    before = weights(policy)
    learner = Learner(policy, LearnerConfig(weight_decay=0.1, learning_rate=0.1))
    assert descend(learner, batch, torch.zeros(2, 3, dtype=torch.float64))["skipped"] == 1
    assert largest_difference(weights(policy), before) == 0


def test_reinforce_weighs_tokens_by_what_came_after_them() -> None:
    batch = make_batch([trajectory([0, 1, 1, 0, 1], rewards=[0, 1, 0, 0, 4]), trajectory([0, 1], rewards=[0, 2])])
    for settings, expected in (
        ({"baseline": "none"}, [5, 4, 4, 2]),
        ({}, [1.5, 0.5, 0.5, -1.5]),  # the scores are 5 and 2
        ({"baseline": "none", "gamma": 0.5}, [2, 2, 4, 2]),
    ):
        agent = Reinforce(tiny_policy(), ReinforceConfig(**settings))
        assert agent.advantages(batch).expand(batch.tokens.shape)[batch.loss_mask].tolist() == expected


@FLOAT64
def test_a_small_divergence_is_measured_and_not_rounded_away() -> None:
    """k3 = exp(d) - 1 - d is about d^2 / 2, far below the spacing of float32 numbers near 1."""
    policy = tiny_policy()
    batch = make_batch(on_policy(policy, some_trajectories()))
    for shift in (1e-2, 1e-3):
        shifted = dataclasses.replace(batch, logprobs=batch.logprobs - shift)
        _, metrics = step(shifted, some_advantages(batch))
        # Stored numbers from 4 to 8 are off by up to 2^-22, and a square of the difference by twice that share.
        assert metrics["sampling/kl"] == pytest.approx(math.exp(shift) - 1 - shift, rel=2 * 2**-22 / shift)


@FLOAT64
def test_later_epochs_keep_the_samplers_logprobs_and_clip() -> None:
    def losses(epochs: int) -> dict[str, float]:
        policy = tiny_policy()
        learner = LearnerConfig(max_grad_norm=UNCLIPPED, micro_batch_size=4, learning_rate=0.003)
        agent = GRPO(policy, GRPOConfig(epochs=epochs, learner=learner))
        metrics = agent.update(on_policy(policy, some_trajectories()))
        assert agent.learner.steps == epochs
        return metrics

    first, last = losses(1), losses(8)
    assert_equal_stored(first["sampling/sampling_logp_difference/max"], 0)
    assert last["ratio/max"] > 1.2 > 1.001 > first["ratio/max"]
    assert last["clip_ratio/region_mean"] > 0 == first["clip_ratio/region_mean"]
    assert last["loss"] < first["loss"] - 0.02


@FLOAT64
def test_adamw_by_hand_with_warmup_decay_and_clipping() -> None:
    adam = {"learning_rate": 0.01, "weight_decay": 0.1, "beta1": 0.8, "beta2": 0.95, "max_grad_norm": 0.5}
    policy = tiny_policy()
    learner = Learner(policy, LearnerConfig(**adam, schedule="linear", warmup_steps=1, schedule_steps=4))
    batch = make_batch(some_trajectories())
    expected = [weight.double() for weight in weights(policy)]
    first = [torch.zeros_like(weight) for weight in expected]
    second = [torch.zeros_like(weight) for weight in expected]
    for number, rate in enumerate([0.005, 0.01, 0.01 * 2 / 3]):
        metrics = descend(learner, batch, some_advantages(batch, number))
        assert metrics["learning_rate"] == pytest.approx(rate, rel=1e-12)
        clipped = [gradient.double() for gradient in gradients(policy)]
        norm = math.sqrt(sum(float((gradient**2).sum()) for gradient in clipped))
        # Torch adds 1e-6 to the norm that it divides by.
        assert norm == pytest.approx(min(0.5, metrics["grad_norm"]), rel=1e-6 / 0.5 + 1e-9)
        for index, gradient in enumerate(clipped):
            first[index] = 0.8 * first[index] + 0.2 * gradient
            second[index] = 0.95 * second[index] + 0.05 * gradient**2
            moment, square = first[index] / (1 - 0.8 ** (number + 1)), second[index] / (1 - 0.95 ** (number + 1))
            expected[index] = expected[index] * (1 - rate * 0.1) - rate * moment / (square.sqrt() + 1e-8)
    assert metrics["grad_norm"] > 0.5
    results = [weight.double() for weight in weights(policy)]
    assert_equal(flat(results), flat(expected))


def test_a_small_gradient_is_not_scaled_up() -> None:
    batch = make_batch(some_trajectories())
    advantages = some_advantages(batch) * 1e-3
    policy = tiny_policy()
    assert 0 < descend(Learner(policy, LearnerConfig(max_grad_norm=1.0)), batch, advantages)["grad_norm"] < 1
    assert largest_difference(gradients(policy), step(batch, advantages, loss=plain)[0]) == 0


@pytest.mark.parametrize("bad", [math.nan, -math.inf])
def test_a_gradient_that_is_not_finite_is_skipped(bad: float) -> None:
    policy, twin = tiny_policy(), tiny_policy()
    learner, other = (Learner(one, LearnerConfig(learning_rate=1e-3)) for one in (policy, twin))
    batch = make_batch(some_trajectories())
    advantages = some_advantages(batch)
    for one in (learner, other):
        descend(one, batch, advantages)
    before = weights(policy)
    spoiled = advantages.clone()
    spoiled[tuple(batch.loss_mask.nonzero()[5])] = bad
    metrics = descend(learner, batch, spoiled)
    assert (metrics["skipped"], metrics["nonfinite_gradients"]) == (1, 1)
    assert not math.isfinite(metrics["grad_norm"])
    assert not math.isfinite(metrics["loss"])
    assert largest_difference(weights(policy), before) == 0
    # The next step is as if the bad one had not been, by the weights and by the moments.
    metrics = descend(learner, batch, advantages)
    assert (metrics["skipped"], metrics["nonfinite_gradients"]) == (0, 0)
    descend(other, batch, advantages)
    assert largest_difference(weights(policy), weights(twin)) == 0


@FLOAT64
def test_the_fused_optimiser_is_off_with_the_flag_and_gives_the_same_weights() -> None:
    """AdamW with decay on the same gradients, in one kernel and operation by operation; which, is not saved."""
    config = LearnerConfig(learning_rate=1e-2, weight_decay=0.1)
    policies = [CausalLMPolicy(tiny_policy().model, PolicyConfig(fast=fast)) for fast in (True, False)]
    fused, plainly = (Learner(policy, config) for policy in policies)
    assert [learner.optimizer.defaults["fused"] for learner in (fused, plainly)] == [True, None]
    start = weights(fused.policy)
    for _ in range(2):
        for learner in (fused, plainly):
            generator = torch.Generator().manual_seed(0)
            for _ in range(4):
                for parameter in learner.policy.parameters():
                    parameter.grad = torch.randn(parameter.shape, generator=generator)
                learner.optimizer.step()
        assert_equal(flat(weights(fused.policy)), flat(weights(plainly.policy)))
        plainly.load_state_dict(copy.deepcopy(fused.state_dict()))
    assert largest_difference(weights(fused.policy), start) > 0.02
    assert [group["fused"] for group in plainly.optimizer.param_groups] == [None]


def test_a_greedy_policy_cannot_learn() -> None:
    with pytest.raises(InvalidArgumentError, match="temperature"):
        Learner(tiny_policy(0.0), LearnerConfig())


def untouched(learner: Learner) -> Callable[[], None]:
    """A check that weights, counts and gradients are what they are now; moments show in the next step."""
    parameters, counts = weights(learner.policy), (learner.steps, learner.policy.version)

    def check() -> None:
        assert all(map(torch.equal, weights(learner.policy), parameters))
        assert (learner.steps, learner.policy.version) == counts
        assert all(parameter.grad is None for parameter in learner.policy.parameters())

    return check


@pytest.mark.parametrize("error", [torch.OutOfMemoryError, KeyboardInterrupt])
@pytest.mark.parametrize("stage", ["second-pass", "loss", "clipping"])
def test_an_error_within_a_step_changes_nothing(
    stage: str, error: type[BaseException], monkeypatch: pytest.MonkeyPatch
) -> None:
    config = LearnerConfig(learning_rate=0.01, micro_batch_size=3)
    learner, twin = Learner(tiny_policy(), config), Learner(tiny_policy(), config)
    batch = make_batch(some_trajectories())
    advantages = some_advantages(batch)
    assert descend(learner, batch, advantages) == descend(twin, batch, advantages)
    check = untouched(learner)
    passes = iter(range(100))

    def failing(*given: Any, **named: Any) -> Any:
        if stage != "second-pass" or next(passes) == 1:
            raise error("no room")
        return read(*given, **named)

    read = learner.policy.read
    with monkeypatch.context() as patched:
        if stage == "second-pass":
            patched.setattr(learner.policy, "read", failing)
        if stage == "clipping":
            patched.setattr(torch.nn.utils, "clip_grad_norm_", failing)
        with pytest.raises(error, match="no room"):
            descend(learner, batch, advantages, failing if stage == "loss" else plain)
    check()
    assert descend(learner, batch, advantages) == descend(twin, batch, advantages)
    assert all(map(torch.equal, weights(learner.policy), weights(twin.policy)))


@pytest.mark.usefixtures("ctrl_c")
def test_an_interrupt_while_weights_change_waits_until_the_step_is_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    learner, twin = (Learner(tiny_policy(), LearnerConfig(learning_rate=0.01)) for _ in range(2))
    batch = make_batch(some_trajectories())
    advantages = some_advantages(batch)
    descend(twin, batch, advantages)
    change = learner.optimizer.step

    def interrupted() -> None:
        signal.raise_signal(signal.SIGINT)
        change()

    monkeypatch.setattr(learner.optimizer, "step", interrupted)
    with pytest.raises(KeyboardInterrupt):
        descend(learner, batch, advantages)
    assert all(map(torch.equal, weights(learner.policy), weights(twin.policy)))
    assert (learner.steps, learner.policy.version) == (twin.steps, twin.policy.version) == (1, 1)
