"""The learning rate that is chosen where none is set, and the schedule that follows the steps of a run."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import gymnasium
import pytest

from agents import (
    AGENTS,
    GRPO,
    CausalLMPolicy,
    GRPOConfig,
    LearnerConfig,
    SupervisedConfig,
    add_lora,
    agent_classes,
    tiny_model,
    train_supervised,
)
from agents.settings.learning_rate import count_parameters, default_learning_rate
from tests.agents.agent_cases import NATURAL, NEEDED, make_agent, some_batch, tiny_policy
from verifiers import InvalidArgumentError


@pytest.mark.parametrize(
    ("parameters", "rate"),
    [
        (350_000, 2e-4),
        (1_000_000, 1e-4),
        (12_052_000, 3.8e-5),  # halfway in the logarithm: the root of 9.5e-5 times 1.5e-5
        (134_500_000, 1.5e-5),
        (500_000_000, 2.5e-6),
        (32_000_000_000, 1e-6),
    ],
)
def test_the_rates_by_hand(parameters: int, rate: float) -> None:
    assert default_learning_rate(parameters) == pytest.approx(rate, rel=1e-9)
    assert default_learning_rate(parameters, supervised=True) == pytest.approx(10 * rate, rel=1e-9)
    assert default_learning_rate(parameters, supervised=True, adapter=True) == pytest.approx(100 * rate, rel=1e-9)


def test_the_default_model_has_a_million_parameters_and_learns_at_the_rates_that_the_documentation_names() -> None:
    model = tiny_model(257)
    assert count_parameters(model) == pytest.approx(1.08e6, rel=0.01)
    assert LearnerConfig().for_model(model).learning_rate == 9.5e-5
    assert LearnerConfig().for_model(model, supervised=True).learning_rate == 9.5e-4
    pytest.importorskip("peft")
    adapted = LearnerConfig().for_model(add_lora(model, rank=2)).learning_rate
    assert adapted == pytest.approx(10 * 9.5e-5, rel=0.1)  # the adapter's own weights count a little


@pytest.mark.parametrize("name", AGENTS)
def test_agents_hold_the_rate_that_was_chosen_and_learn_from_128_completions_a_step(name: str) -> None:
    """What is set stays; natural gradients have no rate. Equal steps are equal data."""
    cls, config_cls = agent_classes(name)
    policy = tiny_policy()
    agent = cls(policy, config_cls(**NEEDED.get(name, {})))
    chosen = default_learning_rate(count_parameters(policy.model))
    assert agent.config.learner.learning_rate == (None if name in NATURAL else chosen)
    if name not in NATURAL:
        assert make_agent(name, learner={"learning_rate": 0.25}).learner.config.learning_rate == 0.25
    settings = config_cls(**({"max_tokens": 4} if name == "dr-grpo" else {}))
    assert settings.problems_per_step * settings.group_size == 128


def sort_agent(**learner: Any) -> tuple[GRPO, Any]:
    env = gymnasium.make_vec("rlvr/Sort-v0", num_envs=8, tokenizer="char", max_new_tokens=5, copy=False)
    model = tiny_model(env.single_action_space.n, layers=1, hidden_size=16, heads=2, intermediate_size=32)
    settings = LearnerConfig(learning_rate=0.001, schedule="linear", **learner)
    # All completions count, so that no step is left out for want of a gradient.
    small: dict[str, Any] = {"problems_per_step": 2, "group_size": 4, "minibatches": 2, "learner": settings}
    config = GRPOConfig(**small, entropy_coefficient=0.4, entropy_coefficient_end=0.0)
    return GRPO(CausalLMPolicy(model), config), env


def test_schedules_end_with_the_last_step_of_learn(caplog: pytest.LogCaptureFixture) -> None:
    """Four steps of two optimiser steps each: the rate falls by an eighth each time, and is reported as a mean of two."""
    agent, env = sort_agent()
    rates, weights = [], []

    def note(step: int, metrics: Any) -> None:
        rates.append(metrics["learning_rate"])
        weights.append(metrics["entropy_coefficient"])

    with caplog.at_level(logging.WARNING):
        agent.learn(env, steps=4, callbacks=[note])
    assert not caplog.records
    assert agent.learner.config.learning_rate_at(7, 8) == pytest.approx(0.001 / 8)
    assert rates[0] > rates[1] > rates[2] > rates[3] > 0
    assert weights == pytest.approx([0.4, 0.3, 0.2, 0.1])


def test_a_longer_run_goes_on_at_its_own_rate_and_one_of_the_same_length_at_the_same(tmp_path: Path) -> None:
    first, env = sort_agent()
    first.learner.run_steps = 8
    assert first.learner.config.learning_rate_at(2, first.learner.run_steps) == pytest.approx(0.00075)
    first.learn(env, steps=1)
    first.save(tmp_path / "saved")
    longer, _ = sort_agent()
    longer.load(tmp_path / "saved")
    results: dict[str, float] = {}
    longer.learn(env, steps=2, callbacks=[lambda step, metrics: results.update(metrics)])
    assert longer.learner.config.learning_rate_at(2, longer.learner.run_steps) == pytest.approx(0.0005)
    assert results["entropy_coefficient"] == pytest.approx(0.2)


def test_a_schedule_or_a_rate_without_what_it_needs_says_so() -> None:
    agent = make_agent("grpo", learner={"learning_rate": 0.1, "schedule": "linear"})
    with pytest.raises(InvalidArgumentError, match="a linear schedule needs its number of steps"):
        agent.update(some_batch(agent.policy))
    with pytest.raises(InvalidArgumentError, match="no learning rate is set"):
        LearnerConfig().learning_rate_at(0)


def test_supervised_learning_has_a_schedule_of_its_steps() -> None:
    agent, env = sort_agent()
    settings = SupervisedConfig(steps=2, batch_size=4, learner=LearnerConfig(schedule="linear"))
    assert train_supervised(agent.policy, env.unwrapped.streams, settings) == 2
