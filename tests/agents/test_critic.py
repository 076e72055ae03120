"""Critics: whose state a value belongs to, what it is fitted to, and what its gradient reaches."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
from transformers import GPT2Config, GPT2LMHeadModel

from agents import CausalLMPolicy, Critic, CriticConfig, make_batch
from agents.learn.critic import make_critic
from agents.learn.learner import Loss
from agents.learn.metrics import explained_variance
from tests.agents.agent_cases import gradient, make_agent, prepared, some_batch, state_values
from tests.agents.rounding import FLOAT64, tolerance
from tests.agents.trajectories import random_trajectory, tiny_policy, trajectory
from verifiers import InvalidArgumentError

KINDS = ["head", "separate"]


def opinionated(policy: CausalLMPolicy, kind: Any) -> Critic:
    """A critic whose layer is not 0."""
    critic = make_critic(policy, CriticConfig(kind))
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        critic.layer.weight.copy_(torch.randn(critic.layer.weight.shape, generator=generator))
        critic.layer.bias.fill_(0.3)
    return critic


@FLOAT64
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("model", ["qwen2", "gpt2"])
@pytest.mark.parametrize("size", [1, 2, 64])
def test_a_value_belongs_to_the_prefix_before_its_token_and_the_last_to_the_whole(
    kind: str, model: str, size: int
) -> None:
    gpt2 = GPT2Config(vocab_size=16, n_positions=16, n_embd=8, n_layer=1, n_head=2, n_inner=8)
    policy = tiny_policy() if model == "qwen2" else CausalLMPolicy(GPT2LMHeadModel(gpt2))
    critic = opinionated(policy, kind)
    generator = np.random.default_rng(0)
    rows = [random_trajectory(generator, score=1.0) for _ in range(5)]
    values, last = state_values(policy, critic, make_batch(rows), size)
    assert values.dtype == last.dtype == torch.float64
    for row, one in enumerate(rows):
        ids = torch.from_numpy(one.tokens.astype(np.int64))[None]
        with torch.no_grad():
            # Each prefix is read alone, and its last state goes through the layer.
            states = [policy.model.base_model(input_ids=ids[:, : t + 1])[0][0, -1] for t in range(len(one.tokens))]
            prefixes = [float(critic.layer(state)) for state in states]
        for t in range(values.shape[1]):
            expected = prefixes[t - 1] if t < len(one.tokens) and one.policy_mask[t] else 0.0
            assert float(values[row, t]) == pytest.approx(expected, abs=tolerance(100))
        assert float(last[row]) == pytest.approx(prefixes[-1], abs=tolerance(100))


def test_a_head_needs_the_policys_states() -> None:
    with pytest.raises(InvalidArgumentError, match="with_states=True"):
        make_critic(tiny_policy(), CriticConfig("head")).values(make_batch(some_batch(tiny_policy())), None)


def agent_with(case: str, kind: Any, critic: dict[str, Any] | None = None, **settings: Any) -> Any:
    """An agent whose critic's layer is not 0."""
    agent = make_agent(case, critic=CriticConfig(kind, **(critic or {})), **settings)
    agent.models.critic.load_state_dict(opinionated(agent.policy, kind).state_dict())  # type: ignore[union-attr, arg-type]
    return agent


def ready(agent: Any, rows: list[Any]) -> Any:
    """A batch with values and their targets, and the advantages."""
    return prepared(agent, make_batch(rows))


