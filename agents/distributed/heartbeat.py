"""`Heartbeat` notices that another process has stopped, even while this process waits for it in an exchange.

Every few seconds, a thread of each rank increments a count in the shared store. Rank 0 listens to all other ranks, and the
other ranks listen to rank 0. The process of rank 0 holds the store, which no longer answers if this process is stopped.

A process with a heartbeat may still hang, for example in a verifier. Only the time limit of exchanges ends such a wait, since
no other process knows how long the work should take. Long before the limit, and again with the error, the user learns which
line of code the late rank is at.

A call that holds Python's lock, such as a regular expression that never ends, stops the heartbeat as well. A watchdog of
Python, which needs no lock, then writes the position of the process to standard error, before the other processes end the
process.
"""

from __future__ import annotations

import contextlib
import faulthandler
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from torch.distributed import Store  # type: ignore[attr-defined] # torch names it nowhere else

from verifiers import RankError

BEAT_S = 2.5
"""Seconds between beats."""
SILENT_S = 40.0
"""Seconds without a beat after which a process counts as stopped. Neither computation nor waiting delays beats."""

EXIT_CODE = 75
"""Exit code of a process that ends because another process has stopped."""
_DUMP_S = 0.75 * SILENT_S
"""Seconds without a beat after which a process writes its position in the code."""
_ANSWER_S = 3 * BEAT_S
"""Seconds to wait for other processes to report their position in the code."""
_UNANSWERED = "?"
"""Placeholder in the store for an answer that has not come."""
_WAITING = "monitored_barrier"
"""The function of torch in which a rank waits for other ranks."""
_CALLS = 12
"""Number of a thread's innermost calls in a report."""
_STANDARD_ERROR = 2
"""Number of the file that `faulthandler` writes to. `sys.stderr` can't be used, since it may be None."""
_STOP_S = 30.0
"""Maximum number of seconds to wait for threads to stop, which usually takes a moment."""


class Heartbeat:
    """Sends beats for this rank until `stop`, and watches the beats of other ranks.

    Args:
        connect: Opens a connection to the store that no other thread uses.
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
        self._waits: dict[int, float] = {}
        self._told = rank > 1  # rank 0 reports other ranks, and rank 1 reports rank 0
        self._threads = [threading.Thread(target=target, daemon=True) for target in (self._beat, self._watch)]
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """Stop beating and listening."""
        self._stopped.set()
        for thread in self._threads:  # Python aborts on exit if a thread is in torch
            thread.join(_STOP_S)

    @contextlib.contextmanager
    def waiting(self, patience_s: float) -> Iterator[None]:
        """A context in which this thread waits for other ranks. After `patience_s`, the user learns where those ranks are."""
        self._waits[threading.get_ident()] = time.monotonic() + patience_s
        try:
            yield
        finally:
            del self._waits[threading.get_ident()]

    def _beat(self) -> None:
        try:
            store = self._connect()
            number = 0
            while not self._stopped.wait(BEAT_S):
                faulthandler.dump_traceback_later(_DUMP_S, file=_STANDARD_ERROR)  # unless the next beat comes earlier
                number += 1
                store.set(beat_key(self._rank), str(number))
                self._listen(store)
                self._answer(store)
                self._tell(store)
        except (RuntimeError, RankError):  # rank 0 has ended, which the next exchange notices
            self._stopped.set()
        finally:
            faulthandler.cancel_dump_traceback_later()

    def _listen(self, store: Store) -> None:
        for other in list(self._heard):
            if store.check([left_key(other)]):
                del self._heard[other]
            elif store.check([beat_key(other)]):
                count = store.get(beat_key(other))
                if count != self._counts.get(other):
                    self._counts[other], self._heard[other] = count, time.monotonic()

    def _answer(self, store: Store) -> None:
        if store.check([_asked_key(self._rank)]):
            store.delete_key(_asked_key(self._rank))
            store.set(_answer_key(self._rank), own_whereabouts())

    def _tell(self, store: Store) -> None:
        """Write, once in a run, the code positions of ranks for which other ranks have waited unusually long."""
        if self._told or not any(due < time.monotonic() for due in list(self._waits.values())):
            return
        if late := whereabouts(store, list(self._heard)):
            self._told = True
            sys.stderr.write(f"warning: rank {self._rank} waits unusually long for others: {late}\n")
            sys.stderr.flush()

    def _watch(self) -> None:
        woke = time.monotonic()
        while not self._stopped.wait(BEAT_S):
            before, woke = woke, time.monotonic()
            if woke - before > SILENT_S / 2:  # this process itself was stopped, and did not listen
                self._heard.update(dict.fromkeys(list(self._heard), woke))
            silent = [other for other, heard in list(self._heard.items()) if woke - heard > SILENT_S]
            if silent:
                self._stopped.set()
                self._lost(silent)


def whereabouts(store: Store, ranks: Sequence[int]) -> str:
    """The lines of code at which other ranks are; ranks that don't answer, or that are waiting themselves, are left out."""
    answers = {rank: _answer_key(rank) for rank in ranks}
    for rank, key in answers.items():
        store.set(
            key, _UNANSWERED
        )  # not deleted, since another rank may be about to read this key, and would wait for it
        store.set(_asked_key(rank), "")
    deadline = time.monotonic() + _ANSWER_S
    while True:
        told = {rank: store.get(key).decode() for rank, key in answers.items()}
        if _UNANSWERED not in told.values() or time.monotonic() > deadline:
            break
        time.sleep(0.05)
    return "; ".join(f"rank {rank} is in {where}" for rank, where in told.items() if where not in ("", _UNANSWERED))


def own_whereabouts() -> str:
    """The calls of threads in this package's code that are not waiting for other ranks, innermost first."""
    home = str(Path(__file__).parents[1])
    names = {thread.ident: thread.name for thread in threading.enumerate()}
    told = []
    for ident, frame in sys._current_frames().items():
        calls = traceback.extract_stack(frame)[::-1]
        ours = any(call.filename.startswith(home) and call.filename != __file__ for call in calls)
        if ours and not any(call.name == _WAITING for call in calls):
            lines = [f"{'/'.join(Path(call.filename).parts[-2:])}:{call.lineno} ({call.name})" for call in calls]
            told.append(f"{', '.join(lines[:_CALLS])} [{names.get(ident)}]")
    return " and ".join(told)


def _asked_key(rank: int) -> str:
    return f"asked/{rank}"


def _answer_key(rank: int) -> str:
    return f"answer/{rank}"


def beat_key(rank: int) -> str:
    """Key in the store for a rank's count."""
    return f"beat/{rank}"


def left_key(rank: int) -> str:
    """Key in the store that exists once a rank has left."""
    return f"left/{rank}"
