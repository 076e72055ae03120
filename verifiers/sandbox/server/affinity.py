"""Keeps a job's processes on one CPU while the job is young.

The fork server and its children take turns, and each reads memory that another has just written. By default the system puts
them on different CPUs, and every turn costs the wake-up of a sleeping CPU and cold caches: a third of the cost of a short
program. A job that takes longer is released, so that two long jobs do not share a CPU while another is free. If the system does
not let a process choose its CPUs, only speed is lost.
"""

from __future__ import annotations

import os

from ..isolation import syscalls
from .children import Child

YOUNG_S = 0.02
"""Seconds for which a job is kept on one CPU."""


class Placement:
    """The CPUs on which the fork server and its children run."""

    def __init__(self) -> None:
        self._all = os.sched_getaffinity(0)
        self._cpu: int | None = None
        self._refused = len(self._all) == 1

    @property
    def cpu(self) -> int | None:
        """The CPU of the young job, on which a new child starts; None without such a job."""
        return self._cpu

    def begin(self) -> None:
        """Keep this process on the CPU that it runs on."""
        if not self._refused:
            cpu = syscalls.current_cpu()
            self._cpu = cpu if self._place(0, {cpu}) else None

    def bring(self, child: Child) -> None:
        """Move a child to the CPU of this process."""
        if self._cpu is not None and child.cpu != self._cpu and self._place(child.pid, {self._cpu}):
            child.cpu = self._cpu

    def let_go(self, *children: Child) -> None:
        """Lift the restriction on the CPUs of some children and of this process."""
        for child in children:
            if child.cpu is not None and self._place(child.pid, self._all):
                child.cpu = None
        self.end()

    def end(self) -> None:
        """Lift the restriction on the CPUs of this process; a child that sleeps until the next job stays on its CPU."""
        if self._cpu is not None:
            self._cpu = None
            self._place(0, self._all)

    def _place(self, pid: int, cpus: set[int]) -> bool:
        """Set the CPUs on which a process may run; if the system refuses, no further job is placed."""
        try:
            os.sched_setaffinity(pid, cpus)
        except OSError:
            self._refused = True
            return False
        return True
