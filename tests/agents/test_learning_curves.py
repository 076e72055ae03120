"""The benchmark of learning curves in small: two seeds, one environment, an agent of each family."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from agents import AGENTS, CausalLMPolicy, LearnerConfig, agent_classes, tiny_model
from benchmarks import learning_curves as benchmark
from verifiers import InvalidArgumentError

SEEDS = (0, 1)
TOKENS = 24_000
TASK = benchmark.TASKS["gridworld"]
FAMILIES = ("grpo", *(pytest.param(name, marks=pytest.mark.long) for name in ("reinforce", "a2c", "ppo")))
"""Without and with a critic, one step on a batch and several, alone and in groups; the benchmark itself runs them all."""


@pytest.fixture(scope="module")
def start(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return benchmark.checkpoint(TASK, tmp_path_factory.mktemp("checkpoints"))


@pytest.mark.parametrize("name", FAMILIES)
def test_agents_improve_significantly_over_their_start(name: str, start: Path) -> None:
    """The reward gained, problem by problem and over both seeds, is more than two standard errors above 0."""
    gains = []
    for seed in SEEDS:
        curve = benchmark.train(name, TASK, seed, start, TOKENS, points=2)["curve"]
        assert curve[0]["tokens"] == 0
        assert curve[1]["tokens"] >= TOKENS
        gains.append(np.subtract(curve[1]["reward_by_problem"], curve[0]["reward_by_problem"]))
    by_problem = np.mean(gains, axis=0)
    assert by_problem.mean() > 2 * by_problem.std(ddof=1) / np.sqrt(TASK.problems)


# Statistics


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([5.0], 5.0),
        ([1.0, 3.0], 2.0),
        ([9.0, 1.0, 2.0, 4.0], 3.0),  # of four the middle two
        ([100.0, 1.0, 2.0, 3.0, -50.0], 2.0),  # of five one and a quarter on either side do not count
        ([0.0, 1.0, 2.0, 4.0, 10.0], (0.75 * 1 + 2 + 0.75 * 4) / 2.5),
    ],
)
def test_interquartile_means_by_hand(values: list[float], expected: float) -> None:
    assert float(benchmark.interquartile_mean(np.array(values))) == pytest.approx(expected, abs=1e-14)


def test_bootstrap_intervals_cover_the_truth_about_as_often_as_they_say() -> None:
    """Of normal samples of 20, whose interquartile mean is 0; the percentile interval is known to be somewhat short."""
    rng = np.random.default_rng(0)
    intervals = [benchmark.bootstrap_interval(rng.normal(size=20)) for _ in range(200)]
    assert 0.88 <= np.mean([low <= 0 <= high for low, high in intervals]) <= 0.98
    assert benchmark.bootstrap_interval(np.full(5, 0.3)) == pytest.approx((0.3, 0.3))


# The settings


@pytest.mark.parametrize("environment", benchmark.TASKS)
@pytest.mark.parametrize("name", AGENTS)
def test_every_agent_can_be_built_and_trained_with_its_settings(name: str, environment: str) -> None:
    """One step on few problems with a new policy: what an agent no longer takes, or can't learn from, shows at once."""
    task = benchmark.TASKS[environment]
    env = benchmark.make_env(task, "train", num_envs=32, **benchmark.training_options(task, name))
    model = tiny_model(env.unwrapped.streams.vocab_size, hidden_size=16, intermediate_size=32, max_tokens=64)
    agent = benchmark.make_agent(name, CausalLMPolicy(model), task, seed=0)
    per_group = agent.config.group_size
    agent.config = dataclasses.replace(agent.config, problems_per_step=max(4, 8 // per_group))
    agent.learn(env, steps=1)
    assert agent.tokens > 0
    assert agent.learner.steps == agent.config.epochs * agent.config.minibatches


@pytest.mark.parametrize("name", AGENTS)
def test_all_agents_that_can_make_several_optimiser_steps_on_a_batch_make_the_same_number(name: str) -> None:
    """Whoever makes one refuses more."""
    task = benchmark.TASKS["sort"]
    settings = benchmark.agent_settings(name, task)
    told = (settings.get("epochs", 1), settings.get("minibatches", 1))
    if told == (1, 1):
        _, config = agent_classes(name)
        learner = LearnerConfig(**settings.pop("learner"))
        with pytest.raises(InvalidArgumentError, match="epochs and minibatches are 1"):
            config(learner=learner, **settings, minibatches=benchmark.MINIBATCHES)
    else:
        assert told == (benchmark.EPOCHS, benchmark.MINIBATCHES)


def test_a_checkpoint_of_other_options_is_another(tmp_path: Path) -> None:
    task = dataclasses.replace(benchmark.TASKS["sort"], warm_start_steps=1)
    longer = dataclasses.replace(task, options={**task.options, "length": 4, "max_new_tokens": 8})
    assert benchmark.checkpoint(task, tmp_path) == benchmark.checkpoint(task, tmp_path)
    assert benchmark.checkpoint(task, tmp_path) != benchmark.checkpoint(longer, tmp_path)


# What is made of results


def result(rewards: list[float], accuracies: list[float]) -> dict[str, Any]:
    points = enumerate(zip(rewards, accuracies, strict=True))
    return {"curve": [{"tokens": 100 * at, "reward": reward, "accuracy": right} for at, (reward, right) in points]}


def test_an_agent_has_improved_in_a_measure_when_every_seed_gained() -> None:
    better = benchmark.summarize([result([0.1, 0.3], [0.5, 0.7]), result([0.2, 0.6], [0.5, 0.5])], "sort", "grpo")
    assert better["reward"]["gain"]["iqm"] == pytest.approx(0.3)
    assert better["reward"]["gain"]["least"] == pytest.approx(0.2)
    assert better["tokens"] == [0.0, 100.0]
    assert benchmark.improved(better, "reward")
    assert not benchmark.improved(better, "accuracy")
    assert "| `grpo` | 0.45 [0.30, 0.60] |" in benchmark.markdown([better])
    assert "| the checkpoint | 0.15 |" in benchmark.markdown([better])


def test_the_verdict_names_who_did_not_improve_in_a_measure() -> None:
    both = benchmark.summarize([result([0.1, 0.3], [0.5, 0.7])], "sort", "grpo")
    one = benchmark.summarize([result([0.1, 0.3], [0.5, 0.4])], "addition", "remax")
    assert benchmark.verdict([both, one], "reward").endswith("for all 2 pairs of agent and environment")
    assert benchmark.verdict([both, one], "accuracy").endswith("for 1 of 2 pairs: all but remax in addition")


def test_a_result_counts_only_for_the_settings_it_was_made_with(tmp_path: Path) -> None:
    (tmp_path / "results").mkdir()
    job = benchmark.Job("gdpo", "sort", 3, 500, tmp_path)
    assert not job.done
    settings = benchmark.run_settings("gdpo", benchmark.TASKS["sort"], 3, 500, benchmark.POINTS)
    job.path.write_text(json.dumps({**settings, **result([0.1, 0.2], [0.5, 0.5])}))
    assert job.done
    assert not dataclasses.replace(job, tokens=600).done
    assert not dataclasses.replace(job, seed=4).done
