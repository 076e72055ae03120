"""Agents that are the same in a limit: each difference between two of them is one choice."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from agents import CausalLMPolicy, CriticConfig, make_batch
from agents.advantages import group_centered
from agents.learn.learner import Loss
from agents.learn.natural_gradient import flat_gradient
from tests.agents.agent_cases import GROUP, MAX_TOKENS, gradient, make_agent, prepared, some_batch
from tests.agents.rounding import assert_equal, assert_equal_stored
from tests.agents.trajectories import tiny_policy, trajectory

pytestmark = pytest.mark.usefixtures("float64")

SUM = "sequence-mean-token-sum"


def policy_gradient_of(case: str, *, shift: float = 0.0, **settings: Any) -> Tensor:
    """The gradient of the policy's weights on the same batch; `shift` makes it off-policy."""
    agent = make_agent(case, **settings)
    rows = some_batch(agent.policy)
    if shift:
        rows = [dataclasses.replace(one, logprobs=one.logprobs - np.float32(shift) * one.policy_mask) for one in rows]
    gradient(agent, make_batch(rows))
    return flat_gradient(agent.policy)


def assert_same(actual: Tensor, expected: Tensor) -> None:
    assert float(expected.abs().max()) > 1e-3
    assert_equal_stored(actual, expected)


SEPARATE = {"critic": CriticConfig("separate")}
"""Keeps the gradient of the values out of the policy's weights."""


def test_ppo_at_ratio_1_is_a2c_is_reinforce_with_a_learned_baseline() -> None:
    """No whitening and whole returns; a critic that has not learned yet is a baseline of 0."""
    ppo = policy_gradient_of("ppo", whiten=False, gae_lambda=1.0, **SEPARATE)
    assert_same(ppo, policy_gradient_of("a2c", gae_lambda=1.0, entropy_coefficient=0.0, **SEPARATE))
    settings = {"aggregation": "token-mean", "truncation": "score"}
    assert_same(ppo, policy_gradient_of("reinforce/value", **settings, **SEPARATE))
    assert_same(ppo, policy_gradient_of("reinforce/none", gamma=1.0, aggregation="token-mean"))


@pytest.mark.parametrize(("traces", "same"), [(0.0, {"steps_ahead": 1}), (0.7, {"gae_lambda": 0.7})])
def test_the_actor_critic_is_a2c_of_one_step_and_with_traces_its_mixture(traces: float, same: dict[str, Any]) -> None:
    common = {"aggregation": "token-mean", "gamma": 0.9, "entropy_coefficient": 0.0, **SEPARATE}
    assert_same(
        policy_gradient_of("actor-critic", trace_decay=traces, **common), policy_gradient_of("a2c", **same, **common)
    )


@pytest.mark.parametrize(
    ("name", "settings", "factor"),
    [
        # Summed over tokens and divided by a constant; times G / (G - 1); and pass@1 is RLOO.
        ("dr-grpo", {}, 1 / MAX_TOKENS),
        ("rloo", {}, GROUP / (GROUP - 1)),
        ("pass-at-k", {"k": 1}, GROUP / (GROUP - 1)),
    ],
)
def test_what_is_unscaled_grpo_times_a_factor(name: str, settings: dict[str, Any], factor: float) -> None:
    centred = policy_gradient_of("grpo", scale="none", aggregation=SUM)
    assert_same(policy_gradient_of(name, **settings), centred * factor)


def test_remax_with_the_groups_mean_in_the_greedy_scores_place_is_unscaled_grpo() -> None:
    agent = make_agent("remax")
    rows = some_batch(agent.policy)
    means = {group: float(np.mean([one.score for one in rows if one.group == group])) for group in range(4)}
    gradient(agent, make_batch([dataclasses.replace(one, baseline=means[one.group]) for one in rows]))
    assert_same(flat_gradient(agent.policy), policy_gradient_of("grpo", scale="none", aggregation=SUM))


@pytest.mark.parametrize("case", ["gspo", "cispo", "dapo"])
def test_on_policy_gspo_cispo_and_dapo_are_grpo(case: str) -> None:
    for aggregation in ("token-mean", "sequence-mean-token-mean"):
        expected = policy_gradient_of("grpo", aggregation=aggregation)
        assert_same(policy_gradient_of(case, aggregation=aggregation), expected)


