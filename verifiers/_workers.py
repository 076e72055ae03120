"""A warm worker process that exchanges plain data; it is killed and replaced when a request exceeds its deadline.

The parent waits on a pipe, so a deadline needs no signals and holds in any thread. A worker may also limit its own processor
time, which does not depend on how busy the machine is. A worker belongs to the process that started it: after a fork, the child
starts its own worker. A worker whose parent died ends within a second.
"""

from __future__ import annotations

import base64
import contextlib
import functools
import json
import os
import pickle
import selectors
import signal
import subprocess
import sys
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from typing import IO, Any

START_DEADLINE_S = 60.0
"""Seconds a worker may take to start and to import what it needs."""
_READY = b"ready"
_LAST_WORDS_S = 10.0  # seconds that a worker may take to end after closing its pipe; a worker on a busy machine is slow

# Limits are set before anything else is imported. A thread watches the parent: the kernel's own death signal (PR_SET_PDEATHSIG)
# would be sent as soon as the *thread* that started the worker ends.
_BOOTSTRAP = """
import importlib, json, os, resource, signal, sys, threading, time
module, memory, path, parent = json.loads(sys.argv[1])
sys.path[:] = path
if memory is not None:
    resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
signal.signal(signal.SIGINT, signal.SIG_IGN)
def watch():
    while os.getppid() == parent:
        time.sleep(0.5)
    os._exit(1)
threading.Thread(target=watch, daemon=True).start()
importlib.import_module(module).serve(sys.stdin.buffer, sys.stdout.buffer)
"""


class WorkerBrokenError(RuntimeError):
    """A worker died, or wrote something that is not a reply."""

    progress = 0
    """Number of steps of the request that were done: the worker writes one space for each before its reply."""


class WorkerStartError(WorkerBrokenError):
    """A worker could not start."""


class WorkerTimeoutError(TimeoutError):
    """A request ran past its deadline or its processor time; the worker that served it was killed."""

    progress = 0
    """Number of steps of the request that were done: the worker writes one space for each before its reply."""


def limit_processor_time(seconds: float) -> None:
    """End this worker process after `seconds` more of processor time; 0 lifts the limit."""
    signal.setitimer(signal.ITIMER_PROF, seconds)


@contextlib.contextmanager
def processor_time(seconds: float) -> Iterator[None]:
    """Limit the processor time of a block in a worker, in seconds; the process ends if the block exceeds the limit."""
    limit_processor_time(seconds)
    yield
    limit_processor_time(0)


def answer_requests(requests: IO[bytes], replies: IO[bytes], answer: Callable[..., object]) -> None:
    """Report that this worker is ready, and answer requests by the protocol of `Worker` until the requests end.

    Args:
        requests: Lines of JSON, each a list.
        replies: The stream to which each reply is written as a line of JSON.
        answer: Function of the items of a request that returns the reply.
    """
    replies.write(_READY + b"\n")
    replies.flush()
    for line in requests:
        replies.write(json.dumps(answer(*json.loads(line))).encode() + b"\n")
        replies.flush()


def encode(value: object) -> str:
    """Pickle a value as text that fits into JSON."""
    return base64.b64encode(pickle.dumps(value)).decode()


def decode(text: str) -> Any:
    """Decode a text that `encode` returned."""
    return pickle.loads(base64.b64decode(text))


