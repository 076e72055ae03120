"""Register the environments' ids with Gymnasium, and complete short names. This module loads no environment."""

from __future__ import annotations

import contextlib
import difflib
from importlib.metadata import entry_points

import gymnasium

from rlvr_envs.tasks import BENCHMARKS, MADE, WITH_STATES
from verifiers import InvalidArgumentError, is_attribute_path, unknown_name

ENTRY_POINT_GROUP = "rlvr_envs.environments"


_MODULES = dict.fromkeys(BENCHMARKS, "benchmarks") | MADE
ENVIRONMENTS = {f"rlvr/{name}-v0": f"rlvr_envs.tasks.{module}:{name}Env" for name, module in _MODULES.items()}
"""Every id of a token environment, with the location of the environment's class."""

STATE_ENVIRONMENTS = {f"rlvr/{name}State-v0": f"rlvr_envs.tasks.{MADE[name]}:{name}StateEnv" for name in WITH_STATES}
"""Every id of a plain environment with numbered states, with the location of the environment's class."""


def short_name(name: str) -> str:
    """The name of an environment in metrics and reports, such as `GSM8K` for `rlvr/GSM8K-v0`."""
    return name.rpartition("/")[2].rpartition(":")[2].removesuffix("-v0")


def plugged_in() -> dict[str, str]:
    """The environments of installed packages, as the target of each entry point of the group `"rlvr_envs.environments"`."""
    return {point.name: f"{point.module}:{point.attr}" for point in entry_points(group=ENTRY_POINT_GROUP)}


def register_environments() -> None:
    """Register every id, including the ids of installed packages; a second call changes nothing."""
    for env_id, path in ENVIRONMENTS.items():
        _register(env_id, path, path.partition(":")[2])
    for env_id, path in STATE_ENVIRONMENTS.items():
        if env_id not in gymnasium.registry:
            gymnasium.register(env_id, entry_point=path)
    for name, path in plugged_in().items():
        with contextlib.suppress(gymnasium.error.Error):  # a name that Gymnasium rejects as an id is valid here
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

    Names separated by commas form a mixture; each of them is completed.

    Raises:
        InvalidArgumentError: If a mixture names the same environment twice.
        UnknownNameError: If the name is neither an id, such as CartPole-v1, nor `module:attribute`, nor an entry point of the
            group `"rlvr_envs.environments"`; the message suggests the nearest name.
    """
    if "," in name:
        parts = [environment_id(part) for part in name.split(",")]
        if len(set(parts)) < len(parts):
            raise InvalidArgumentError(f"{name!r} names one environment twice: give each once")
        return ",".join(parts)
    own = ENVIRONMENTS | STATE_ENVIRONMENTS
    full = name if name in own else f"rlvr/{name}-v0"
    if full in own:
        return full
    points = plugged_in()
    if name in points or is_attribute_path(name) or name in gymnasium.registry:
        return name
    others = difflib.get_close_matches(name, gymnasium.registry, cutoff=0.8)
    # Compare names with or without "rlvr/" and "-v0", as the user typed them: these parts must not decide which name is
    # nearest.
    known = own if "/" in name else [short.removeprefix("rlvr/").removesuffix("-v0") for short in own]
    raise unknown_name("environment", name, [*known, *points, *others])
