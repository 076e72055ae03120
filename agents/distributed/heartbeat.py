"""`Heartbeat`: notices that another process has stopped, even while this one waits for it in an exchange.

Each rank counts in the store that all share, every few seconds, in a thread. Rank 0 listens to all, and the others to rank 0,
whose process holds the store: if that is stopped, the store no longer answers.

A process whose heart beats may still hang, in a verifier for example: only the time limit of exchanges ends that, since nobody
else knows how long its work should take.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence

from torch.distributed import Store  # type: ignore[attr-defined] # torch names it nowhere else

from verifiers import RankError

BEAT_S = 2.5
"""Seconds between beats."""
SILENT_S = 40.0
"""Seconds without a beat after which a process counts as stopped. Computing does not delay beats, nor does waiting."""

EXIT_CODE = 75
"""Exit code of a process that ends because another has stopped."""
_STOP_S = 30.0
"""Seconds to wait for threads that were told to stop, which takes a moment unless the machine is very busy."""


class Heartbeat:
    """Beats for this rank until `stop`, and listens to others.

    Args:
        connect: Opens a connection to the store, which no other thread uses.
        rank: Number of this rank.
        listens: The ranks to listen to.
        lost: Called once, in a thread, with the ranks that have been silent for too long.
    """

    def __init__(
        self, connect: Callable[[], Store], rank: int, listens: Sequence[int], lost: Callable[[Sequence[int]], None]
    ) -> None:
        self._connect, self._rank, self._lost = connect, rank, lost
        self._stopped = threading.Event()
        self._counts: dict[int, bytes] = {}
        self._heard = dict.fromkeys(listens, time.monotonic())
        self._threads = [threading.Thread(target=target, daemon=True) for target in (self._beat, self._watch)]
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """Stop beating and listening."""
        self._stopped.set()
        for thread in self._threads:  # Python aborts at its end if a thread is within torch
            thread.join(_STOP_S)

    def _beat(self) -> None:
        try:
            store = self._connect()
            number = 0
            while not self._stopped.wait(BEAT_S):
                number += 1
                store.set(beat_key(self._rank), str(number))
                self._listen(store)
        except (RuntimeError, RankError):  # rank 0 has ended, which exchanges notice
            self._stopped.set()

    def _listen(self, store: Store) -> None:
        for other in list(self._heard):
            if store.check([left_key(other)]):
                del self._heard[other]
            elif store.check([beat_key(other)]):
                count = store.get(beat_key(other))
                if count != self._counts.get(other):
                    self._counts[other], self._heard[other] = count, time.monotonic()

    def _watch(self) -> None:
        woke = time.monotonic()
        while not self._stopped.wait(BEAT_S):
            before, woke = woke, time.monotonic()
            if woke - before > SILENT_S / 2:  # this process itself was stopped, and has not listened since
                self._heard.update(dict.fromkeys(list(self._heard), woke))
            silent = [other for other, heard in list(self._heard.items()) if woke - heard > SILENT_S]
            if silent:
                self._stopped.set()
                self._lost(silent)


def beat_key(rank: int) -> str:
    """Key in the store under which a rank counts."""
    return f"beat/{rank}"


def left_key(rank: int) -> str:
    """Key in the store that exists once a rank has left."""
    return f"left/{rank}"
