"""The command `rlvr envs`."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from typing import Annotated, cast

import tyro
from rich.box import SIMPLE
from rich.console import Console
from rich.table import Table

import rlvr_envs


@dataclass(frozen=True)
class Envs:
    """List the environments, with the sizes of their splits and the sources of their data."""

    name: Annotated[str | None, tyro.conf.Positional] = None
    """Environment to describe in full."""

    def run(self, console: Console) -> int:
        """Print the list, or the description of one environment."""
        if self.name is not None:
            console.print(description(_described(self.name)))
            return 0
        table = Table(box=SIMPLE, padding=(0, 1, 0, 0), pad_edge=False)
        for column in ("id", "verifier"):
            table.add_column(column, no_wrap=True)
        for column in ("splits", "data"):
            table.add_column(column, overflow="fold")
        for env_id in rlvr_envs.ENVIRONMENTS:
            task = rlvr_envs.environment_class(env_id).task
            splits = "\n".join(f"{split} {size}" for split, size in task.sizes.items())
            table.add_row(env_id, task.verifier[0].rpartition(":")[2], splits, task.source)
        for env_id in rlvr_envs.STATE_ENVIRONMENTS:
            table.add_row(env_id, "-", "the same", "numbered states")
        console.print(table)
        console.print(
            "Data from the hub can also be read from a local folder: set RLVR_DATA_DIR. rlvr envs NAME describes one "
            "environment."
        )
        return 0


def _described(name: str) -> type[rlvr_envs.TaskEnv] | type[rlvr_envs.StateEnv]:
    """The environment class that a name denotes."""
    if rlvr_envs.environment_id(name) in rlvr_envs.STATE_ENVIRONMENTS:
        return cast("type[rlvr_envs.StateEnv]", rlvr_envs.state_environment(name))
    return rlvr_envs.environment_class(name)


def description(environment: type[rlvr_envs.TaskEnv] | type[rlvr_envs.StateEnv]) -> str:
    """The docstring of an environment, followed by the docstring of its base class, `TaskEnv` or `StateEnv`."""
    base = rlvr_envs.TaskEnv if issubclass(environment, rlvr_envs.TaskEnv) else rlvr_envs.StateEnv
    own, common = (inspect.cleandoc(cls.__doc__ or "") for cls in (environment, base))
    return f"{own}\n\n# {base.__name__}\n{common}"