def test_off_policy_each_does_its_own() -> None:
    """All ratios e^0.5 = 1.65: GRPO keeps tokens of negative advantage only, CISPO all, up to its cap."""
    agent = make_agent("grpo")
    batch = make_batch(some_batch(agent.policy))
    negative = prepared(agent, batch)[1].clamp(max=0)
    agent.learner.backward(batch, negative, Loss(agent.updating.terms, aggregation=agent.config.aggregation))
    clipped = flat_gradient(agent.policy) * math.exp(0.5)
    assert_same(policy_gradient_of("grpo", shift=0.5), clipped)
    unclipped = policy_gradient_of("grpo") * math.exp(0.5)
    assert_same(policy_gradient_of("cispo", shift=0.5), unclipped)
    assert_same(policy_gradient_of("cispo", shift=0.5, is_cap=1.2), unclipped / math.exp(0.5) * 1.2)
    assert_same(policy_gradient_of("gspo", shift=0.5, aggregation="token-mean"), clipped)


def test_reinforce_plus_plus_with_a_baseline_is_unscaled_grpo_whitened_over_tokens() -> None:
    agent = make_agent("reinforce++/baseline")
    batch = make_batch(some_batch(agent.policy))
    tokens = batch.loss_mask.sum(1).double()
    centred = group_centered(batch.scores, batch.groups, batch.valid)
    mean = (centred * tokens).sum() / tokens.sum()
    variance = ((centred - mean) ** 2 * tokens).sum() / (tokens.sum() - 1)
    expected = torch.where(batch.loss_mask, ((centred - mean) / (variance + 1e-8).sqrt())[:, None], 0.0)
    assert_equal(agent.advantages(batch), expected)


def test_gdpo_with_one_reward_and_maxrl_are_grpo_divided_by_what_they_say() -> None:
    """GDPO by the spread of the batch, MaxRL by the group's mean."""
    agent = make_agent("gdpo")
    batch = make_batch(some_batch(agent.policy))
    one = dataclasses.replace(batch, components=batch.scores[:, None], component_weights=torch.ones(1).double())
    scaled = make_agent("grpo").advantages(batch)[:, 0]
    expected = (scaled - scaled.mean()) / (scaled.std() + 1e-4)
    assert_equal(agent.advantages(one)[:, 0], expected)
    centred = make_agent("grpo", scale="none").advantages(batch)[:, 0]
    means = torch.stack([batch.scores[batch.groups == group].mean() for group in batch.groups]).double()
    assert_equal(make_agent("maxrl").advantages(batch)[:, 0], centred / means)


# Unbiased, by enumeration: one token, every one of them in the batch as often as it is drawn


COUNTS = [1, 2, 3, 4, 1, 1, 5, 1, 1, 2, 1, 1, 3, 2, 1, 3]
"""How often each of 16 tokens is drawn in a batch whose mean is exactly the expectation under COUNTS / 32."""


def drawn_from_counts(policy: CausalLMPolicy) -> tuple[list[Any], Tensor]:
    """Stale samples, and the exact gradient of the expected reward of the policy as it is now."""
    behaviour = np.log(np.array(COUNTS) / sum(COUNTS))
    rewards = np.random.default_rng(0).normal(size=16)
    rows = [
        trajectory([0, 1], tokens=[1, token], rewards=[0, rewards[token]], logprobs=[0, behaviour[token]])
        for token, count in enumerate(COUNTS)
        for _ in range(count)
    ]
    logits = policy.model(input_ids=torch.tensor([[1]])).logits[0, -1].double()
    expected = -(logits.softmax(-1) * torch.from_numpy(rewards)).sum()
    grads = torch.autograd.grad(expected, policy.parameters())
    return rows, torch.cat([grad.reshape(-1) for grad in grads])


def test_importance_weights_recover_the_on_policy_gradient_from_stale_samples() -> None:
    def result(**settings: Any) -> Tensor:
        agent = make_agent("reinforce/none", tiny_policy(), aggregation=SUM, **settings)
        gradient(agent, make_batch(drawn_from_counts(agent.policy)[0]))
        return flat_gradient(agent.policy)

    exact = drawn_from_counts(tiny_policy())[1]
    scale = float(exact.abs().max())
    assert scale > 0.05
    for correction in ("token-truncate", "sequence-truncate", "token-mask", "geometric-mask"):
        corrected = result(importance_correction=correction, importance_cap=1e6)
        assert_equal_stored(corrected, exact)
    assert float((result() - exact).abs().max()) > 0.1 * scale
    # A bound on the weights trades that for variance: somewhere in between.
    bounded = result(importance_correction="token-truncate", importance_cap=1.5)
    assert 1e-3 * scale < float((bounded - exact).abs().max()) < float((result() - exact).abs().max())
