"""Completions that training writes down: what a line holds, and which are written."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet
import pytest
import torch

from agents import CausalLMPolicy, Episode, Reinforce, ReinforceConfig, Run, rollout, tiny_model
from agents.runs.rollout_log import ROLLOUT_COLUMNS, ROLLOUTS, RolloutLog
from tests.envs.helpers import PROBLEMS, vector_env
from verifiers import InvalidArgumentError


def rows_of(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / ROLLOUTS).read_text().splitlines()]


def small_model() -> Any:
    return tiny_model(257, max_tokens=64, layers=1, hidden_size=16, heads=2, intermediate_size=32)


def train(folder: Path, steps: int, per_step: int, group_size: int = 1) -> list[list[Any]]:
    """Train by REINFORCE without a baseline, whose advantage is the score, and give the episodes of each step."""
    env = vector_env(4)
    config = ReinforceConfig(problems_per_step=6, group_size=group_size, baseline="none", gamma=1.0)
    agent = Reinforce(CausalLMPolicy(small_model()), config)
    played: list[list[Any]] = []
    sample = agent.sample_batch

    def sampled(*arguments: Any) -> Any:
        trajectories, rounds = sample(*arguments)
        played.append(trajectories)
        return trajectories, rounds

    agent.sample_batch = sampled  # type: ignore[method-assign]
    with Run(folder, {}, loggers=(), log_rollouts=per_step) as run:
        agent.learn(env, steps=steps, run=run)
    return played


def test_a_line_holds_the_episode_with_its_advantages(tmp_path: Path) -> None:
    played = train(tmp_path, steps=2, per_step=6)
    rows = rows_of(tmp_path)
    assert [(row["step"], row["episode"]) for row in rows] == [(step, index) for step in (1, 2) for index in range(6)]
    for row in rows:
        assert tuple(row) == ROLLOUT_COLUMNS
        trajectory = played[row["step"] - 1][row["episode"]]
        own = trajectory.policy_mask
        written = (row["completion"], row["group"], row["tokens"])
        assert written == (trajectory.completion, trajectory.group, int(own.sum()))
        assert row["prompt"] == PROBLEMS[row["problem"]].prompt
        assert row["problem_id"] == PROBLEMS[row["problem"]].id
        assert row["log_probabilities"] == [float(value) for value in trajectory.logprobs[own]]
        assert row["token_scores"] == trajectory.rewards[own].tolist()
        np.testing.assert_allclose(row["token_advantages"], trajectory.score, atol=1e-12)
        assert row["advantage"] == pytest.approx(trajectory.score)
        assert len(row["token_texts"]) == row["tokens"]
    first = rows[:6]  # is sampled again from its seeds
    episodes = [Episode(row["problem"], 0, row["seed"]) for row in reversed(first)]
    again = rollout(vector_env(2), CausalLMPolicy(small_model()), episodes)
    assert [one.completion for one in again] == [row["completion"] for row in reversed(first)]
    assert len({one.completion for one in again}) > 3
    assert [row["seed"] for row in first] == [trajectory.seed for trajectory in played[0]]
    table = pyarrow.parquet.read_table(tmp_path / "rollouts.parquet").to_pylist()
    for name in ("step", "episode", "completion", "advantage", "token_texts", "score", "seed", "token_advantages"):
        assert [row[name] for row in table] == [row[name] for row in rows], name


@pytest.mark.parametrize(
    ("per_step", "size", "groups"),
    [
        (0, 1, None),
        (1, 1, [0]),
        (3, 1, [0, 2, 5]),
        (2, 3, [0, 0]),
        (5, 3, [0, 0, 0, 5, 5]),
        (8, 3, [0, 0, 0, 2, 2, 2, 5, 5]),
        (40, 3, sorted([*range(6)] * 3)),
    ],
)
def test_groups_are_written_whole_as_far_as_the_number_goes(
    per_step: int, size: int, groups: list[int] | None, tmp_path: Path
) -> None:
    """Of six groups: so many as the number needs, evenly spaced, and what is left of the last one."""
    train(tmp_path, steps=1, per_step=per_step, group_size=size)
    assert (tmp_path / ROLLOUTS).exists() == (groups is not None)
    assert groups is None or [row["group"] for row in rows_of(tmp_path)] == groups


def test_later_steps_and_half_a_line_go_when_a_run_is_resumed(tmp_path: Path) -> None:
    path = tmp_path / ROLLOUTS
    path.write_text('{"step": 1}\n{"step": 1}\n{"step": 2}\n{"step": 3}\n{"st')
    log = RolloutLog(tmp_path, 1)
    log.keep_until(2)
    assert path.read_text() == '{"step": 1}\n{"step": 1}\n{"step": 2}\n'
    log.keep_until(0)
    log.close()
    assert not path.exists()  # a log without a line leaves no file
    with pytest.raises(InvalidArgumentError, match="per_step must be at least 1, got -1"):
        RolloutLog(tmp_path, -1)


def test_tokens_without_a_tokenizer_have_no_texts(tmp_path: Path) -> None:
    (played,) = train(tmp_path / "run", steps=1, per_step=1)
    log = RolloutLog(tmp_path, 1)
    log.write(1, played, torch.zeros(len(played), 64, dtype=torch.float64), None, None)
    (row,) = rows_of(tmp_path)
    assert (row["token_texts"], row["prompt"], row["advantage"]) == (None, None, 0.0)
    log.close()
