"""One episode of an environment without tokens, step by step: observations, actions and rewards."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray
from rich.console import Console

import rlvr_envs
from agents.commands.playing.person import read_line
from agents.commands.sections import print_section
from agents.console.counting import counted
from agents.console.printable import printable
from verifiers import InvalidArgumentError

Chooser = Callable[[Any], tuple[int, str] | None]
"""Chooses an action (numbered from 0) for an observation, with a note to show beside the action; None leaves the episode."""


def play_numbers(
    env: gymnasium.Env[Any, Any], choose: Chooser, console: Console, *, seed: int, problem: int | None
) -> None:
    """Play an episode, and print each step of it."""
    check_has_problem(env, problem)
    observation, info = env.reset(seed=seed, options=None if problem is None else {"problem": problem})
    facts = f"problem {info['problem_index']}, seed {seed}" if "problem_index" in info else f"seed {seed}"
    print_section(console, f"{info.get('problem_id') or type(env.unwrapped).__name__}, {facts}", "")
    total, regret, steps, over, truncated = 0.0, 0.0, 0, False, False
    while not over:
        console.print(f"{steps:5}  {described(env, observation)}")
        chosen = choose(observation)
        if chosen is None:
            console.print(f"left after {counted(steps, 'action')}")
            return
        action, note = chosen
        observation, reward, terminated, truncated, info = env.step(action + first_action(env))
        total, steps, over = total + float(reward), steps + 1, terminated or truncated
        regret += info.get("regret", 0.0)
        text = f"       action {label(env, action)}{note}, reward {float(reward):g}"
        console.print(text)
    end = "truncated" if truncated else "terminated"
    lost = f", regret {regret:g}" if "regret" in info else ""
    print_section(console, f"{end} after {counted(steps, 'action')}", f"return {total:g}{lost}")


def check_has_problem(env: gymnasium.Env[Any, Any], problem: int | None) -> None:
    """Refuse the index of a problem if the environment has no numbered problems."""
    if problem is not None and not hasattr(env.unwrapped, "num_problems"):
        raise InvalidArgumentError(
            f"{type(env.unwrapped).__name__} draws its problems and has no --problem: choose one by --seed"
        )


def first_action(env: gymnasium.Env[Any, Any]) -> int:
    """The number of an environment's first action."""
    space = env.action_space
    if not isinstance(space, spaces.Discrete):
        raise InvalidArgumentError(
            f"only discrete actions can be played, and {type(env.unwrapped).__name__} has {space}"
        )
    return int(space.start)


def label(env: gymnasium.Env[Any, Any], action: int) -> str:
    """An action's number, and its character if the environment has characters for actions."""
    world = env.unwrapped
    name = f" ({world.process.actions[action]})" if isinstance(world, rlvr_envs.StateEnv) else ""
    return f"{action + first_action(env)}{name}"


def described(env: gymnasium.Env[Any, Any], observation: Any) -> str:
    """An observation as text: a state's number and name, or the numbers of an array."""
    world = env.unwrapped
    if isinstance(world, rlvr_envs.StateEnv):
        name = world.process.states[int(observation)]
        return printable(f"state {int(observation)}" + (f" ({name})" if name else ""))
    if isinstance(observation, np.ndarray):
        return " ".join(f"{number:.4g}" for number in observation.ravel())
    return printable(str(observation))


def person(env: gymnasium.Env[Any, Any], console: Console) -> Chooser:
    """Make a chooser that reads the number of each action from a person; the end of input leaves the episode."""
    first, count = first_action(env), int(env.action_space.n)  # type: ignore[attr-defined] # Discrete

    def choose(observation: Any) -> tuple[int, str] | None:
        while (line := read_line()) is not None:
            if line.strip().isdecimal() and first <= int(line) < first + count:
                return int(line) - first, ""
            console.print(f"type the number of an action, from {first} to {first + count - 1}")
        return None

    return choose


def top_values(env: gymnasium.Env[Any, Any], values: NDArray[Any], top: int, name: str) -> str:
    """A note with the highest of the numbers f[a], one for each action; empty if `top` is 0."""
    best = np.argsort(-values, kind="stable")[:top]
    shown = ", ".join(f"{label(env, int(action))} {values[action]:.3f}" for action in best)
    return f" of {name} {shown}" if top else ""
