"""Tells whether this process was started as one of several; this module imports no other module of the package."""

from __future__ import annotations

import os

_VARIABLES = ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")
"""The variables that torchrun and other launchers set for each process."""


def is_launched() -> bool:
    """Whether a launcher such as torchrun started this process, which then has a rank, even if it is the only process."""
    return all(os.environ.get(name) for name in _VARIABLES)


def is_restart() -> bool:
    """Whether torchrun started this process again after a failure of any of its processes."""
    return int(os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")) > 0
