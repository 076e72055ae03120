"""What holds a policy back: divergence from a reference, in the loss or in the reward, and the entropy bonus."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
import torch
from torch import Tensor

from agents import Agent, Batch, CausalLMPolicy, ReferencePolicy, make_batch
from agents.kl import kl_estimate
from agents.learn.batch_passes import token_logprobs
from agents.learn.natural_gradient import flat_gradient
from tests.agents.agent_cases import errored_rows, gradient, make_agent, prepared, some_batch
from tests.agents.rounding import assert_equal, assert_equal_stored, tolerance
from tests.agents.trajectories import tiny_policy, weights
from verifiers import InvalidArgumentError

pytestmark = pytest.mark.usefixtures("float64")


def moved(agent: Agent, seed: int = 0, scale: float = 0.3) -> Agent:
    """The same agent after its policy has left its reference."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in agent.policy.parameters():
            parameter.add_(scale * torch.randn(parameter.shape, generator=generator))
    agent.policy.weights_changed()
    return agent


def reference_logprobs(agent: Agent, batch: Batch) -> Tensor:
    assert agent.models.reference is not None
    return token_logprobs(agent.models.reference.policy, batch, 64)


# The reference policy


@pytest.mark.parametrize(("end", "kept"), [(None, False), (0.0, False), (0.1, True)])
def test_none_is_kept_where_its_coefficient_is_0(end: float | None, kept: bool) -> None:
    learner = {"schedule_steps": None if end is None else 3}
    agent = make_agent("grpo", kl_coefficient=0.0, kl_coefficient_end=end, learner=learner)
    assert isinstance(agent.models.reference, ReferencePolicy) == kept


@pytest.mark.parametrize("placement", ["loss", "reward"])
def test_it_is_a_frozen_copy(placement: str) -> None:
    agent = make_agent("grpo", kl_coefficient=0.1, kl_placement=placement)
    assert agent.models.reference is not None
    before = weights(agent.policy)
    for seed in range(3):
        agent.update(some_batch(agent.policy, seed=seed))
    kept = list(agent.models.reference.policy.model.parameters())
    assert not any(parameter.requires_grad for parameter in kept)
    assert all(torch.equal(one, other) for one, other in zip(before, kept, strict=True))
    assert not all(torch.equal(one, other) for one, other in zip(before, weights(agent.policy), strict=True))


@pytest.mark.parametrize("mix", [1.0, 0.6])
def test_it_moves_to_the_policy_when_asked(mix: float) -> None:
    agent = make_agent("grpo", kl_coefficient=0.1, reference_sync_every=2, reference_sync_mix=mix)
    assert agent.models.reference is not None
    start = weights(agent.policy)
    expected = start
    for step in range(1, 5):
        agent.update(some_batch(agent.policy, seed=step))
        if step % 2 == 0:
            expected = [mix * one + (1 - mix) * old for one, old in zip(weights(agent.policy), expected, strict=True)]
        kept = list(agent.models.reference.policy.model.parameters())
        for one, other in zip(kept, expected, strict=True):
            assert_equal(one, other)


def test_the_reference_of_an_adapter_cannot_be_synced() -> None:
    pytest.importorskip("peft")
    from agents import add_lora

    adapted = CausalLMPolicy(add_lora(tiny_policy().model, rank=2))
    with pytest.raises(InvalidArgumentError, match="leave `reference_sync_every` out"):
        make_agent("grpo", adapted, kl_coefficient=0.1, reference_sync_every=2)


# In the loss, in the reward


@pytest.mark.parametrize("estimator", ["k2", "k3", "k3-ratio"])
def test_in_the_loss_it_adds_its_own_gradient_times_the_coefficient(estimator: str) -> None:
    agent = moved(make_agent("grpo", kl_coefficient=0.3, kl_estimator=estimator))
    plain = moved(make_agent("grpo"))
    batch = make_batch(some_batch(agent.policy))
    reference = reference_logprobs(agent, batch)
    gradient(agent, batch)
    with_kl = flat_gradient(agent.policy)
    gradient(plain, batch)
    difference = with_kl - flat_gradient(plain.policy)

    now = agent.policy.forward(batch.tokens, 1).logprobs
    mask = batch.loss_mask[:, 1:]
    kl = kl_estimate(estimator, now, reference[:, 1:], batch.logprobs[:, 1:])
    grads = torch.autograd.grad(0.3 * kl[mask].mean(), agent.policy.parameters())
    expected = torch.cat([grad.reshape(-1) for grad in grads])
    assert float(expected.abs().max()) > 1e-3
    assert_equal(difference, expected, size=float(with_kl.abs().max()))


