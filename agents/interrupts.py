"""Keeping Ctrl-C away from code that must not stop half-way."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def interrupts_deferred() -> Iterator[None]:
    """Hold an interrupt (SIGINT) back until the block is done; elsewhere than on the main thread nothing is done."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    arrived = []

    def remember(number: int, frame: FrameType | None) -> None:
        arrived.append(number)

    previous = signal.signal(signal.SIGINT, remember)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, previous)
    if arrived:
        raise KeyboardInterrupt
