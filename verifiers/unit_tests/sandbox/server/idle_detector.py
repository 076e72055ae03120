"""Detection of idle programs: those that sleep, wait for what never comes, or poll.

A program that is ready to run uses a whole CPU, unless others use it. How little a program may use before it counts as idle can
therefore be told without regard to the machine's load only up to a share that no load leaves to a program. Above that, up to
what a program uses that looks every few milliseconds whether it can go on, the server tries whether there is CPU time to be
had: a program that was not given any is not idle.
"""

from __future__ import annotations

import time
from collections.abc import Callable

_NOTHING = 0.004
"""Of a CPU: less than this is left to a program only where 250 others run on each."""
_LITTLE = 0.05
"""Of a CPU: what a program uses that looks every 10 ms, with a few threads or in a slow way."""
_ENOUGH = 0.1
"""Of a CPU: where the server is given this, so is any other process, and one that is ready to run uses more than a little."""
_TRIAL_S = 0.02
"""CPU seconds; more than a process that has slept is given at once, before others have their turn."""
_BETWEEN_TRIALS_S = 1.0


def has_cpu() -> bool:
    """Whether there is CPU time to be had here now, tried by using some."""
    start, before = time.monotonic(), time.process_time()
    while time.process_time() - before < _TRIAL_S:
        if time.monotonic() - start > _TRIAL_S / _ENOUGH:
            return False
    return True


class Idleness:
    """Adds up the time in which a program was idle."""

    def __init__(self, has_cpu: Callable[[], bool] = has_cpu) -> None:
        """Begin with none.

        Args:
            has_cpu: Says whether a process that is ready to run would run.
        """
        self._has_cpu = has_cpu
        self._undecided = 0.0
        self.seconds = 0.0
        """Idle seconds so far."""

    def add(self, elapsed: float, used: float) -> None:
        """Count a stretch of time.

        Args:
            elapsed: Its seconds.
            used: CPU seconds that the program and its tests used in it.
        """
        if used < _NOTHING * elapsed:
            self.seconds += elapsed
        elif used < _LITTLE * elapsed:
            self._undecided += elapsed
        if self._undecided >= _BETWEEN_TRIALS_S:
            self.seconds += self._undecided if self._has_cpu() else 0.0
            self._undecided = 0.0
