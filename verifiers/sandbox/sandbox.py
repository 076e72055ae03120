"""A sandbox: a pool of equal fork servers, and the limits of the programs that they run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated

from verifiers._settings import checked
from verifiers.bounds import Above, AtLeast, Count, Seconds
from verifiers.sandbox.contract import Contract
from verifiers.sandbox.limits import Isolation, Limits
from verifiers.sandbox.packages import Packages, find_packages
from verifiers.sandbox.pool import Pool, available_cpus

_IDLE_S = 1
"""Seconds that a program may be idle, in addition to its limit of CPU seconds."""


class Sandbox:
    """Fork servers, started on demand, and the limits of programs.

    Attributes:
        limits: The limits of a program without a time limit of its own.
        packages: The packages that can be imported.
        pool: The fork servers.
        workers: Number of programs that run at the same time.
    """

    @checked
    def __init__(
        self,
        contract: Contract | None = None,
        *,
        timeout_s: Seconds = 10.0,
        wall_s: Annotated[float | None, Above(0)] = None,
        memory_mib: Count = 1024,
        output_mib: Count = 8,
        max_threads: Count = 128,
        workers: Annotated[int | None, AtLeast(1)] = None,
        isolation: Isolation = "auto",
        packages: str | Sequence[str] = (),
    ) -> None:
        """Make a sandbox; nothing is started yet.

        Args:
            contract: The code that processes run; without a contract they run Python programs.
            timeout_s: CPU seconds of a process. A job may also be idle for the same time.
            wall_s: Seconds of wall-clock time; the default is generous, so that results don't depend on the load.
            memory_mib: Address space of a process, in MiB.
            output_mib: Maximum size of each file that a process writes, in MiB.
            max_threads: Maximum number of a process's threads.
            workers: Number of jobs that run at the same time, by default the number of CPUs of this process.
            isolation: One of `ISOLATIONS`.
            packages: Installed packages that programs may import, as a sequence of names or a comma-separated string.

        Raises:
            InvalidArgumentError: If an argument is out of range, or a package is not installed.
            UnknownNameError: If there is no such isolation.
        """
        self.workers = workers or available_cpus()
        self._wall_s = wall_s
        self.limits = Limits(
            cpu_s=timeout_s,
            wall_s=_wall_s(timeout_s) if wall_s is None else wall_s,
            idle_s=timeout_s + _IDLE_S,
            memory_mib=memory_mib,
            output_mib=output_mib,
            processes=max_threads,
        )
        self.packages = find_packages(packages) if packages else Packages()
        self.pool = Pool(self.workers, isolation, self.packages, contract)

    def limits_within(self, timeout_s: float | None) -> Limits:
        """The limits of a program; a `timeout_s` of the program's own replaces the sandbox's."""
        if timeout_s is None:
            return self.limits
        wall_s = _wall_s(timeout_s) if self._wall_s is None else self._wall_s
        return replace(self.limits, cpu_s=timeout_s, idle_s=timeout_s + _IDLE_S, wall_s=wall_s)


def _wall_s(cpu_s: float) -> float:
    return 10 * cpu_s + 30
