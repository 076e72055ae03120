"""Threads of the program take turns in talking to the tester, whose messages are answered in the reverse of their order.

Made of locks alone: tests may replace what the standard library's Python code uses.
"""

from __future__ import annotations

import threading
from collections.abc import Callable


class Turns:
    """Requests of the tester and calls of the program in between, each within the one before it that has no answer yet.

    They alternate, so their number says whose turn it is. While it is even, the tester has the word: it sends a request, or
    the result of the last call. A thread that is not asked anything can call only while a request is running.
    """

    def __init__(self) -> None:
        self._open = 0
        self._lock = threading.RLock()
        self._waiting: list[threading.Lock] = []
        """Held, each by a thread that waits for its turn."""
        self._new_lock = threading.Lock

    def begin_request(self) -> int:
        """Begin to run what the tester has requested, and return the request's number."""
        # Without the lock: while the tester has the word, only the thread that reads its messages comes here.
        number = self._open = self._open + 1
        if self._waiting:
            with self._lock:
                self._wake()
        return number

    def begin_reply(self, number: int) -> None:
        """Wait until no call of another thread is without its result; then no other thread begins one until `end_reply`."""
        self._lock.acquire()
        if self._open != number:
            self._wait_for(lambda: self._open == number)

    def end_reply(self) -> None:
        """Leave the word to the tester."""
        self._open -= 1
        self._lock.release()

    def begin_call(self) -> None:
        """Wait until a request is running and no other call; then this thread alone may send, and receive, until `end_call`."""
        with self._lock:
            self._wait_for(lambda: self._open % 2 == 1)
            self._open += 1

    def end_call(self) -> None:
        """Go on with what called the tester."""
        with self._lock:
            self._open -= 1
            self._wake()

    def _wait_for(self, is_due: Callable[[], bool]) -> None:
        """Give up the lock, which is held, until something is the case."""
        while not is_due():
            bell = self._new_lock()
            bell.acquire()
            self._waiting.append(bell)
            if is_due():  # since it was asked: a request has begun, without having seen this thread wait
                return
            state = self._lock._release_save()  # type: ignore[attr-defined]  # what conditions use, in Python code
            bell.acquire()
            self._lock._acquire_restore(state)  # type: ignore[attr-defined]  # likewise

    def _wake(self) -> None:
        waiting, self._waiting = self._waiting, []
        for bell in waiting:
            bell.release()
