"""Threads of the tests take turns in talking to the candidate, which answers one request at a time."""

from __future__ import annotations

import threading

from ..report import Report

_LONG_S = 0.5


class Turns:
    """Held from a request to its answer, by one thread at a time; within it this thread may ask again.

    A thread that has waited long says so in the report. If then nothing goes on any more, it may be that the program can't
    answer one request before it is asked the other.
    """

    def __init__(self, report: Report) -> None:
        """Begin with nobody's turn.

        Args:
            report: Where a line says `waiting`: 1 where a thread begins to wait for long, -1 where it no longer does.
        """
        self._lock = threading.RLock()
        self._report = report

    def __enter__(self) -> None:
        if not self._lock.acquire(timeout=_LONG_S):
            self._report.write(waiting=1)
            self._lock.acquire()
            self._report.write(waiting=-1)

    def __exit__(self, *error: object) -> None:
        self._lock.release()
