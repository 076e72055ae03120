"""Whether this process was started as one of several; importing this loads nothing."""

from __future__ import annotations

import os

_VARIABLES = ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")
"""The variables that torchrun and other launchers set for each process."""


def is_launched() -> bool:
    """Whether a launcher such as torchrun started this process as one of several, or as a single process with a rank."""
    return all(os.environ.get(name) for name in _VARIABLES)


def is_restart() -> bool:
    """Whether torchrun started this process again after one of its processes had failed."""
    return int(os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")) > 0
