"""Threads of the tests take turns in talking to the candidate, which answers one request at a time."""

from __future__ import annotations

import threading

from ..report import Report

_LONG_S = 0.5


class Turns:
    """A reentrant lock that a thread holds from a request to its answer.

    A thread that waits long notes it in the report: if the job then makes no progress, the program may be unable to answer
    one request before it receives the other.
    """

    def __init__(self, report: Report) -> None:
        self._lock = threading.RLock()
        self._report = report

    def __enter__(self) -> None:
        if not self._lock.acquire(timeout=_LONG_S):
            self._report.write(waiting=1)
            self._lock.acquire()
            self._report.write(waiting=-1)

    def __exit__(self, *error: object) -> None:
        self._lock.release()
