"""A sandbox: a pool of fork servers of one kind, and the limits of what runs on them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from verifiers._settings import is_number, is_whole_number
from verifiers.errors import InvalidArgumentError
from verifiers.sandbox.contract import Contract
from verifiers.sandbox.limits import ISOLATIONS, Limits
from verifiers.sandbox.packages import Packages, find_packages
from verifiers.sandbox.pool import Pool, available_cpus

_IDLE_S = 1
"""Seconds that a program may be idle beyond its CPU seconds."""


class Sandbox:
    """Fork servers, started as they are needed, and the limits of programs.

    Attributes:
        limits: The limits of a program without a time limit of its own.
        packages: The packages that can be imported.
        pool: The fork servers.
        workers: Number of programs that run at the same time.
    """

    def __init__(
        self,
        contract: Contract | None = None,
        *,
        timeout_s: float = 10.0,
        wall_s: float | None = None,
        memory_mib: int = 1024,
        output_mib: int = 8,
        max_threads: int = 128,
        workers: int | None = None,
        isolation: str = "auto",
        packages: str | Sequence[str] = (),
    ) -> None:
        """Make a sandbox; nothing is started yet.

        Args:
            contract: The code that processes run; without a contract they are Python programs.
            timeout_s: CPU seconds of a process. A job may be idle for as long again.
            wall_s: Seconds of wall-clock time; the default is generous, so that results don't depend on the load.
            memory_mib: Address space of a process.
            output_mib: Maximum of each file that it writes.
            max_threads: Maximum number of its threads.
            workers: Number of jobs that run at the same time, by default the number of CPUs of this process.
            isolation: One of `ISOLATIONS`.
            packages: Installed packages that programs may import, as a sequence of names or a comma-separated string.

        Raises:
            InvalidArgumentError: If an argument is out of range, or a package is not installed.
        """
        for name, value in (("timeout_s", timeout_s), ("wall_s", wall_s)):
            if value is not None and not (is_number(value) and 0 < value < math.inf):
                raise InvalidArgumentError(f"{name} must be a positive number, got {value!r}")
        self.workers = available_cpus() if workers is None else workers
        numbers = {
            "workers": self.workers,
            "memory_mib": memory_mib,
            "output_mib": output_mib,
            "max_threads": max_threads,
        }
        for name, value in numbers.items():
            if not is_whole_number(value) or value < 1:
                raise InvalidArgumentError(f"{name} must be a whole number of at least 1, got {value!r}")
        if isolation not in ISOLATIONS:
            raise InvalidArgumentError(
                f"isolation must be one of {', '.join(map(repr, ISOLATIONS))}, got {isolation!r}"
            )
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
        """The limits of a program, with its own in place of the sandbox's `timeout_s` if it has one."""
        if timeout_s is None:
            return self.limits
        wall_s = _wall_s(timeout_s) if self._wall_s is None else self._wall_s
        return replace(self.limits, cpu_s=timeout_s, idle_s=timeout_s + _IDLE_S, wall_s=wall_s)


def _wall_s(cpu_s: float) -> float:
    return 10 * cpu_s + 30
