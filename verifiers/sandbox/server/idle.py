"""Detection of idle programs, which sleep, wait for something that never comes, or poll.

A program that is ready to run uses a whole CPU, unless other programs compete for it. Any load leaves it at least a small
share, so a program that uses less than this share is idle on any machine. If a program uses more, but no more than one that
polls every few milliseconds, the server checks whether CPU time is available: if not, the program is not idle.
"""

from __future__ import annotations

import time
from collections.abc import Callable

_IDLE_SHARE = 0.004
"""Share of a CPU below which a program is idle; a ready program gets less only if 250 others run on each CPU."""
_POLLING_SHARE = 0.05
"""Share of a CPU that a program uses if it polls every 10 ms, with a few threads or slowly."""
_AVAILABLE_SHARE = 0.1
"""Share of a CPU that the server tries to get; if it can, a program that is ready to run uses more than `_POLLING_SHARE`."""
_TRIAL_S = 0.02
"""CPU seconds of the server's trial: more than the scheduler grants a process that has slept before others may run."""
_BETWEEN_TRIALS_S = 1.0


def has_cpu() -> bool:
    """Whether CPU time is available now, which is found out by using some."""
    start, before = time.monotonic(), time.process_time()
    while time.process_time() - before < _TRIAL_S:
        if time.monotonic() - start > _TRIAL_S / _AVAILABLE_SHARE:
            return False
    return True


class Idleness:
    """Adds up the time in which a program was idle."""

    def __init__(self, has_cpu: Callable[[], bool] = has_cpu) -> None:
        """Start from zero; `has_cpu` returns whether a ready process would get to run."""
        self._has_cpu = has_cpu
        self._undecided = 0.0
        self.seconds = 0.0
        """Idle seconds so far."""

    def add(self, elapsed: float, used: float) -> None:
        """Count `elapsed` seconds, during which the processes of a job used `used` CPU seconds."""
        if used < _IDLE_SHARE * elapsed:
            self.seconds += elapsed
        elif used < _POLLING_SHARE * elapsed:
            self._undecided += elapsed
        if self._undecided >= _BETWEEN_TRIALS_S:
            self.seconds += self._undecided if self._has_cpu() else 0.0
            self._undecided = 0.0
