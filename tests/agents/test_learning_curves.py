"""The benchmark of learning curves in small: every agent at its defaults, for a few steps."""

from __future__ import annotations

import dataclasses
import fcntl
import functools
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from agents import AGENTS, CausalLMPolicy, agent_classes, load_policy, tiny_model
from benchmarks import learning_curves as benchmark
from verifiers import InvalidArgumentError

TOKENS = {"addition": 4_500, "sort": 4_000, "gridworld": 9_000}
"""What the quick test samples: about ten steps of 128 completions, a quarter as many of those that search for a step."""
MARGIN = 0.15


@pytest.fixture(scope="module")
def starts(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """The checkpoints that runs start from, each made by whichever process of the tests needs it first."""
    parallel = "PYTEST_XDIST_WORKER" in os.environ
    folder = tmp_path_factory.getbasetemp().parent / "starts" if parallel else tmp_path_factory.mktemp("starts")
    folder.mkdir(exist_ok=True)

    def start(environment: str) -> Path:
        with open(folder / f"{environment}.lock", "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            return benchmark.checkpoint(benchmark.TASKS[environment], folder)

    return start


@functools.cache
def score_before(environment: str, seed: int, start: Path) -> dict[str, Any]:
    """What the checkpoint scores, whoever learns from it."""
    task = benchmark.TASKS[environment]
    policy, _ = load_policy(start)
    return benchmark.score(benchmark.make_agent("grpo", policy, task, seed), benchmark.make_env(task, "test"), task)


QUICK = [((0,), environment) for environment in benchmark.TASKS if environment != "addition"]
DEEP = [((0,), "addition"), *(((1, 2, 3), environment) for environment in benchmark.TASKS)]
"""A start that can add takes as long to make as all of the quick runs."""


@pytest.mark.parametrize(
    ("seeds", "environment"), [*QUICK, *(pytest.param(*of, marks=pytest.mark.long) for of in DEEP)]
)
@pytest.mark.parametrize("name", AGENTS)
def test_no_agent_at_its_defaults_ends_below_its_start(
    name: str, environment: str, seeds: tuple[int, ...], starts: Callable[[str], Path]
) -> None:
    """Defaults that destroy a policy take 0.2 and more of the reward; benchmarks/README.md has longer runs of several seeds.

    Judged is the one-sided 95 % bound of the reward gained, from the differences of each problem before and after.
    """
    task, start = benchmark.TASKS[environment], starts(environment)
    tokens = TOKENS[environment] // (4 if name in ("npg", "trpo") else 1)
    curves = []
    for seed in seeds:
        before = score_before(environment, seed, start)
        curve = benchmark.train(name, task, seed, start, tokens, points=2, before=before)["curve"]
        assert (curve[0]["tokens"], curve[1]["tokens"] >= tokens) == (0, True)
        curves.append(curve)
    gain = benchmark.paired_gain(curves, "reward")
    assert gain["mean"] - 1.64 * gain["error"] > -MARGIN


def test_the_checkpoint_scores_the_same_for_every_agent(starts: Callable[[str], Path]) -> None:
    task, start = benchmark.TASKS["sort"], starts("sort")
    by_agent = [benchmark.train(name, task, 1, start, tokens=0, points=1)["curve"][0] for name in ("ppo", "remax")]
    assert by_agent == [{"tokens": 0, **score_before("sort", 1, start)}] * 2


# Statistics


def test_bootstrap_intervals_cover_the_truth_about_as_often_as_they_say() -> None:
    """Of normal samples of 20, whose interquartile mean is 0; the percentile interval is known to be somewhat short."""
    rng = np.random.default_rng(0)
    intervals = [benchmark.bootstrap_interval(rng.normal(size=20)) for _ in range(200)]
    assert 0.88 <= np.mean([low <= 0 <= high for low, high in intervals]) <= 0.98
    assert benchmark.bootstrap_interval(np.full(5, 0.3)) == pytest.approx((0.3, 0.3))


# The settings


@pytest.mark.parametrize("name", AGENTS)
def test_every_agent_can_be_built_and_trained_with_its_settings(name: str) -> None:
    """One step on few problems with a new policy: what an agent no longer takes, or can't learn from, shows at once."""
    task = benchmark.TASKS["gridworld"]
    env = benchmark.make_env(task, "train", num_envs=32, **benchmark.training_options(task, name))
    model = tiny_model(env.unwrapped.streams.vocab_size, hidden_size=16, intermediate_size=32, max_tokens=64)
    agent = benchmark.make_agent(name, CausalLMPolicy(model), task, seed=0)
    per_group = agent.config.group_size
    agent.config = dataclasses.replace(agent.config, problems_per_step=max(4, 8 // per_group))
    agent.learn(env, steps=1)
    assert agent.tokens > 0
    assert agent.learner.steps == agent.config.epochs * agent.config.minibatches


@pytest.mark.parametrize("name", AGENTS)
def test_agents_are_told_nothing_but_what_they_cannot_do_without(name: str) -> None:
    """The benchmark is of the defaults; VinePPO's steps are lines, of which these completions have one."""
    settings = benchmark.agent_settings(name, benchmark.TASKS["sort"])
    assert settings == {"dr-grpo": {"max_tokens": 6}, "vineppo": {"max_step_tokens": 1}}.get(name, {})
    if name == "dr-grpo":
        with pytest.raises(InvalidArgumentError, match="needs max_tokens"):
            agent_classes(name)[1]()


def test_a_checkpoint_of_other_options_is_another(tmp_path: Path) -> None:
    task = dataclasses.replace(benchmark.TASKS["sort"], warm_start_steps=1)
    longer = dataclasses.replace(task, options={**task.options, "length": 4, "max_new_tokens": 8})
    assert benchmark.checkpoint(task, tmp_path) == benchmark.checkpoint(task, tmp_path)
    assert benchmark.checkpoint(task, tmp_path) != benchmark.checkpoint(longer, tmp_path)


# What is made of results


def result(rewards: list[float], accuracies: list[float]) -> dict[str, Any]:
    """A curve of two problems, one of which stays as it is."""
    curve = []
    for at, (reward, right) in enumerate(zip(rewards, accuracies, strict=True)):
        by_problem = {"reward_by_problem": [2 * reward, 0.0], "accuracy_by_problem": [2 * right, 0.0]}
        curve.append({"tokens": 100 * at, "reward": reward, "accuracy": right, **by_problem})
    return {"curve": curve}


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


def test_the_gain_of_paired_problems_by_hand() -> None:
    """Gains of (0.4, 0) and (0.8, 0) over two seeds: 0.6 and 0 by problem, of mean 0.3 and standard error 0.3."""
    curves = [result([0.1, 0.3], [0, 0])["curve"], result([0.2, 0.6], [0, 0])["curve"]]
    gain = benchmark.paired_gain(curves, "reward")
    assert gain["mean"] == pytest.approx(0.3)
    assert gain["error"] == pytest.approx(0.3)
    assert gain["interval"] == pytest.approx((0.3 - 1.96 * 0.3, 0.3 + 1.96 * 0.3))


def test_who_may_have_lost_is_named_with_the_number() -> None:
    kept = benchmark.summarize([result([0.2, 0.2], [0.5, 0.5])], "sort", "grpo")
    lost = benchmark.summarize([result([0.3, 0.2], [0.5, 0.5])], "addition", "ppo")
    assert benchmark.lost([kept, lost], "reward").endswith(": ppo in addition (-0.100)")
    assert benchmark.lost([kept], "reward").endswith(": none")


def test_a_result_counts_only_for_the_settings_it_was_made_with(tmp_path: Path) -> None:
    (tmp_path / "results").mkdir()
    job = benchmark.Job("gdpo", "sort", 3, 500, tmp_path)
    assert not job.done
    settings = benchmark.run_settings("gdpo", benchmark.TASKS["sort"], 3, 500, benchmark.POINTS)
    job.path.write_text(json.dumps({**settings, **result([0.1, 0.2], [0.5, 0.5])}))
    assert job.done
    assert not dataclasses.replace(job, tokens=600).done
    assert not dataclasses.replace(job, seed=4).done
