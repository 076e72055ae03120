"""The benchmark of learning curves in small: every agent at its defaults, for a few steps."""

from __future__ import annotations

import fcntl
import functools
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agents import AGENTS, load_policy
from benchmarks import learning_curves as benchmark

TOKENS = {"sort": 4_000, "gridworld": 9_000}
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


QUICK = [environment for environment in benchmark.TASKS if environment != "addition"]
"""A start that can add takes as long to make as all of these runs."""


@pytest.mark.parametrize("environment", QUICK)
@pytest.mark.parametrize("name", AGENTS)
def test_no_agent_ends_below_its_start(name: str, environment: str, starts: Callable[[str], Path]) -> None:
    """Defaults that destroy a policy take 0.2 and more of the reward; benchmarks/README.md has longer runs of several seeds.

    Judged is the one-sided 95 % bound of the reward gained, from the differences of each problem before and after.
    """
    task, start = benchmark.TASKS[environment], starts(environment)
    tokens = TOKENS[environment] // (4 if name in ("npg", "trpo") else 1)
    before = score_before(environment, 0, start)
    curve = benchmark.train(name, task, 0, start, tokens, points=2, before=before)["curve"]
    assert (curve[0]["tokens"], curve[1]["tokens"] >= tokens) == (0, True)
    gain = benchmark.paired_gain([curve], "reward")
    assert gain["mean"] - 1.64 * gain["error"] > -MARGIN


def test_the_gain_of_paired_problems_by_hand() -> None:
    """Gains of (0.4, 0) and (0.8, 0) over two seeds: 0.6 and 0 by problem, of mean 0.3 and standard error 0.3."""
    ends = [([0.2, 0.0], [0.6, 0.0]), ([0.4, 0.0], [1.2, 0.0])]
    curves = [[{"reward_by_problem": rewards} for rewards in curve] for curve in ends]
    gain = benchmark.paired_gain(curves, "reward")
    assert gain["mean"] == pytest.approx(0.3)
    assert gain["error"] == pytest.approx(0.3)
    assert gain["interval"] == pytest.approx((0.3 - 1.96 * 0.3, 0.3 + 1.96 * 0.3))
