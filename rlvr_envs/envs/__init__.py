"""One file for each registered id, and the registration itself."""

from rlvr_envs.registration import (
    ENVIRONMENTS,
    environment_class,
    environment_id,
    find_environment,
    register_environments,
)

__all__ = ["ENVIRONMENTS", "environment_class", "environment_id", "find_environment", "register_environments"]
