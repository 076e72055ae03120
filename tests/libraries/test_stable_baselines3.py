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


def test_ppo_plays_worlds_by_their_four_moves() -> None:
    model = PPO("MultiInputPolicy", four_moves(), n_steps=64, batch_size=32, n_epochs=1, seed=0, device="cpu")
    model.learn(128)
    mean, _ = evaluate_policy(model, four_moves(), n_eval_episodes=10, deterministic=False, warn=False)
    assert -0.04 <= float(mean) <= 0.99  # four moves without the goal, and one that reaches it


def sevens(completion: str, problem: object) -> float:
    return completion.count("7") / 2


def seven_env() -> gymnasium.Env[Any, Any]:
    return gymnasium.make("rlvr/Addition-v0", tokenizer="char", max_new_tokens=2, verifier=sevens)


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_ppo_learns_what_a_verifier_pays_for(seed: int) -> None:
    model = PPO(
        "MultiInputPolicy", seven_env(), n_steps=256, batch_size=64, learning_rate=3e-3, seed=seed, device="cpu"
    )
    before, _ = evaluate_policy(model, seven_env(), n_eval_episodes=100, deterministic=False, warn=False)
    model.learn(4096)
    after, _ = evaluate_policy(model, seven_env(), n_eval_episodes=100, deterministic=False, warn=False)
    assert float(before) < 0.25
    assert float(after) > 0.5


@pytest.mark.parametrize("name", ["Addition", "Sort"])
def test_a_multi_input_policy_plays_and_predicts(name: str) -> None:
    env = gymnasium.make(f"rlvr/{name}-v0")
    model = PPO("MultiInputPolicy", env, n_steps=16, batch_size=8, n_epochs=1, seed=0, device="cpu")
    model.learn(32)
    observation, _ = env.reset(seed=0)
    action, _ = model.predict(observation)
    assert env.action_space.contains(action)
