"""One warm worker process with a deadline: plain data in, plain data out, killed and replaced when it runs over.

The parent waits on a pipe, so a deadline needs no signals and holds in any thread. A worker may also limit its own processor
time, which does not depend on how busy the machine is. A worker belongs to the process that
started it: after a fork the child starts its own. A worker whose parent died ends within a second.
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
_LAST_WORDS_S = 10.0  # how long a worker that closed its pipe may take to end, which is its time on a busy machine

# Limits are set before anything else is imported. A thread watches the parent: the kernel's own death signal (PR_SET_PDEATHSIG)
# would come already when the *thread* that started the worker ends.
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
    """A worker died, or its answer is not a reply."""

    progress = 0
    """The number of spaces that it wrote before its reply, one for each step of the request."""


class WorkerStartError(WorkerBrokenError):
    """A worker could not start."""


class WorkerTimeoutError(TimeoutError):
    """A request ran past its deadline or its processor time; the worker that served it was killed."""

    progress = 0
    """The number of spaces that it wrote before its reply, one for each step of the request."""


def limit_processor_time(seconds: float) -> None:
    """In a worker: end this process once it has worked for so many seconds from now; 0 lifts the limit."""
    signal.setitimer(signal.ITIMER_PROF, seconds)


@contextlib.contextmanager
def processor_time(seconds: float) -> Iterator[None]:
    """In a worker: within the block, this process may work for so many seconds, or ends."""
    limit_processor_time(seconds)
    yield
    limit_processor_time(0)


def answer_requests(requests: IO[bytes], replies: IO[bytes], answer: Callable[..., object]) -> None:
    """In a worker: say that it is ready, and answer requests by the protocol of `Worker` until there are no more.

    Args:
        requests: A line of JSON each, a list.
        replies: Where each reply goes as a line of JSON.
        answer: Gives the reply to the items of a request.
    """
    replies.write(_READY + b"\n")
    replies.flush()
    for line in requests:
        replies.write(json.dumps(answer(*json.loads(line))).encode() + b"\n")
        replies.flush()


def encode(value: object) -> str:
    """Pickle as text that fits into JSON."""
    return base64.b64encode(pickle.dumps(value)).decode()


def decode(text: str) -> Any:
    """Decode a text that `encode` returned."""
    return pickle.loads(base64.b64decode(text))


class Worker:
    """A process that runs `module.serve(requests, replies)`, started on first use and restarted when needed.

    `serve` writes the line `ready`, then answers each line of JSON with one line of JSON. It may write spaces before a reply,
    which an exception counts as the steps that were done.

    Args:
        module: Dotted name of the module to run.
        memory_mib: Limit on the process's address space; None for none.
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
        """Send one request and wait for its reply; other threads wait their turn, outside the deadline.

        Args:
            request: JSON data.
            deadline_s: Seconds from when the worker is ready and free.

        Raises:
            WorkerTimeoutError: If no reply came in time.
            WorkerStartError: If the worker could not start.
            WorkerBrokenError: If it died, or replied nonsense.
        """
        line = json.dumps(request).encode() + b"\n"
        with self._lock:
            process = self._ready()
            try:
                return json.loads(_exchange(process, line, deadline_s))
            except WorkerTimeoutError:  # an OSError, too
                self._kill()
                raise
            except (OSError, ValueError) as error:
                self._kill()
                raise WorkerBrokenError(f"the worker {self._module} broke: {error}") from error
            except BaseException:  # after an interrupt, too: the next request must not get this one's reply
                self._kill()
                raise

    def prepare(self) -> None:
        """Start the process, if none runs and nobody is asking, without waiting until it is ready."""
        if self._lock.acquire(blocking=False):
            try:
                self._launch()
            finally:
                self._lock.release()

    @property
    def pid(self) -> int | None:
        """The id of the process; None where none runs that belongs to this process."""
        process = self._process
        runs = process is not None and self._owner == os.getpid() and process.poll() is None
        return process.pid if process is not None and runs else None

    def close(self) -> None:
        """Stop the process, if it runs."""
        with self._lock:
            self._kill()

    def _launch(self) -> subprocess.Popen[bytes]:
        """The process, which may still have to say that it is ready."""
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
        """In a forked child: the process is the parent's, and the lock may be held by a thread that is not here."""
        self._lock = threading.Lock()
        process, self._process = self._process, None
        if process is not None:
            process.returncode = 0  # nobody here waits for it
            for pipe in (process.stdin, process.stdout):
                if pipe is not None:
                    pipe.close()

    def __reduce__(self) -> tuple[Any, ...]:
        """A copy, or what is unpickled elsewhere, starts a process of its own."""
        return functools.partial(type(self), memory_mib=self._memory_mib), (self._module,)

    def __del__(self, finalizing: Callable[[], bool] = sys.is_finalizing) -> None:
        # At the interpreter's end the process sees that its parent is gone; a half-built object has none.
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
    with contextlib.suppress(subprocess.TimeoutExpired):  # it only closed its pipe, and is killed by the caller
        if process.wait(_LAST_WORDS_S) == -signal.SIGPROF:
            raise WorkerTimeoutError("the worker used up its processor time")
    raise WorkerBrokenError("the worker died")
