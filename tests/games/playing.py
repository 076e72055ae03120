"""Plays games in their environments."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import rlvr_envs

Player = Callable[[list[tuple[str, str]]], str]
"""Says the next move after pairs of moves and answers."""


def played(env: Any, problem: int, player: Player) -> tuple[float, bool, Any]:
    """Play one episode; give its return, whether it terminated, and its verdict."""
    env.reset(options={"problem": problem})
    history: list[tuple[str, str]] = []
    earned = 0.0
    while True:
        move = player(history)
        tokens = [*env.tokenizer.encode(move), env.tokenizer.eos_token]
        observation, reward, terminated, truncated, info = env.step_many(tokens)
        earned += reward
        if terminated or truncated:
            return earned, terminated, info["verdict"]
        length = int(observation["length"][0])
        told = observation["tokens"][length - info["inserted"] : length]
        history.append((move, rlvr_envs.decode(env.tokenizer, told).strip()))
