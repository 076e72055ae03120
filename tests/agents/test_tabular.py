"""What agents that learn a table share: learning, evaluating, checkpoints, and their command."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest

pytest.importorskip("torch")

from agents import (
    UCB1,
    EvaluationRecord,
    TabularAgent,
    Thompson,
    UCB1Config,
    agent_classes,
    tabular_classes,
)
from agents.tables.thompson import ThompsonConfig
from tests.commands import Command
from verifiers import CheckpointError, InvalidArgumentError, UnknownNameError

BANDITS = ("epsilon-greedy", "gradient-bandit", "ucb1", "thompson", "linucb")


def bandit(**options: Any) -> gymnasium.Env[Any, Any]:
    return gymnasium.make("rlvr/BanditState-v0", **options)


def make(name: str, env: gymnasium.Env[Any, Any], **settings: Any) -> TabularAgent:
    cls, config = tabular_classes(name)
    return cls(env, config(**settings))


def metrics_of(agent: TabularAgent, env: gymnasium.Env[Any, Any], steps: int, **options: Any) -> list[dict[str, float]]:
    rows: list[dict[str, float]] = []
    agent.learn(env, steps=steps, callbacks=[lambda _, metrics: rows.append(dict(metrics))], **options)
    return [{name: value for name, value in row.items() if name != "step_s"} for row in rows]


@pytest.mark.parametrize("name", BANDITS)
def test_it_learns_the_best_arm(name: str) -> None:
    """A gap of 0.8 and 600 pulls: the greedy arm is the best one, for each of three seeds."""
    for seed in range(3):
        env = bandit(means=(0.1, 0.9, 0.1))
        agent = make(name, env, seed=seed)
        agent.learn(env, steps=60)
        assert agent.act(0, greedy=True) == 1
        assert agent.tokens == 600


@pytest.mark.parametrize("name", BANDITS)
def test_a_resumed_run_continues_as_if_never_stopped(name: str, tmp_path: Path) -> None:
    env = bandit()
    whole, first, second = (make(name, env, seed=4) for _ in range(3))
    rows = metrics_of(whole, env, 8)
    begun = metrics_of(first, env, 3)
    first.save(tmp_path / "at-3")
    second.load(tmp_path / "at-3")
    assert begun + metrics_of(second, bandit(), 8) == rows
    for one, other in zip(whole.tables().values(), second.tables().values(), strict=True):
        np.testing.assert_array_equal(one, other)


def test_metrics_by_hand() -> None:
    """Arms with means 0 and 1, each tried once by UCB1, then ever more often the better."""
    env = bandit(means=(0.0, 1.0))
    agent = UCB1(env, UCB1Config(episodes_per_step=2))
    (row,) = metrics_of(agent, env, 1)
    assert row == {
        "reward": 0.5,
        "length": 1.0,
        "truncated": 0.0,
        "regret": 0.5,
        "total_regret": 1.0,
        "num_tokens": 2.0,
    }


def test_the_budget_of_actions_ends_it() -> None:
    env = bandit()
    agent = UCB1(env, UCB1Config(episodes_per_step=7))
    agent.learn(env, steps=100, tokens=15)
    assert (agent.steps, agent.tokens) == (3, 21)


def test_evaluation_plays_the_first_problems_without_learning() -> None:
    env = bandit(means=(0.0, 1.0))
    agent = UCB1(env)
    agent.learn(env, steps=5)
    before = {name: table.copy() for name, table in agent.tables().items()}
    with pytest.warns(UserWarning, match="all 2 samples of a problem are the same"):
        evaluation = agent.evaluate(env, problems=4, samples=2, greedy=True)
    assert (evaluation.score, evaluation.problems, evaluation.samples) == (1.0, 4, 2)
    assert [row.problem_id for row in evaluation.rows] == [f"bandit/train/0/{at}" for at in (0, 0, 1, 1, 2, 2, 3, 3)]
    for name, table in agent.tables().items():
        np.testing.assert_array_equal(table, before[name])
    assert agent.evaluate(env, problems=30) == agent.evaluate(env, problems=30)
    with pytest.raises(InvalidArgumentError, match="can't evaluate 0 problems"):
        agent.evaluate(env, problems=0)
    with pytest.raises(InvalidArgumentError, match="the environment has 100000 problems"):
        agent.evaluate(env, problems=100_001)


def test_a_checkpoint_is_replaced_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    env = bandit()
    agent = UCB1(env)
    agent.learn(env, steps=1)
    agent.save(tmp_path / "saved")
    agent.learn(env, steps=2)

    def full(*_: object, **__: object) -> None:
        raise OSError("no space left")

    with monkeypatch.context() as patched:
        patched.setattr(np, "savez", full)
        with pytest.raises(OSError, match="no space left"):
            agent.save(tmp_path / "saved")
    other = UCB1(env)
    other.load(tmp_path / "saved")
    assert other.steps == 1
    assert [path.name for path in tmp_path.iterdir()] == ["saved"]


def test_other_checkpoints_are_refused(tmp_path: Path) -> None:
    env = bandit()
    agent = UCB1(env)
    with pytest.raises(CheckpointError, match="no checkpoint at"):
        agent.load(tmp_path / "nothing")
    agent.save(tmp_path / "ucb1")
    with pytest.raises(CheckpointError, match="of agent 'ucb1', not of 'thompson'"):
        Thompson(env).load(tmp_path / "ucb1")
    with pytest.raises(InvalidArgumentError, match="with other spaces"):
        UCB1(bandit(arms=3)).load(tmp_path / "ucb1")
    (tmp_path / "ucb1" / "state.json").write_text("{}")
    with pytest.raises(CheckpointError, match="damaged"):
        agent.load(tmp_path / "ucb1")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "notes.txt").write_text("mine")
    with pytest.raises(InvalidArgumentError, match="something other than a checkpoint"):
        agent.save(tmp_path / "other")


def test_misuse_is_named() -> None:
    env = bandit()
    with pytest.raises(InvalidArgumentError, match="UCB1 expects a UCB1Config, got ThompsonConfig"):
        UCB1(env, ThompsonConfig())
    with pytest.raises(InvalidArgumentError, match="tables of 3 states and 5 actions, and the environment has 3 and 2"):
        UCB1(env).learn(bandit(arms=2), steps=1)
    with pytest.raises(InvalidArgumentError, match="episodes_per_step must be at least 1"):
        UCB1Config(episodes_per_step=0)
    with pytest.raises(InvalidArgumentError, match=r"plays one gymnasium.Env, got SyncVectorEnv"):
        UCB1(gymnasium.make_vec("rlvr/BanditState-v0", num_envs=2))  # type: ignore[arg-type] # a likely mistake
    with pytest.raises(InvalidArgumentError, match="learns a table and trains no model"):
        agent_classes("ucb1")
    with pytest.raises(UnknownNameError, match="ucb1"):
        tabular_classes("ucb")


def test_the_command_trains_and_resumes_without_a_model(
    tmp_path: Path, rlvr: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "agents.commands.training.plot", lambda *_, **__: []
    )  # matplotlib takes longer than all the rest
    line = [
        "train",
        "ucb1",
        "--env",
        "Bandit",
        "--env-args",
        "arms=3",
        "--run-folder",
        str(tmp_path / "run"),
        "--loggers",
    ]
    code, said, _ = rlvr(*line, "--steps", "3", "--resume")  # no run is there yet
    assert code == 0
    assert "3 steps done" in said
    assert "continuing" not in said
    code, said, _ = rlvr(*line, "--steps", "5", "--resume")
    assert (code, "continuing after step 3" in said) == (0, True)
    config = json.loads((tmp_path / "run" / "config.json").read_text())
    assert config["environment"]["states"] == 3
    code, _, errors = rlvr(*line, "--steps", "6", "--resume", "--seed", "3")
    assert (code, "was started with other settings: config.seed was 0 and is now 3" in errors) == (2, True)
    other = ["train", "epsilon-greedy", *line[2:], "--steps", "6", "--resume"]
    code, _, errors = rlvr(*other)
    assert code == 2
    assert "was started with agent 'ucb1', and not 'epsilon-greedy': resume it with that one" in errors
    other[3] = "ContextualBandit"
    other[1] = "ucb1"
    code, _, errors = rlvr(*other)
    assert (code, "was started with env 'Bandit', and not 'ContextualBandit'" in errors) == (2, True)
    (tmp_path / "run" / "config.json").unlink()
    code, _, errors = rlvr(*line, "--steps", "6", "--resume")
    assert (code, "expected a folder with config.json" in errors) == (2, True)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (["ucb1", "--env", "GSM8K"], "no numbered states for a table or a perceptron: choose one of GridWorld, Maze,"),
        (["ucb1", "--env", "Bandit", "--env-args", "pulls=3"], "an episode of Bandit goes on after it: set pulls=1,"),
        (["ucb1", "--env", "Bandit", "--env-args", "arm=3"], "arm"),
        (["thompson", "--env", "Bandit", "--noise", "2"], "Rewards of 0 and 1 have none"),
        (["ucb1", "--env", "Bandit", "--env-args", "noise=5"], "noise=5 has no effect on rewards 0 and 1"),
        (["ucb1", "--env", "Bandit", "--env-args", "means=(0.2,0.8)", "arms=5"], "means has 2 arms and arms is 5"),
        (["ucb1", "--env", "Bandit", "--env-args", "means=(0.2,0.8)", "instance=3"], "instance=3 has no effect"),
        (["q-learning", "--env", "Bandit", "--env-args", "pulls=9", "max_steps=3"], "max_steps must be at least 9"),
    ],
)
def test_the_command_names_what_is_wrong(line: list[str], said: str, tmp_path: Path, rlvr: Command) -> None:
    code, _, errors = rlvr("train", *line, "--run-folder", tmp_path / "run", "--loggers")
    assert (code, said in errors) == (2, True)


@pytest.mark.parametrize("numbers", [{"steps": -1}, {"steps": 2.5}, {"steps": 1, "tokens": -3}])
def test_numbers_of_learning_are_checked(numbers: dict[str, Any]) -> None:
    env = bandit()
    with pytest.raises(InvalidArgumentError, match="a whole number of at least 0, got"):
        UCB1(env).learn(env, **numbers)


def test_an_evaluation_is_recorded_and_resumed(tmp_path: Path) -> None:
    env = bandit(means=(0.0, 1.0))
    agent = UCB1(env)
    agent.learn(env, steps=3)
    whole = agent.evaluate(env, problems=4, seed=7)
    with EvaluationRecord(tmp_path / "out") as record:
        agent.evaluate(env, problems=2, seed=7, record=record)
    with EvaluationRecord(tmp_path / "out", resume=True) as record:
        seen: list[int] = []
        resumed = agent.evaluate(env, problems=4, seed=7, record=record, on_sample=lambda row: seen.append(row.problem))
    assert (resumed, seen) == (whole, [0, 1, 2, 3])
    agent.learn(env, steps=4)
    with (
        EvaluationRecord(tmp_path / "out", resume=True) as record,
        pytest.raises(InvalidArgumentError, match="tables"),
    ):
        agent.evaluate(env, problems=4, seed=7, record=record)
