"""Stable-Baselines3 checks the environments, and learns in one."""

from __future__ import annotations

import warnings
from typing import Any

import gymnasium
import pytest
from stable_baselines3 import PPO
from stable_baselines3.common.env_checker import check_env
from stable_baselines3.common.evaluation import evaluate_policy

import rlvr_envs  # noqa: F401 - registers the ids
from rlvr_envs.worlds.rules import move_tokens

GENERATED = ("Addition", "Sort", "GridWorld", "Maze", "Countdown", "Text")


@pytest.mark.parametrize("name", GENERATED)
def test_check_env_finds_nothing_to_warn_of(name: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(gymnasium.make(f"rlvr/{name}-v0"))


def four_moves() -> gymnasium.Env[Any, Any]:
    """GridWorld with the actions 0 to 3: SB3's policies know nothing of illegal tokens."""
    env = gymnasium.make("rlvr/GridWorld-v0", n=2)
    tokens = move_tokens(env.unwrapped.tokenizer)
    return gymnasium.wrappers.TransformAction(env, lambda move: tokens[move], gymnasium.spaces.Discrete(4))


def test_ppo_learns_to_walk() -> None:
    env = four_moves()
    model = PPO("MultiInputPolicy", env, n_steps=256, batch_size=64, learning_rate=3e-3, seed=0, device="cpu")
    before, _ = evaluate_policy(model, four_moves(), n_eval_episodes=50, deterministic=False, warn=False)
    model.learn(4000)
    after, _ = evaluate_policy(model, four_moves(), n_eval_episodes=50, deterministic=False, warn=False)
    assert after > float(before) + 0.15


@pytest.mark.parametrize("name", ["Addition", "Sort"])
def test_a_multi_input_policy_plays_and_predicts(name: str) -> None:
    env = gymnasium.make(f"rlvr/{name}-v0")
    model = PPO("MultiInputPolicy", env, n_steps=16, batch_size=8, n_epochs=1, seed=0, device="cpu")
    model.learn(32)
    observation, _ = env.reset(seed=0)
    action, _ = model.predict(observation)
    assert env.action_space.contains(action)
