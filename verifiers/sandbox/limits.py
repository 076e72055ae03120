"""The resource limits of a job, and the names of the isolation layers; importable on every platform."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

LAYERS = ("namespaces", "landlock", "seccomp")
"""The layers of isolation, in the order in which they are entered."""
Isolation = Literal["auto", "strict", "available", "none"]
ISOLATIONS: tuple[str, ...] = get_args(Isolation)
"""Levels of isolation that can be requested."""
FOLDER = "/rlvr-folder"
"""The path of an installed program's folder if the folder is in memory."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Resource limits of one program."""

    cpu_s: float
    """Maximum CPU seconds over all threads of the program."""
    wall_s: float
    """Seconds of wall-clock time, counted from the fork."""
    idle_s: float
    """Seconds for which no process of the job may run before the job counts as idle."""
    memory_mib: int
    """Maximum address space of the program, in MiB."""
    output_mib: int
    """Maximum size of standard output and of standard error, in MiB each."""
    processes: int
    """Maximum number of threads of the program (Linux counts threads as processes of the user)."""
