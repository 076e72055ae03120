"""`rlvr envs`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import tyro
from rich.console import Console
from rich.table import Table

from rlvr_envs import ENVIRONMENTS, environment_class


@dataclass(frozen=True)
class Envs:
    """List the environments, with the sizes of their splits and the sources of their data."""

    name: Annotated[str | None, tyro.conf.Positional] = None
    """Environment to describe in full."""

    def run(self, console: Console) -> int:
        """Print the list, or one description."""
        if self.name is not None:
            console.print(environment_class(self.name).__doc__, markup=False)
            return 0
        table = Table()
        table.add_column("id", no_wrap=True)
        for column in ("splits", "verifier", "data"):
            table.add_column(column, overflow="fold")
        for env_id in ENVIRONMENTS:
            task = environment_class(env_id).task
            splits = ", ".join(f"{split} {size}" for split, size in task.sizes.items())
            table.add_row(env_id, splits, task.verifier[0].rpartition(":")[2], task.source)
        console.print(table)
        console.print(
            "Data from the hub can also be read from a local folder: set RLVR_DATA_DIR. rlvr envs NAME describes one "
            "environment."
        )
        return 0
