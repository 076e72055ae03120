"""Ctrl-C and SIGTERM: keeping them away from code that must not stop half-way, and handling both alike."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

_STOPPING = (signal.SIGINT, signal.SIGTERM)


class Terminated(KeyboardInterrupt):
    """SIGTERM arrived: the process is to stop as it does after Ctrl-C."""


@contextmanager
def sigterm_interrupts() -> Iterator[None]:
    """Raise `Terminated` on SIGTERM in the block, so that what saves its work after Ctrl-C does so here; main thread only."""
    previous = signal.signal(signal.SIGTERM, _terminate)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, previous)


def _terminate(number: int, frame: FrameType | None) -> None:
    raise Terminated


@contextmanager
def interrupts_deferred() -> Iterator[None]:
    """Hold SIGINT and SIGTERM back until the block is done, where Python handles them.

    Elsewhere than on the main thread nothing is done: signals do not arrive there.
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
    if arrived:  # and the block was done: where it failed, its error says more, and what it was to keep whole is not
        signal.raise_signal(arrived[0])
