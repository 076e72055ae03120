"""Registering the environments with Gymnasium, without importing them."""

from __future__ import annotations

import importlib

import gymnasium

from rlvr_envs.envs.task import TaskEnv
from verifiers import unknown_name

_CLASSES = (
    ("GSM8K", "gsm8k"),
    ("MATH", "math"),
    ("MATH500", "math500"),
    ("AIME24", "aime24"),
    ("AMC23", "amc23"),
    ("HumanEval", "humaneval"),
    ("MBPP", "mbpp"),
    ("Addition", "addition"),
    ("Arithmetic", "arithmetic"),
    ("Countdown", "countdown"),
    ("Sort", "sort"),
    ("Reverse", "reverse"),
    ("LinearEquation", "linear_equation"),
    ("Polynomial", "polynomial"),
    ("Function", "function"),
    ("GridWorld", "gridworld"),
    ("Maze", "maze"),
    ("Text", "text"),
)
ENVIRONMENTS = {f"rlvr/{name}-v0": f"rlvr_envs.envs.{module}:{name}Env" for name, module in _CLASSES}
"""Every id, and where its class is."""


def register_environments() -> None:
    """Register every id; doing it again changes nothing."""
    for env_id, path in ENVIRONMENTS.items():
        if env_id not in gymnasium.registry:
            # Gymnasium's checking wrappers would hide `step_many`; the environments check order and tokens themselves.
            gymnasium.register(
                env_id,
                entry_point=path,
                vector_entry_point=f"{path.partition(':')[0]}:make_vec",
                order_enforce=False,
                disable_env_checker=True,
            )


def environment_class(env_id: str) -> type[TaskEnv]:
    """Import the class of an id.

    Raises:
        UnknownNameError: If there is no such id; the message offers the nearest.
    """
    if env_id not in ENVIRONMENTS:
        raise unknown_name("environment", env_id, ENVIRONMENTS)
    module, _, name = ENVIRONMENTS[env_id].partition(":")
    found: type[TaskEnv] = getattr(importlib.import_module(module), name)
    return found
