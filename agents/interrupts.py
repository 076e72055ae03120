"""Ctrl-C and SIGTERM: defers them around code that must not be interrupted, and handles both alike."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

_STOPPING = (signal.SIGINT, signal.SIGTERM)


class Terminated(KeyboardInterrupt):
    """Raised on SIGTERM, so that the process stops as it does after Ctrl-C."""


@contextmanager
def sigterm_interrupts() -> Iterator[None]:
    """Raise `Terminated` on SIGTERM within the block, so that work is saved as after Ctrl-C; main thread only."""
    previous = signal.signal(signal.SIGTERM, _terminate)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, previous)


def _terminate(number: int, frame: FrameType | None) -> None:
    raise Terminated


@contextmanager
def interrupts_deferred() -> Iterator[None]:
    """Defer SIGINT and SIGTERM, if Python handles them, until the block is done.

    Outside the main thread this does nothing, since signals do not arrive there.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    arrived: list[int] = []

    def remember(number: int, frame: FrameType | None) -> None:
        arrived.append(number)

    handled = [number for number in _STOPPING if callable(signal.getsignal(number))]
    previous = {number: signal.signal(number, remember) for number in handled}
    try:
        yield
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)
    if arrived:  # only if the block succeeded: otherwise the block's own error is more informative
        signal.raise_signal(arrived[0])
