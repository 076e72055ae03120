"""Threads of the program take turns in talking to the tester, whose messages are answered in the reverse of their order."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator


class Turns:
    """Requests of the tester and calls of the program in between, each within the one before it that has no answer yet.

    They alternate, so their number says whose turn it is. While it is even, the tester has the word: it sends a request, or
    the result of the last call. A thread that is not asked anything can call only while a request is running.
    """

    def __init__(self) -> None:
        self._open = 0
        self._changed = threading.Condition()

    def begin_request(self) -> int:
        """Begin to run what the tester has requested, and return the request's number."""
        with self._changed:
            self._open += 1
            self._changed.notify_all()
            return self._open

    @contextlib.contextmanager
    def reply(self, number: int) -> Iterator[None]:
        """Answer a request, once no call of another thread is without its result; no other thread begins one meanwhile."""
        with self._changed:
            self._changed.wait_for(lambda: self._open == number)
            yield
            self._open -= 1

    @contextlib.contextmanager
    def call(self) -> Iterator[None]:
        """Call the tester once a request is running, and only then; the block receives the result."""
        with self._changed:
            self._changed.wait_for(lambda: self._open % 2)
            self._open += 1
        try:
            yield
        finally:
            with self._changed:
                self._open -= 1
                self._changed.notify_all()
