"""While the tests wait, threads of the program can call what they were lent.

Such a call reaches the tests only during a request. So where their only thread sleeps, or waits for a condition (as events,
queues, semaphores and barriers do), it has the program sleep meanwhile, a short time after another.
"""

from __future__ import annotations

import functools
import math
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

from ..rpc.session import Session

_MOMENT_S = 0.005


def install(session: Session) -> None:
    """Replace what the tests wait by."""
    names, condition = sys.modules["time"].__dict__, threading.Condition
    names["sleep"] = functools.partial(_sleep, session, time.sleep)
    really = condition.wait

    def wait(self: Any, timeout: float | None = None) -> bool:
        return _wait(session, self, timeout) if _is_alone(session) else really(self, timeout)

    condition.wait = wait  # type: ignore[method-assign]


def _is_alone(session: Session) -> bool:
    """Whether the program may call, and no thread of the tests but this one could make the requests for that."""
    return session.has_lent and threading.active_count() == 1


def _sleep(session: Session, really: Callable[[float], None], seconds: float) -> None:
    if _is_alone(session):
        session.request("sleep", None, seconds)
    else:
        really(seconds)


def _wait(session: Session, condition: Any, timeout_s: float | None) -> bool:
    """Wait for a condition as it does itself; what notifies it runs in this thread, in a callback."""
    bell = threading.Lock()
    bell.acquire()
    condition._waiters.append(bell)
    state = condition._release_save()
    end, rung = math.inf if timeout_s is None else time.monotonic() + timeout_s, False
    try:
        while not (rung := bell.acquire(blocking=False)) and time.monotonic() < end:
            session.request("sleep", None, _MOMENT_S)
    finally:
        condition._acquire_restore(state)
        if not rung and bell in condition._waiters:
            condition._waiters.remove(bell)
    return rung
