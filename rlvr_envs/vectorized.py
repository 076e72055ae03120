"""How Gymnasium finds `make_vec` of each class of `rlvr_envs.tasks`: as `rlvr_envs.vectorized:GSM8KEnv`.

The environments of installed packages have the names of their entry points here.

An `EnvSpec` that can be written as JSON names what builds its vector environment by a module and one name in it, where the
class method `GSM8KEnv.make_vec` would be two.
"""

from __future__ import annotations

from collections.abc import Callable

from rlvr_envs.registration import environment_class, plugged_in
from rlvr_envs.tasks import CLASSES
from rlvr_envs.vector_env import TokenVectorEnv


def __getattr__(name: str) -> Callable[..., TokenVectorEnv]:
    for cls in CLASSES:
        if cls.__name__ == name:
            return cls.make_vec
    if name in plugged_in():
        return environment_class(name).make_vec
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
