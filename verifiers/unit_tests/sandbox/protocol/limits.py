"""The resource limits of one program, and the names of the isolation layers; can be imported on every platform."""

from __future__ import annotations

from dataclasses import dataclass

LAYERS = ("namespaces", "landlock", "seccomp")
"""The layers of isolation, in the order in which they are entered."""
ISOLATIONS = ("auto", "strict", "available", "none")
"""How much isolation can be asked for."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What one program may use."""

    cpu_s: float
    """CPU seconds, all its threads together."""
    wall_s: float
    """Seconds by the clock, from the fork."""
    idle_s: float
    """Seconds in which neither the program nor its tests ran."""
    memory_mib: int
    """Address space."""
    output_mib: int
    """Standard output, and as much of standard error."""
    processes: int
    """Threads of the program (Linux counts them as processes of the user)."""
