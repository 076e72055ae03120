"""The names under which Gymnasium finds each `make_vec` of `rlvr_envs.tasks`, such as `rlvr_envs.vectorized:GSM8KEnv`.

In this module, the environments of installed packages have the names of their entry points.

An `EnvSpec` that can be written as JSON refers to the builder of its vector environment by a module and a single name. The
class method `GSM8KEnv.make_vec` would be two names.
"""

from __future__ import annotations

from collections.abc import Callable

from rlvr_envs.finding import environment_class
from rlvr_envs.registration import ENVIRONMENTS, plugged_in
from rlvr_envs.vector_env import TokenVectorEnv


def __getattr__(name: str) -> Callable[..., TokenVectorEnv]:
    env_id = f"rlvr/{name.removesuffix('Env')}-v0"
    if env_id in ENVIRONMENTS:
        return environment_class(env_id).make_vec
    if name in plugged_in():
        return environment_class(name).make_vec
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
