"""What several commands share."""

from __future__ import annotations

import ast
import contextlib
import warnings
from collections.abc import Iterator, Sequence
from typing import Any

import gymnasium
from rich.console import Console

from rlvr_envs import ENVIRONMENTS, TokenVectorEnv
from verifiers import InvalidArgumentError, unknown_name


def env_id(name: str) -> str:
    """Complete an environment's name: `GSM8K` or `rlvr/GSM8K-v0`.

    Raises:
        UnknownNameError: If there is no such environment; the message offers the nearest.
    """
    full = name if name in ENVIRONMENTS else f"rlvr/{name}-v0"
    if full not in ENVIRONMENTS:
        raise unknown_name("environment", full if "/" not in name else name, ENVIRONMENTS)
    return full


def env_arguments(pairs: Sequence[str]) -> dict[str, Any]:
    """The arguments of an environment; see `named_arguments`."""
    return named_arguments(pairs, "an environment")


def named_arguments(pairs: Sequence[str], whose: str) -> dict[str, Any]:
    """Read `name=value` pairs; a value that is a Python literal is read as one, anything else as text.

    Raises:
        InvalidArgumentError: If a pair has no `=`.
    """
    arguments: dict[str, Any] = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals:
            raise InvalidArgumentError(f"{whose} argument is name=value, such as digits=3, got {pair!r}")
        try:
            arguments[name] = ast.literal_eval(value)
        except (ValueError, SyntaxError):
            arguments[name] = value
    return arguments


def make_vec(name: str, num_envs: int, arguments: dict[str, Any]) -> TokenVectorEnv:
    """Build the native vector environment of an id, without copies of the observation buffers."""
    taken = arguments.keys() & {"num_envs", "copy"}
    if taken:
        raise InvalidArgumentError(f"{sorted(taken)} can't be environment arguments: num_envs is an option of its own")
    env = gymnasium.make_vec(env_id(name), num_envs=num_envs, copy=False, **arguments)
    assert isinstance(env, TokenVectorEnv)
    return env


@contextlib.contextmanager
def shown_warnings() -> Iterator[None]:
    """While the block runs, show a warning to the user by its text alone, on standard error."""
    plainly = warnings.showwarning

    def show(message: Warning | str, category: type[Warning], *where: Any, **more: Any) -> None:
        if category is UserWarning:
            Console(stderr=True).print(f"warning: {message}", markup=False, highlight=False, soft_wrap=True)
        else:
            plainly(message, category, *where, **more)

    with warnings.catch_warnings():
        warnings.showwarning = show
        yield
