"""Agents and estimators against exact values, in worlds where dynamic programming knows them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import gymnasium
import numpy as np
import pytest
import torch

from agents import (
    AGENTS,
    A2C,
    A2CConfig,
    Action,
    Agent,
    Batch,
    CausalLMPolicy,
    CriticConfig,
    Episode,
    LearnerConfig,
    agent_classes,
    make_batch,
    rollout,
    tiny_model,
)
from agents.advantages import gae, n_step, returns_to_go
from agents.passes import state_values
from rlvr_envs import Observation, exact
from rlvr_envs.worlds import MOVES, Cell, Walk, WalkVerifier, World, every_episode, move_tokens, prefix_values, world_of
from verifiers import Problem

MAZE = "rlvr/Maze-v0"
GRID = "rlvr/GridWorld-v0"


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """Models this small gain nothing from a second thread."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


# Every agent learns the maze from random weights


def at_the_goal(completion: str, problem: Problem) -> bool:
    return WalkVerifier()(completion, problem).score > 0


def out_of_the_trap(completion: str, problem: Problem) -> bool:
    return WalkVerifier()(completion, problem).score >= 0


TWO_PARTS = {
    "verifier": (
        "weighted_sum",
        {"parts": {"goal": at_the_goal, "safe": out_of_the_trap}, "weights": {"goal": 10.0, "safe": 10.0}},
    )
}
"""The maze's return and 10 more, as two rewards: 20 at the goal, 0 in the trap, 10 elsewhere."""


@dataclass(frozen=True)
class Lesson:
    """How an agent is taught the maze: each step takes 32 episodes, as one problem's groups of 8 where it has groups."""

    steps: int = 60
    learning_rate: float = 1e-2
    episodes: int = 32
    settings: Mapping[str, Any] = dataclasses_field(default_factory=dict)
    training: Mapping[str, Any] = dataclasses_field(default_factory=dict)
    """Arguments of the environment that it learns in."""
