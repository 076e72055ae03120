"""The ids of the environments in Gymnasium, their short names, and the other names of environments."""

from __future__ import annotations

import contextlib
import difflib
import functools
from collections.abc import Callable, Iterable
from importlib.metadata import entry_points
from typing import Any, cast

import gymnasium

from rlvr_envs.envs import TaskEnv
from rlvr_envs.tasks import CLASSES, STATE_CLASSES
from rlvr_envs.token_env import TokenEnv
from verifiers import InvalidArgumentError, import_attribute, is_attribute_path, unknown_name

ENTRY_POINT_GROUP = "rlvr_envs.environments"


def _locations(classes: Iterable[type[gymnasium.Env[Any, Any]]]) -> dict[str, str]:
    return {f"rlvr/{cls.__name__.removesuffix('Env')}-v0": f"{cls.__module__}:{cls.__name__}" for cls in classes}


ENVIRONMENTS = _locations(CLASSES)
"""Every id of a token environment, with the location of its class."""

STATE_ENVIRONMENTS = _locations(STATE_CLASSES)
"""Every id of a plain environment with numbered states, with the location of its class."""


def plugged_in() -> dict[str, str]:
    """The environments of installed packages: the target of each entry point of the group `"rlvr_envs.environments"`."""
    return {point.name: f"{point.module}:{point.attr}" for point in entry_points(group=ENTRY_POINT_GROUP)}


def register_environments() -> None:
    """Register every id, and those of installed packages; doing it again changes nothing."""
    for env_id, path in ENVIRONMENTS.items():
        _register(env_id, path, path.partition(":")[2])
    for env_id, path in STATE_ENVIRONMENTS.items():
        if env_id not in gymnasium.registry:
            gymnasium.register(env_id, entry_point=path)
    for name, path in plugged_in().items():
        with contextlib.suppress(gymnasium.error.Error):  # a name that is no id there is still one here
            _register(name, path, name)


def _register(env_id: str, path: str, vectorized: str) -> None:
    if env_id not in gymnasium.registry:
        # Gymnasium's checking wrappers would hide `step_many`; the environments check order and tokens themselves.
        gymnasium.register(
            env_id,
            entry_point=path,
            vector_entry_point=f"rlvr_envs.vectorized:{vectorized}",
            order_enforce=False,
            disable_env_checker=True,
        )


def environment_id(name: str) -> str:
    """Complete the name of an environment: `GSM8K` means `rlvr/GSM8K-v0`; any other name is returned unchanged.

    Raises:
        UnknownNameError: If it is neither an id, such as CartPole-v1, nor `module:attribute` nor an entry point of the group
            `"rlvr_envs.environments"`; the message offers the nearest.
    """
    own = ENVIRONMENTS | STATE_ENVIRONMENTS
    full = name if name in own else f"rlvr/{name}-v0"
    if full in own:
        return full
    points = plugged_in()
    if name in points or is_attribute_path(name) or name in gymnasium.registry:
        return name
    others = difflib.get_close_matches(name, gymnasium.registry, cutoff=0.8)
    # Names are compared in the form that was typed, so that "rlvr/" and "-v0" don't decide which is the nearest.
    known = own if "/" in name else [short.removeprefix("rlvr/").removesuffix("-v0") for short in own]
    raise unknown_name("environment", name, [*known, *points, *others])


def find_environment(name: str) -> Callable[..., gymnasium.Env[Any, Any]]:
    """Import the environment of a name: a subclass of `TaskEnv`, or a function or class that makes a Gymnasium environment.

    Args:
        name: An id, `GSM8K` for short, or one of Gymnasium's own, such as CartPole-v1; `module:attribute`, where the module
            may also be in the current folder; or an entry point of the group `"rlvr_envs.environments"`.

    Raises:
        UnknownNameError: If there is no such environment; the message offers the nearest.
        InvalidArgumentError: If a module can't be imported, or the attribute can't be called.
    """
    full = environment_id(name)
    path = (ENVIRONMENTS | STATE_ENVIRONMENTS).get(full) or plugged_in().get(full)
    if path is None and full in gymnasium.registry:
        return functools.partial(_make, full)
    path = path or full
    environment = import_attribute(path, "environment")
    if not callable(environment):
        raise InvalidArgumentError(
            f"the environment {name!r} is {environment!r}; expected a class of environments or a function"
        )
    return cast("Callable[..., gymnasium.Env[Any, Any]]", environment)


def _make(env_id: str, **arguments: Any) -> gymnasium.Env[Any, Any]:
    """Make one of Gymnasium's own environments.

    Raises:
        InvalidArgumentError: If it can't be made, since a package is missing or an argument is unknown.
    """
    try:
        return gymnasium.make(env_id, disable_env_checker=True, **arguments)
    except (gymnasium.error.Error, TypeError, ValueError) as error:
        raise InvalidArgumentError(
            f"Gymnasium can't make {env_id!r} with the arguments {arguments}: {error}"
        ) from error


def state_environment(name: str) -> Callable[..., gymnasium.Env[Any, Any]]:
    """Import the plain environment of a name: that with numbered states for a token environment, such as `Maze`.

    Args:
        name: As for `find_environment`.

    Raises:
        UnknownNameError: If there is no such environment; the message offers the nearest.
        InvalidArgumentError: If a token environment has no numbered states, or as for `find_environment`.
    """
    found = find_environment(name)
    cls: object = found
    if not (isinstance(cls, type) and issubclass(cls, TokenEnv)):
        return found
    for state_class in STATE_CLASSES:
        if state_class.__name__ == f"{cls.__name__.removesuffix('Env')}StateEnv":
            return state_class
    raise InvalidArgumentError(
        f"the environment {name!r} has tokens, which only a language model reads, and no numbered states for a table or a "
        f"perceptron: choose one of {', '.join(cls.__name__.removesuffix('StateEnv') for cls in STATE_CLASSES)}, or a "
        "language model"
    )


def environment_class(name: str) -> type[TaskEnv]:
    """Import the class of an id, or one of your own by a name as for `find_environment`.

    Raises:
        UnknownNameError: If there is no such environment; the message offers the nearest.
        InvalidArgumentError: If it is not a subclass of `TaskEnv`.
    """
    cls = find_environment(name)
    if cls in STATE_CLASSES:
        tokens = cls.__name__.removesuffix("StateEnv")
        raise InvalidArgumentError(
            f"the environment {name!r} has numbered states, which a table or a perceptron reads, and here one with tokens is "
            f"needed, for a language model: name {tokens}"
        )
    if isinstance(cls, functools.partial):
        raise InvalidArgumentError(
            f"the environment {name!r} is one of Gymnasium's, without a data set and a verifier, which are needed here: name "
            "one of rlvr_envs, such as Addition"
        )
    if not (isinstance(cls, type) and issubclass(cls, TaskEnv)):
        raise InvalidArgumentError(
            f"the environment {name!r} is {cls!r}; expected a subclass of rlvr_envs.TaskEnv, which knows its data set"
        )
    if not hasattr(cls, "task"):
        raise InvalidArgumentError(
            f"the environment {name!r} is a TaskEnv without `task`: set it to a TaskSpec, as docs/plugging-in.md shows"
        )
    return cls
