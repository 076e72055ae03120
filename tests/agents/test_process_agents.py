"""Agents that train a model learn in bandits, at a cliff, on ice and at cards as anywhere else."""

from __future__ import annotations

from typing import Any

import gymnasium
import pytest

pytest.importorskip("torch")

from agents import AGENTS
from tests.agents.agent_cases import make_agent, playing_policy

ENVIRONMENTS: dict[str, dict[str, Any]] = {
    "Bandit": {},
    "ContextualBandit": {},
    "CliffWalk": {"max_new_tokens": 5},
    "FrozenLake": {"max_new_tokens": 5},
    "BlackjackHand": {},
}
QUICK = {
    ("Bandit", "reinforce"),
    ("ContextualBandit", "grpo"),
    ("CliffWalk", "ppo"),
    ("FrozenLake", "a2c"),
    ("BlackjackHand", "remax"),
}
LOSING = ("CliffWalk", "BlackjackHand")
CASES = [
    (env, name) for env in ENVIRONMENTS for name in AGENTS if name != "gdpo" and not (name == "maxrl" and env in LOSING)
]
"""GDPO needs several rewards, and MaxRL none below 0."""


@pytest.mark.parametrize(
    ("env_name", "name"), [pytest.param(*case, marks=() if case in QUICK else pytest.mark.long) for case in CASES]
)
def test_every_agent_runs_in_every_environment(env_name: str, name: str) -> None:
    env = gymnasium.make_vec(f"rlvr/{env_name}-v0", num_envs=8, copy=False, **ENVIRONMENTS[env_name])
    agent = make_agent(name, playing_policy(env), problems_per_step=2)
    agent.learn(env, steps=1)
    assert agent.steps == 1
    assert agent.evaluate(env, problems=1, samples=4).verifier_errors == 0
