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

GENERATED = ("Addition", "Sort", "GridWorld", "Maze", "Countdown", "Text")


@pytest.mark.parametrize("name", GENERATED)
def test_check_env_finds_nothing_to_warn_of(name: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(gymnasium.make(f"rlvr/{name}-v0"))


def seven_env() -> gymnasium.Env[Any, Any]:
    return gymnasium.make(
        "rlvr/Addition-v0", tokenizer="char", max_new_tokens=2, verifier=lambda said, problem: said.count("7") / 2
    )


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