class Worker:
    """A process that runs `module.serve(requests, replies)`, started on first use and restarted when needed.

    `serve` writes the line `ready`, then answers each line of JSON with one line of JSON. It may write spaces before a reply;
    an error reports their number as `progress`.

    Args:
        module: Dotted name of the module to run.
        memory_mib: Limit on the process's address space in MiB; None for no limit.
    """

    def __init__(self, module: str, *, memory_mib: int | None) -> None:
        self._module = module
        self._memory_mib = memory_mib
        self._process: subprocess.Popen[bytes] | None = None
        self._owner = 0
        self._greeted = False
        self._lock = threading.Lock()
        _workers.add(self)

    def ask(self, request: object, *, deadline_s: float) -> object:
        """Send one request and wait for its reply; waiting for requests of other threads does not count against the deadline.

        Args:
            request: JSON data.
            deadline_s: Seconds that the reply may take once the worker is ready and free.

        Raises:
            WorkerTimeoutError: If no reply came in time.
            WorkerStartError: If the worker could not start.
            WorkerBrokenError: If the worker died, or wrote something that is not a reply.
        """
        line = json.dumps(request).encode() + b"\n"
        with self._lock:
            process = self._ready()
            try:
                return json.loads(_exchange(process, line, deadline_s))
            except WorkerTimeoutError:  # a subclass of OSError
                self._kill()
                raise
            except (OSError, ValueError) as error:
                self._kill()
                raise WorkerBrokenError(f"the worker {self._module} broke: {error}") from error
            except BaseException:  # after an interrupt, too: the next request must not get the reply to this request
                self._kill()
                raise

    def prepare(self) -> None:
        """Start the process if none runs and no request is in progress, without waiting until it is ready."""
        if self._lock.acquire(blocking=False):
            try:
                self._launch()
            finally:
                self._lock.release()

    @property
    def pid(self) -> int | None:
        """The id of the worker's process; None if this process has no running worker."""
        process = self._process
        runs = process is not None and self._owner == os.getpid() and process.poll() is None
        return process.pid if process is not None and runs else None

    def close(self) -> None:
        """Stop the process, if it runs."""
        with self._lock:
            self._kill()

    def _launch(self) -> subprocess.Popen[bytes]:
        """Return the process, started if none runs; the process may not have reported yet that it is ready."""
        process = self._process
        if process is not None and self._owner == os.getpid() and process.poll() is None:
            return process
        self._kill()
        self._process = process = self._start()
        self._owner, self._greeted = os.getpid(), False
        return process

    def _ready(self) -> subprocess.Popen[bytes]:
        process = self._launch()
        if self._greeted:
            return process
        try:
            started = _read_line(process, time.monotonic() + START_DEADLINE_S)
        except WorkerTimeoutError as error:
            self._kill()
            raise WorkerStartError(f"the worker {self._module} did not start in {START_DEADLINE_S} s") from error
        except WorkerBrokenError as error:
            self._kill()
            raise WorkerStartError(f"the worker {self._module} died while it started") from error
        if started != _READY:
            self._kill()
            raise WorkerStartError(f"the worker {self._module} started with {started[:100]!r}, not {_READY!r}")
        self._greeted = True
        return process

    def _start(self) -> subprocess.Popen[bytes]:
        memory = None if self._memory_mib is None else self._memory_mib << 20
        argument = json.dumps([self._module, memory, sys.path, os.getpid()])
        try:
            return subprocess.Popen(
                [sys.executable, "-I", "-c", _BOOTSTRAP, argument],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                bufsize=0,
            )
        except OSError as error:
            raise WorkerStartError(f"the worker {self._module} could not start: {error}") from error

    def _kill(self) -> None:
        process, self._process = self._process, None
        if process is None or self._owner != os.getpid():
            return
        process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                pipe.close()

    def _forget(self) -> None:
        """In a forked child: forget the parent's process, and replace the lock, which a thread of the parent may hold."""
        self._lock = threading.Lock()
        process, self._process = self._process, None
        if process is not None:
            process.returncode = 0  # this process never waits for it
            for pipe in (process.stdin, process.stdout):
                if pipe is not None:
                    pipe.close()

    def __reduce__(self) -> tuple[Any, ...]:
        """A copied or unpickled worker starts its own process."""
        return functools.partial(type(self), memory_mib=self._memory_mib), (self._module,)

    def __del__(self, finalizing: Callable[[], bool] = sys.is_finalizing) -> None:
        # At the interpreter's end the process sees that its parent is gone; a half-built object has no process.
        if hasattr(self, "_process") and not finalizing():
            self._kill()


_workers: weakref.WeakSet[Worker] = weakref.WeakSet()


def _forget_all() -> None:
    for worker in list(_workers):
        worker._forget()


os.register_at_fork(after_in_child=_forget_all)


def _exchange(process: subprocess.Popen[bytes], line: bytes, deadline_s: float) -> bytes:
    assert process.stdin is not None
    process.stdin.write(line)
    return _read_line(process, time.monotonic() + deadline_s)


def _read_line(process: subprocess.Popen[bytes], deadline: float) -> bytes:
    assert process.stdout is not None
    received = b""
    try:
        with selectors.DefaultSelector() as selector:
            selector.register(process.stdout, selectors.EVENT_READ)
            while not received.endswith(b"\n"):
                if not selector.select(max(0.0, deadline - time.monotonic())):
                    raise WorkerTimeoutError("the worker ran past its deadline")
                received += _read_some(process, process.stdout)
    except (WorkerBrokenError, WorkerTimeoutError) as error:
        error.progress = received.count(b" ")
        raise
    return received[:-1]


def _read_some(process: subprocess.Popen[bytes], pipe: IO[bytes]) -> bytes:
    some = os.read(pipe.fileno(), 1 << 16)
    if some:
        return some
    with contextlib.suppress(subprocess.TimeoutExpired):  # the worker only closed its pipe; the caller kills it
        if process.wait(_LAST_WORDS_S) == -signal.SIGPROF:
            raise WorkerTimeoutError("the worker used up its processor time")
    raise WorkerBrokenError("the worker died")