@pytest.mark.parametrize("kind", KINDS)
def test_only_truncated_episodes_go_on_and_only_if_asked(kind: str) -> None:
    def target(rule: str, **fields: Any) -> tuple[float, float]:
        """What the last token's value is fitted to, and V of the state after it; the reward there is 2."""
        rows = [trajectory([0, 1, 1], tokens=[1, 2, 3], rewards=[0, 0, 2], logprobs=[0, -1, -1], **fields)]
        agent = agent_with("a2c", kind, gae_lambda=1.0, truncation=rule, gamma=0.5)
        batch, advantages = ready(agent, rows)
        targets = batch.value_targets
        last = state_values(agent.policy, agent.models.critic, batch, 4)[1]
        assert float(advantages[0, 2]) == pytest.approx(float(targets[0, 2] - batch.values[0, 2]))
        assert float(targets[0, 1]) == pytest.approx(0.5 * float(targets[0, 2]))
        return float(targets[0, 2]), float(last[0])

    cut = {"terminated": False, "truncated": True}
    result, after = target("bootstrap", **cut)
    assert abs(after) > 0.1
    assert result == pytest.approx(2 + 0.5 * after)
    assert target("score", **cut)[0] == 2
    assert target("bootstrap")[0] == 2


@FLOAT64
@pytest.mark.parametrize("clip", [None, 0.05])
@pytest.mark.parametrize("kind", KINDS)
def test_the_value_loss_by_hand(kind: str, clip: float | None) -> None:
    """0.5 mean max((V - G)^2, (clipped V - G)^2), after the values have moved from those before the update."""
    agent = agent_with("ppo", kind, {"value_clip": clip, "value_coefficient": 0.7})
    batch, advantages = ready(agent, some_batch(agent.policy))
    with torch.no_grad():
        agent.models.critic.layer.bias.add_(0.2)
    metrics = agent.learner.step(batch, advantages, Loss(agent.updating.terms, aggregation=agent.config.aggregation))
    errors = []
    for old, goal in torch.stack([batch.values, batch.value_targets], dim=-1)[batch.loss_mask].tolist():
        new = old + 0.2
        kept = new if clip is None else min(max(new, old - clip), old + clip)
        errors.append(0.5 * max((new - goal) ** 2, (kept - goal) ** 2))
    assert metrics["loss/value"] == pytest.approx(np.mean(errors), rel=tolerance(10))
    assert metrics["loss"] == pytest.approx(metrics["loss/policy"] + 0.7 * metrics["loss/value"], abs=tolerance(10))


@pytest.mark.parametrize(("kind", "rate"), [("head", 0.05), ("separate", 0.01)])
def test_a_critic_learns_the_returns_of_a_batch(kind: str, rate: float) -> None:
    """One return for each prompt: 40 fits explain nearly all of it, and the policy stays as it is."""
    rows = [
        trajectory([0, 0, 1, 1], tokens=[prompt, 3, token, 5], rewards=[0, 0, 0, prompt], logprobs=[0, 0, -1, -1])
        for prompt in range(4)
        for token in range(3)
    ]
    agent = make_agent("a2c", gae_lambda=1.0, critic=CriticConfig(kind, critic_learning_rate=rate))  # type: ignore[arg-type]
    before = [parameter.detach().clone() for parameter in agent.policy.parameters()]
    batch, _ = ready(agent, rows)
    errors = [agent.learner.fit_critic(batch)["loss/value"] for _ in range(40)]
    assert errors[0] == pytest.approx(0.5 * np.mean([prompt**2 for prompt in range(4)]))
    assert errors[-1] < 0.1 * errors[0]
    after, _ = ready(agent, rows)
    assert explained_variance(after.values, batch.value_targets, batch.loss_mask) > 0.8
    assert all(torch.equal(one, other) for one, other in zip(before, agent.policy.parameters(), strict=True))


def test_a_fit_whose_gradient_is_not_finite_is_left_out_and_counted() -> None:
    rows = [trajectory([0, 1], rewards=[0, 1.0], group=group) for group in range(4)]
    agent: Any = make_agent("a2c", critic=CriticConfig(critic_learning_rate=0.02))
    batch, _ = ready(agent, rows)
    good = agent.learner.fit_critic(batch)
    assert (good["nonfinite_gradients"], good["learning_rate/critic"]) == (0, 0.02)
    assert good["grad_norm/critic"] > 0
    before = [weight.detach().clone() for weight in agent.models.critic.parameters()]
    batch.value_targets[0, 1] = math.nan
    assert agent.learner.fit_critic(batch)["nonfinite_gradients"] == 1
    assert all(torch.equal(*pair) for pair in zip(before, agent.models.critic.parameters(), strict=True))


