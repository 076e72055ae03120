"""Find environments by name: an id, or a name in a user's module or in an installed package."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, cast

import gymnasium

from rlvr_envs.envs import StateEnv, TaskEnv
from rlvr_envs.mixture import MixtureEnv
from rlvr_envs.registration import ENVIRONMENTS, STATE_ENVIRONMENTS, environment_id, plugged_in, short_name
from rlvr_envs.tasks import WITH_STATES
from rlvr_envs.token_env import TokenEnv
from verifiers import InvalidArgumentError, import_attribute


def find_environment(name: str) -> Callable[..., gymnasium.Env[Any, Any]]:
    """Import the environment of a name.

    Args:
        name: An id, such as `rlvr/GSM8K-v0` or its short form `GSM8K`, or Gymnasium's CartPole-v1; `module:attribute`, where
            the module may also be in the current folder; or an entry point of the group `"rlvr_envs.environments"`. Names
            separated by commas form a mixture; see `rlvr_envs.mix`.

    Raises:
        UnknownNameError: If there is no such environment; the message suggests the nearest name.
        InvalidArgumentError: If a module can't be imported, or the attribute can't be called.
    """
    full = environment_id(name)
    if "," in full:
        parts = {short_name(part): environment_class(part) for part in full.split(",")}
        if len(parts) < full.count(",") + 1:
            raise InvalidArgumentError(f"two environments of the mixture {full!r} have one name: rename one of them")
        return type("MixtureEnv", (MixtureEnv,), {"parts": parts, "__doc__": MixtureEnv.__doc__})
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
        InvalidArgumentError: If the environment can't be made because a package is missing or an argument is unknown.
    """
    try:
        return gymnasium.make(env_id, disable_env_checker=True, **arguments)
    except (gymnasium.error.Error, TypeError, ValueError) as error:
        raise InvalidArgumentError(
            f"Gymnasium can't make {env_id!r} with the arguments {arguments}: {error}"
        ) from error


def state_environment(name: str) -> Callable[..., gymnasium.Env[Any, Any]]:
    """Import the plain environment of a name.

    For the name of a token environment, such as `Maze`, import the variant with numbered states.

    Args:
        name: As for `find_environment`.

    Raises:
        UnknownNameError: If there is no such environment; the message suggests the nearest name.
        InvalidArgumentError: If a token environment has no variant with numbered states, or as for `find_environment`.
    """
    found = find_environment(name)
    cls: object = found
    if not (isinstance(cls, type) and issubclass(cls, TokenEnv)):
        return found
    short = cls.__name__.removesuffix("Env")
    if short in WITH_STATES:
        return find_environment(f"{short}State")
    raise InvalidArgumentError(
        f"the environment {name!r} has tokens, which only a language model reads, but no numbered states for a table or a "
        f"perceptron: choose one of {', '.join(WITH_STATES)}, or a language model"
    )


def environment_class(name: str) -> type[TaskEnv]:
    """Import the class of an environment by an id or any other name that `find_environment` accepts.

    Raises:
        UnknownNameError: If there is no such environment; the message suggests the nearest name.
        InvalidArgumentError: If the environment is not a subclass of `TaskEnv`.
    """
    cls = find_environment(name)
    if (
        isinstance(cls, type)
        and issubclass(cls, StateEnv)
        and f"rlvr/{cls.__name__.removesuffix('Env')}-v0" in STATE_ENVIRONMENTS
    ):
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
    if not issubclass(cls, MixtureEnv) and not hasattr(cls, "task"):
        raise InvalidArgumentError(
            f"the environment {name!r} is a TaskEnv without `task`: set it to a TaskSpec, as docs/plugging-in.md shows"
        )
    return cls
