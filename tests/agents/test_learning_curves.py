"""The benchmark of learning curves in small: two seeds, one environment, an agent of each family."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks import agents as benchmark

SEEDS = (0, 1)
TOKENS = 24_000
TASK = dataclasses.replace(benchmark.TASKS["gridworld"], samples=16, learning_rate=5e-4)
AGENTS = ("reinforce", "a2c", "ppo", "grpo")
"""Without and with a critic, one pass and several, alone and in groups; the benchmark itself runs them all."""


@pytest.fixture(scope="module")
def start(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return benchmark.checkpoint(TASK, tmp_path_factory.mktemp("checkpoints"))


@pytest.mark.parametrize("name", AGENTS)
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


# What is made of results


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


def result(rewards: list[float]) -> dict[str, Any]:
    return {"curve": [{"tokens": 100 * at, "reward": value, "accuracy": 0.5} for at, value in enumerate(rewards)]}


def test_an_agent_has_improved_when_every_seed_gained() -> None:
    better = benchmark.summarize([result([0.1, 0.3]), result([0.2, 0.6])], "sort", "grpo")
    assert better["reward"]["gain"]["iqm"] == pytest.approx(0.3)
    assert better["reward"]["gain"]["least"] == pytest.approx(0.2)
    assert better["tokens"] == [0.0, 100.0]
    assert benchmark.improved(better)
    assert not benchmark.improved(benchmark.summarize([result([0.1, 0.3]), result([0.2, 0.2])], "sort", "grpo"))
    assert "| `grpo` | 0.45 [0.30, 0.60] |" in benchmark.markdown([better])
    assert "| the checkpoint | 0.15 |" in benchmark.markdown([better])


def test_a_result_counts_only_for_the_settings_it_was_made_with(tmp_path: Path) -> None:
    (tmp_path / "results").mkdir()
    job = benchmark.Job("gdpo", "sort", 3, 500, tmp_path)
    assert not job.done
    settings = benchmark.run_settings("gdpo", benchmark.TASKS["sort"], 3, 500, benchmark.POINTS)
    job.path.write_text(json.dumps({**settings, **result([0.1, 0.2])}))
    assert job.done
    assert not dataclasses.replace(job, tokens=600).done
    assert not dataclasses.replace(job, seed=4).done