def test_explained_variance_by_hand() -> None:
    targets = torch.tensor([[1.0, 2.0, 3.0, 99.0]])
    mask = torch.tensor([[True, True, True, False]])
    assert explained_variance(targets + 5, targets, mask) == 1  # a constant error is bias, not variance
    assert explained_variance(-targets, targets, mask) == pytest.approx(-3)
    assert explained_variance(torch.tensor([[1.0, 2.0, 2.0, 0.0]]), targets, mask) == pytest.approx(2 / 3)
    assert math.isnan(explained_variance(targets, torch.ones(1, 4), mask))
    assert math.isnan(explained_variance(targets, targets, mask & False))


@FLOAT64
def test_a_heads_gradient_shapes_the_policy_and_a_separate_models_does_not() -> None:
    def difference(kind: Any) -> float:
        """The most that the value loss changes a derivative of the policy's weights."""
        small, large = (agent_with("ppo", kind, {"value_coefficient": value}) for value in (1e-9, 1.0))
        batch = make_batch(some_batch(small.policy))
        size = sum(parameter.numel() for parameter in small.policy.parameters())
        return float((gradient(small, batch) - gradient(large, batch))[:size].abs().max())

    assert difference("separate") < tolerance(100)
    assert difference("head") > 1e-2


@pytest.mark.parametrize("kind", KINDS)
def test_gradients_of_policy_and_critic_are_clipped_apart(kind: str) -> None:
    agent = make_agent("a2c", critic=CriticConfig(kind), learner={"max_grad_norm": 1e-3})  # type: ignore[arg-type]
    metrics = agent.update(some_batch(agent.policy))
    assert metrics["grad_norm"] > 1e-2
    assert metrics["grad_norm/critic"] > 1e-2
    for parameters in (agent.policy.parameters(), list(agent.models.critic.parameters())):  # type: ignore[union-attr]
        squares = [float((parameter.grad**2).sum()) for parameter in parameters if parameter.grad is not None]
        assert math.sqrt(sum(squares)) == pytest.approx(1e-3, rel=1e-2)


def test_a_separate_critic_begins_as_the_policy_and_then_goes_its_own_way() -> None:
    agent: Any = make_agent("ppo/separate")
    mine, theirs = (list(body.parameters()) for body in (agent.models.critic.body, agent.policy.model.base_model))
    assert all(torch.equal(one, other) for one, other in zip(mine, theirs, strict=True))
    agent.update(some_batch(agent.policy))
    agent.update(some_batch(agent.policy, seed=1))
    assert any(not torch.equal(one, other) for one, other in zip(mine, theirs, strict=True))


def test_both_rates_follow_the_schedule() -> None:
    agent = make_agent(
        "a2c",
        critic=CriticConfig(critic_learning_rate=0.5),
        learner={"schedule": "linear", "schedule_steps": 2, "learning_rate": 0.1},
    )
    rates = []
    for seed in range(3):
        agent.update(some_batch(agent.policy, seed=seed))
        rates.append([group["lr"] for group in agent.learner.optimizer.param_groups])
    assert np.array(rates) == pytest.approx(np.array([[0.1, 0.5], [0.05, 0.25], [0, 0]]))


def test_a_separate_model_learns_slower_than_a_head_unless_told() -> None:
    assert CriticConfig().learning_rate == 1e-3
    assert CriticConfig("separate").learning_rate == 1e-5
    assert CriticConfig("separate", critic_learning_rate=0.5).learning_rate == 0.5
    for config in (CriticConfig(), CriticConfig("separate")):
        assert make_agent("a2c", critic=config).learner.optimizer.param_groups[1]["lr"] == config.learning_rate
