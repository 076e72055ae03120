"""Runs of tables and perceptrons in `rlvr eval`, `rlvr play` and `rlvr bench`."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path
from typing import Any

import gymnasium
import pytest

pytest.importorskip("torch")

from gymnasium.vector import AutoresetMode

from agents import DQN, PPO, DQNConfig, MLPPolicy, PPOConfig, QLearning, QLearningConfig
from agents.runs.reading import RecordedRun, paired_scores
from tests.commands import Command
from verifiers import CheckpointError


def table(folder: Path) -> Path:
    """A checkpoint of a table that goes up and then right in a 3 x 3 world, wherever it is."""
    env = gymnasium.make("rlvr/MazeState-v0")
    agent = QLearning(env, QLearningConfig(epsilon=0.25, initial_value=10.0))
    agent.learn(env, steps=20)
    agent.save(folder)
    return folder


def cartpole() -> Any:
    mode = {"autoreset_mode": AutoresetMode.DISABLED}
    return gymnasium.make_vec("CartPole-v1", num_envs=2, vectorization_mode="sync", vector_kwargs=mode)


def perceptron(folder: Path, *, values: bool = False) -> Path:
    policy = MLPPolicy.for_env(cartpole(), hidden=(8, 6), activation="relu", dueling=values, seed=3)
    agent: Any = DQN(policy, DQNConfig.for_control()) if values else PPO(policy, PPOConfig.for_control())
    agent.save(folder)
    return folder


def test_a_perceptron_is_read_back_as_it_was(tmp_path: Path) -> None:
    env = cartpole()
    for values in (False, True):
        saved = MLPPolicy.load(perceptron(tmp_path / str(values), values=values))
        first = MLPPolicy.for_env(env, hidden=(8, 6), activation="relu", dueling=values, seed=3)
        state, other = first.model.state_dict(), saved.model.state_dict()
        assert all((state[name] == other[name]).all() for name in {**state, **other})
        assert str(saved.model) == str(first.model)
    with pytest.raises(CheckpointError, match="no multilayer perceptron at"):
        MLPPolicy.load(tmp_path)


def test_a_table_is_evaluated_as_in_python(rlvr: Command, tmp_path: Path) -> None:
    folder = table(tmp_path / "table")
    _, said, _ = rlvr("eval", "--env", "Maze", "--model", folder, "--out", tmp_path / "greedy")
    assert "score 10.000" in said
    explores = ("--samples", 9, "--temperature", 1, "--seed", 4)
    assert rlvr("eval", "--env", "MazeState", "--model", folder, *explores, "--out", tmp_path / "out")[0] == 0
    env = gymnasium.make("rlvr/MazeState-v0", split="test")
    agent = QLearning(env, QLearningConfig(epsilon=0.25, initial_value=10.0))
    agent.load(folder)
    expected = agent.evaluate(env, samples=9, seed=4)
    rows = RecordedRun.read(tmp_path / "out").rows
    assert [row["score"] for row in rows] == [row.score for row in expected.rows]
    assert all(len(row["completion"].split()) == row["tokens"] for row in rows)
    assert len({row["completion"] for row in rows}) > 1


def test_a_perceptron_is_evaluated_and_compared(rlvr: Command, tmp_path: Path) -> None:
    """Drawn problems are the same in two evaluations with one seed, and have ids of their own."""
    for name in ("one", "two"):
        folder = perceptron(tmp_path / f"model-{name}", values=name == "two")
        line = ("eval", "--env", "CartPole-v1", "--model", folder, "--problems", 3, "--num-envs", 2)
        assert rlvr(*line, "--out", tmp_path / name)[0] == 0
    runs = [RecordedRun.read(tmp_path / name) for name in ("one", "two")]
    assert paired_scores(runs)[0] == ["drawn@0.0", "drawn@0.1", "drawn@0.2"]
    code, _, said = rlvr(*line, "--temperature", 1, "--out", tmp_path / "three")
    assert (code, "action values, which are no log-probabilities" in said) == (2, True)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (("eval", "--env", "Maze", "--model", "table", "--temperature", 0.5), "a table has no temperature"),
        (("eval", "--env", "Maze", "--model", "table", "--pass-at", 1), "--pass-at needs completions of a language"),
        (("eval", "--env", "Maze", "--model", "table", "--verifier", "exact"), "holds a table: leave it out"),
        (("eval", "--env", "Bandit", "--model", "table"), "with other spaces"),
        (("eval", "--env", "CartPole-v1", "--model", "net"), "say how many to draw, as in --problems 100"),
        (("eval", "--env", "Acrobot-v1", "--model", "net", "--problems", 2), "the environment that it learned in"),
        (("play", "--env", "CartPole-v1", "--model", "net", "--problem", 2), "has no --problem: choose one by --seed"),
        (("play", "--env", "CartPole-v1", "--model", "net", "--opponent", "me"), "for environments with tokens"),
        (("play", "--env", "Pendulum-v1"), "only discrete actions can be played"),
    ],
)
def test_what_does_not_fit_is_refused(
    line: tuple[Any, ...], message: str, rlvr: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    table(tmp_path / "table")
    perceptron(tmp_path / "net")
    code, _, errors = rlvr(*line)
    assert (code, message in errors, errors.count("error: ")) == (2, True, 1)
    assert not (tmp_path / "runs").exists()


def test_an_episode_is_shown_step_by_step(rlvr: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    code, said, _ = rlvr("play", "--env", "Maze", "--model", table(tmp_path / "table"), "--temperature", 0, "--top", 1)
    assert code == 0
    steps = [line.split() for line in said.splitlines() if " action " in line and "after" not in line]
    assert sum(float(step[-1]) for step in steps) == 10
    assert f"terminated after {len(steps)} actions" in said
    for values in (False, True):
        net = perceptron(tmp_path / f"net-{values}", values=values)
        code, said, _ = rlvr("play", "--env", "CartPole-v1", "--model", net, "--seed", 2)
        assert (code, "terminated after" in said) == (0, True)
        assert ("of values 0" in said or "of values 1" in said) == values
    monkeypatch.setattr(sys, "stdin", io.StringIO("7\n0\n"))
    code, said, _ = rlvr("play", "--env", "CartPole-v1")
    assert (code, "from 0 to 1" in said, "left after 1 action" in said) == (0, True, True)


SUITE = """
title = "A maze"

[train]
agents = ["q-learning", "dqn"]
env = "MazeState"
tokens = 40
seeds = [0, 1]
options = { loggers = [] }

[[environments]]
name = "MazeState"
problems = 1
"""


def test_a_bench_trains_tables_beside_networks(rlvr: Command, tmp_path: Path) -> None:
    (tmp_path / "suite.toml").write_text(SUITE)
    line = ("bench", "--suite", tmp_path / "suite.toml", "--out", tmp_path / "out")
    assert rlvr(*line)[0] == 0
    board = json.loads((tmp_path / "out" / "leaderboard.json").read_text())
    assert [(cell["name"], len(cell["runs"])) for cell in board["cells"]] == [("q-learning", 2), ("dqn", 2)]
    assert rlvr(*line, "--resume")[0] == 0
    (tmp_path / "suite.toml").write_text(SUITE.replace("problems = 1", "").replace('"MazeState"', '"CartPole-v1"'))
    code, _, said = rlvr(*line[:-1], tmp_path / "other")
    assert (code, "draws its problems: say how many to draw" in said) == (2, True)