def test_in_the_reward_each_token_pays_for_its_own_divergence() -> None:
    agent = moved(make_agent("rloo", kl_coefficient=0.3))
    batch = make_batch(some_batch(agent.policy))
    ready, _ = prepared(agent, batch)
    expected = torch.where(batch.loss_mask, 0.3 * (batch.logprobs - reference_logprobs(agent, batch)), 0.0)
    assert float(expected.abs().max()) > 0.05
    assert_equal_stored(ready.rewards, batch.rewards - expected)
    assert_equal(ready.scores, ready.rewards.sum(1))


def test_errored_rows_pay_nothing_and_stay_errored() -> None:
    agent = moved(make_agent("rloo", kl_coefficient=0.3))
    ready, advantages = prepared(agent, make_batch([*some_batch(agent.policy), *errored_rows(0, [0])]))
    assert math.isnan(ready.scores[-1])
    assert not ready.rewards[-1].any()
    assert not advantages[-1].any()


# The controller


def test_the_coefficient_rises_above_the_target_and_falls_below_it() -> None:
    def after(target: float) -> list[float]:
        agent = moved(
            make_agent("grpo/kl", kl_coefficient=0.2, kl_target=target, kl_horizon=60, learner={"learning_rate": 1e-6})
        )
        return [agent.update(some_batch(agent.policy, seed=seed))["kl_coefficient"] for seed in range(3)]

    # 12 completions of a horizon of 60, and an error that is cut at 0.2: a factor of 1 +- 0.04 a step.
    assert after(1e-6) == pytest.approx([0.2, 0.2 * 1.04, 0.2 * 1.04**2])
    assert after(1e6) == pytest.approx([0.2, 0.2 * 0.96, 0.2 * 0.96**2])


def test_the_controller_stays_where_nothing_was_measured() -> None:
    agent = make_agent("grpo/kl", kl_coefficient=0.2, kl_target=0.1, kl_horizon=60)
    agent.update(errored_rows(0, [0, 0, 0]))
    assert agent.updating.kl_coefficient() == 0.2
    with torch.no_grad():
        agent.policy.parameters()[0].fill_(math.nan)
    assert agent.update(some_batch(tiny_policy()))["skipped"] == 1
    assert agent.updating.kl_coefficient() == 0.2


def test_trpo_steers_its_divergence_too() -> None:
    agent = moved(make_agent("trpo", kl_coefficient=0.2, kl_estimator="k2", kl_target=1e-6, kl_horizon=60))
    agent.update(some_batch(agent.policy))
    assert agent.updating.kl_coefficient() == pytest.approx(0.2 * 1.04)


# Entropy


@pytest.mark.parametrize("name", ["grpo", "trpo"])
def test_the_bonus_is_the_entropys_gradient_times_the_coefficient(name: str) -> None:
    agent, plain = make_agent(name, entropy_coefficient=0.2), make_agent(name)
    batch = make_batch(some_batch(agent.policy))
    gradient(agent, batch)
    gradient(plain, batch)
    difference = flat_gradient(agent.policy) - flat_gradient(plain.policy)
    logits = agent.policy.model(input_ids=batch.tokens).logits[:, :-1]
    logprobs = logits.log_softmax(-1)
    bonus = -(logprobs.exp() * logprobs).sum(-1)[batch.loss_mask[:, 1:]].mean()
    grads = torch.autograd.grad(-0.2 * bonus, agent.policy.parameters())
    expected = torch.cat([grad.reshape(-1) for grad in grads])
    assert float(expected.abs().max()) > 1e-3
    assert_equal(difference, expected, size=float(flat_gradient(agent.policy).abs().max()))
    metrics = make_agent(name, entropy_coefficient=0.2).update(some_batch(agent.policy))
    assert metrics["loss/entropy"] == pytest.approx(-0.2 * metrics["entropy"], rel=tolerance(1.0))


# Samples of older weights


def test_ratios_are_taken_to_the_weights_before_the_update_and_weights_to_those_that_sampled() -> None:
    agent = make_agent("cispo/corrected", importance_cap=1.5)
    rows = some_batch(agent.policy)
    shift = np.linspace(-1, 1, len(rows)).astype(np.float32)
    stale = [
        dataclasses.replace(one, logprobs=one.logprobs - by * one.policy_mask)
        for one, by in zip(rows, shift, strict=True)
    ]
    batch = make_batch(stale)
    ready, _ = prepared(agent, batch)
    assert ready.importance is not None
    for row, by in enumerate(shift.tolist()):
        own = batch.loss_mask[row]
        assert_equal_stored(ready.importance[row][own], np.full(int(own.sum()), min(math.exp(by), 1.5)), size=10)
        assert not ready.importance[row][~own].any()
    metrics = agent.update(stale)
    assert_equal_stored(metrics["ratio/max"], 1)
    assert_equal_stored(metrics["sampling/sampling_logp_difference/max"], 1, size=10)
    # Without a correction stale samples show in the ratios.
    assert_equal_stored(make_agent("cispo").update(stale)["ratio/max"], math.e, size=10)
