"""Judges batches in several processes, which stay warm and end with the verifiers that use them.

They are separate programs (see `verifiers._workers`), not children of `multiprocessing`: those import the caller's main module
again, so a script without a guard would start itself; and daemonic processes may not have children.
"""

from __future__ import annotations

import functools
import multiprocessing
import os
import time
import weakref
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import IO, Any

from verifiers._workers import (
    Worker,
    WorkerBrokenError,
    WorkerStartError,
    WorkerTimeoutError,
    answer_requests,
    decode,
    encode,
)
from verifiers.functions import verifier_error
from verifiers.types import Problem, Verdict, Verifier

Pair = tuple[str, Problem]

MIN_BATCH = 32
"""Minimum number of completions for which processes are used."""
MIN_CHUNK, MAX_CHUNK = 4, 32
"""Minimum and maximum number of completions in a chunk for one process: few enough that slow completions are shared evenly,
enough to make communication cheap.
"""
START_COST_S = 0.5
"""Seconds that the calling process works alone before it starts others: about the time that starting them takes."""
GLANCE_S = 0.02
"""Seconds that the calling process works alone to measure the time of a verdict, if other processes are already running."""
WORTHWHILE_S = 1e-4
"""Minimum seconds of a verdict at which other processes help; sending a completion and its verdict takes about a third."""
_ATTEMPTS = 2
_CHUNKS_PER_PROCESS = 8


def available_cpus() -> int:
    """The number of CPUs that this process may run on."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


class Processes:
    """Processes that judge chunks of batches; threads may share them."""

    def __init__(self, count: int) -> None:
        self._count = count
        self._workers: list[Worker] = []

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the number of processes: a copy uses the shared processes of the program that unpickles it."""
        return shared_processes, (self._count,)

    @property
    def pids(self) -> tuple[int, ...]:
        """The ids of the running processes."""
        return tuple(pid for worker in self._workers if (pid := worker.pid) is not None)

    def close(self) -> None:
        """End the processes; the next large batch starts new ones."""
        for worker in self._workers:
            worker.close()

    def judge(self, verifier: Verifier, pairs: Sequence[Pair], patience_s: float) -> list[Verdict]:
        """Judge completions; verdict i belongs to pair i.

        The calling process begins alone. It continues alone while verdicts are too fast for communication to be worth it. If no
        processes are running, the calling process first works for the time that their start would take, so that a short batch
        starts none. The calling process also judges data that can't be sent to another process, such as a class of the main
        module, and everything if no process can be started. The completions of a chunk in which processes die are
        `VERIFIER_ERROR`.

        Args:
            verifier: The verifier, which judges one completion after another.
            pairs: Completions with their problems.
            patience_s: Seconds of wall-clock time that one completion may take, far above the verifier's own deadlines.
        """
        encoded = _encoded(verifier)
        verdicts: list[Verdict] = []
        while len(verdicts) < len(pairs):
            began, before = time.monotonic(), len(verdicts)
            verdicts += _judge_for(GLANCE_S if self.pids else START_COST_S, verifier, pairs[before:])
            slow = time.monotonic() - began >= WORTHWHILE_S * (len(verdicts) - before)
            if slow and encoded is not None and len(pairs) - len(verdicts) >= MIN_BATCH:
                return verdicts + self._judge_elsewhere(verifier, encoded, pairs[len(verdicts) :], patience_s)
        return verdicts

    def _judge_elsewhere(
        self, verifier: Verifier, encoded: str, pairs: Sequence[Pair], patience_s: float
    ) -> list[Verdict]:
        size = min(MAX_CHUNK, max(MIN_CHUNK, len(pairs) // (_CHUNKS_PER_PROCESS * self._count)))
        chunks = [pairs[start : start + size] for start in range(0, len(pairs), size)]
        return self._share_out(
            chunks, lambda worker, chunk: _ask(worker, verifier, encoded, chunk, patience_s * len(chunk))
        )

    def _share_out(
        self, chunks: Sequence[Sequence[Pair]], ask: Callable[[Worker, Sequence[Pair]], list[Verdict]]
    ) -> list[Verdict]:
        """Let each process take the next chunk as soon as it is free."""
        waiting = deque(enumerate(chunks))
        judged: dict[int, list[Verdict]] = {}

        def work(worker: Worker) -> None:
            while waiting:
                try:
                    index, chunk = waiting.popleft()
                except IndexError:  # another thread took the last chunk
                    return
                judged[index] = ask(worker, chunk)

        workers = self._first(min(self._count, len(chunks)))
        with ThreadPoolExecutor(len(workers), thread_name_prefix="verify_batch") as threads:
            try:
                for future in [threads.submit(work, worker) for worker in workers]:
                    future.result()
            finally:
                waiting.clear()  # after an error or an interrupt no further chunk is started
        return [verdict for index in range(len(chunks)) for verdict in judged[index]]

    def _first(self, count: int) -> list[Worker]:
        while len(self._workers) < count:  # two threads may add a worker too many, which never starts
            self._workers.append(Worker("verifiers.math.batch", memory_mib=None))
        return self._workers[:count]


def serve(requests: IO[bytes], replies: IO[bytes]) -> None:
    """Answer each chunk with its verdicts, or with null if the calling process has to judge it; called in the other process."""
    answer_requests(requests, replies, _judged)


def _judged(verifier: str, pairs: str) -> str | None:
    try:
        judge = _verifier(verifier)
        return encode([judge(*pair) for pair in decode(pairs)])
    except Exception:  # noqa: BLE001 - it is raised again in the calling process
        return None


@functools.lru_cache(maxsize=8)
def _verifier(pickled: str) -> Verifier:
    verifier: Verifier = decode(pickled)
    return verifier


def _encoded(value: object) -> str | None:
    """A value encoded for another process; None if the value can't be sent, as with a class defined inside a function."""
    try:
        return encode(value)
    except Exception:  # noqa: BLE001 - pickling runs code of any class
        return None


def _judge_for(seconds: float, verifier: Verifier, pairs: Sequence[Pair]) -> list[Verdict]:
    """Judge for this many seconds, at least one completion."""
    verdicts: list[Verdict] = []
    end = time.monotonic() + seconds
    for pair in pairs:
        verdicts.append(verifier(*pair))
        if time.monotonic() >= end:
            break
    return verdicts


def _ask(worker: Worker, verifier: Verifier, encoded: str, chunk: Sequence[Pair], deadline_s: float) -> list[Verdict]:
    problems = _encoded(chunk)
    for attempt in range(_ATTEMPTS if problems is not None else 0):
        try:
            reply = worker.ask([encoded, problems], deadline_s=deadline_s)
        except WorkerStartError:
            break
        except (WorkerBrokenError, WorkerTimeoutError) as error:
            if attempt == _ATTEMPTS - 1:
                return [verifier_error(error)] * len(chunk)
        else:
            if not isinstance(reply, str):
                break  # the reply can't be encoded either, or an error was raised that the caller should see
            return list(decode(reply))
    return [verifier(*pair) for pair in chunk]


_shared: weakref.WeakValueDictionary[int, Processes] = weakref.WeakValueDictionary()


def shared_processes(count: int) -> Processes | None:
    """The processes shared by all verifiers with this `count`; None for 1, where the calling process judges alone."""
    return _shared.setdefault(count, Processes(count)) if count > 1 else None


def may_start_processes() -> bool:
    """Whether this process may start others; a worker of `multiprocessing` may not, since its pool already uses the CPUs."""
    return not multiprocessing.current_process().daemon
