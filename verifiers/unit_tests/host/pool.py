"""A pool of fork servers, started on first use, shared by threads, and created anew in a forked process."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import subprocess
import sys
import threading
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any, TypeVar

from verifiers.errors import InvalidArgumentError, SandboxUnavailableError
from verifiers.unit_tests.host.packages import Packages
from verifiers.unit_tests.host.portable import PortableWorker, is_needed, memory_file, missing
from verifiers.unit_tests.sandbox.isolation.probe import isolation_problem
from verifiers.unit_tests.sandbox.protocol.limits import LAYERS

_FOLDER = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
_BOOT = """
import fcntl, os, sys
errors = fcntl.fcntl(2, fcntl.F_DUPFD_CLOEXEC, 16)
try:
    sys.path.insert(0, sys.argv.pop(1))
    from sandbox.protocol import unpatched
    unpatched.install()
    from sandbox.server.server import main
    main()
except Exception:
    import traceback
    os.write(errors, traceback.format_exc().encode(errors="replace"))
"""
"""The server passes its standard error on, so the error that ends it is written to a descriptor that it does not use."""
_LAST_WORDS = 2000
"""Number of bytes that are kept of a server's last output."""
_START_S = 60.0
_END_S = 1.0
_GRACE_S = 30.0
_ATTEMPTS = 2
_Result = TypeVar("_Result")
MOST_WAITING = 4
"""Maximum number of servers for each program that may run at a time: waiting programs occupy servers too."""
_ADVICE = (
    "Programs run isolated on Linux 5.13 or later, x86-64 or aarch64, with seccomp filters and with landlock or user "
    "namespaces; in a container, the seccomp profile has to permit one of these. With isolation='available', seccomp filters "
    "are enough: programs then open no file. To run programs you trust without isolation, pass isolation='none'."
)


class WorkerDiedError(Exception):
    """A fork server ended, or did not answer in time."""


class ForkServerWorker:
    """The owner's handle to a fork server; used by one thread at a time."""

    def __init__(self, isolation: str, packages: Packages) -> None:
        """Start a fork server; WorkerDiedError if it ends before it is ready."""
        self.on_waiting: Callable[[object, bool], object] | None = None
        """Called, while the worker is lent, when its job starts to wait for anything but a CPU, and when it continues."""
        self.in_step = True
        """Whether the server has answered every request; if not, its next answer belongs to an earlier one."""
        self._control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._errors = os.fdopen(memory_file("errors"), "rb")
        with theirs:
            self._process = subprocess.Popen(
                _command(theirs.fileno(), isolation, packages),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=self._errors,
                pass_fds=[theirs.fileno()],
                env=_environment(packages),
                cwd="/",
                start_new_session=True,
            )
        try:
            self.hello: Mapping[str, Any] = self._receive(_START_S)
        except WorkerDiedError:
            self.stop()
            raise

    def run(self, request: bytes, descriptors: Sequence[int], wall_s: float) -> dict[str, Any]:
        """Run a job, and return the server's answer; WorkerDiedError if there is none well after the job's wall limit."""
        self.in_step = False
        try:
            socket.send_fds(self._control, [request], list(descriptors))
        except OSError as error:
            raise WorkerDiedError(self._last_words(str(error))) from error
        while "waits" in (answer := self._receive(wall_s + _GRACE_S)):
            if self.on_waiting is not None:
                self.on_waiting(self, answer["waits"])
        self.in_step = True
        return answer

    def _receive(self, timeout_s: float) -> dict[str, Any]:
        self._control.settimeout(timeout_s)
        try:
            data = self._control.recv(1 << 16)
        except OSError as error:
            raise WorkerDiedError(str(error) or "no answer") from error
        if not data:
            raise WorkerDiedError(self._last_words("the fork server ended"))
        answer: dict[str, Any] = json.loads(data)
        return answer

    def _last_words(self, problem: str) -> str:
        """The problem, with the server's exit status and its last output."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            problem += f" (exit status {self._process.wait(_END_S)})"
        descriptor = self._errors.fileno()
        size = os.fstat(descriptor).st_size
        written = os.pread(descriptor, _LAST_WORDS, max(0, size - _LAST_WORDS)).decode(errors="replace").strip()
        return f"{problem}: {written}" if written else problem

    @property
    def has_ended(self) -> bool:
        """Whether the server has ended."""
        return self._process.poll() is not None

    @property
    def pid(self) -> int:
        """Process id of the fork server."""
        return self._process.pid

    def stop(self) -> None:
        """End the server and its children, and wait until it is gone."""
        self._control.close()
        self._errors.close()
        self._process.kill()
        self._process.wait()

    def forget(self) -> None:
        """In a forked process: release a server that belongs to the parent, without ending it."""
        self._control.close()
        self._errors.close()
        self._process.returncode = 0  # it is not this process's child, so there is nothing to wait for


def _command(descriptor: int, isolation: str, packages: Packages) -> list[str]:
    flags = ["-s", "-S", "-P", *(["-B"] if sys.dont_write_bytecode else []), "-X", "frozen_modules=on"]
    settings = {
        "layers": () if isolation == "none" else LAYERS,
        "may_close_files": isolation == "available",
        "packages": asdict(packages),
    }
    return [sys.executable, *flags, "-c", _BOOT, _FOLDER, str(descriptor), str(os.getpid()), json.dumps(settings)]


_ONE_THREAD = {
    f"{library}_NUM_THREADS": "1" for library in ("OMP", "OPENBLAS", "MKL", "BLIS", "VECLIB_MAXIMUM", "NUMEXPR")
}
"""A process with several threads can't be forked, and programs share their CPUs with others."""


def _environment(packages: Packages) -> dict[str, str]:
    """A fixed environment: it contains no secrets, and makes hashes, and so output, equal in every run."""
    fixed = {"PYTHONHASHSEED": "0", "PYTHONUTF8": "1", "MALLOC_ARENA_MAX": "1", "LC_ALL": "C.UTF-8", "HOME": "/"}
    searched = os.environ.get("LD_LIBRARY_PATH")
    return fixed | ({"LD_LIBRARY_PATH": searched} if searched else {}) | (_ONE_THREAD if packages.names else {})


AnyWorker = ForkServerWorker | PortableWorker


class Pool:
    """Fork servers, each lent to one thread at a time."""

    def __init__(self, size: int, isolation: str, packages: Packages) -> None:
        self._size = size
        self._packages = packages
        self._isolation = isolation
        self._entered: tuple[str, ...] | None = None
        """The layers that a server has entered, None before the first server."""
        self._reset()
        self._finalizer = weakref.finalize(self, _stop_all, self._idle)
        _pools.add(self)

    def _reset(self) -> None:
        self._changed = threading.Condition()
        self._idle: list[AnyWorker] = []
        self._count = 0
        self._waiting: set[object] = set()
        """The lent workers whose job needs no CPU at the moment."""

    def forget(self) -> None:
        """In a forked process: start without workers."""
        for worker in self._idle:
            worker.forget()
        self._finalizer.detach()
        self._reset()
        self._finalizer = weakref.finalize(self, _stop_all, self._idle)

    def attempt(self, job: Callable[[Pool], _Result]) -> _Result:
        """Do a job that needs workers of this pool, once more if one dies under it; WorkerDiedError if another does."""
        problem = ""
        for _ in range(_ATTEMPTS):
            try:
                return job(self)
            except WorkerDiedError as error:
                problem = str(error)
        raise WorkerDiedError(f"the fork server died {_ATTEMPTS} times: {problem}")

    @contextlib.contextmanager
    def worker(self) -> Iterator[AnyWorker]:
        """Lend a worker, waiting for one if all are lent; one that died meanwhile, or was left working, is not lent again.

        Raises:
            SandboxUnavailableError: If the system does not provide the requested isolation.
            InvalidArgumentError: If a package can't be loaded.
            WorkerDiedError: If a new server could not be started.
        """
        worker = self._take()
        usable = False
        worker.on_waiting = self._set_waiting
        try:
            yield worker
            usable = True
        except WorkerDiedError:
            raise
        except BaseException:
            usable = worker.in_step
            raise
        finally:
            if not usable:
                worker.stop()
            worker.on_waiting = None  # which would keep the pool alive
            self._set_waiting(worker, False)
            self._give_back(worker if usable else None)

    def _take(self) -> AnyWorker:
        with self._changed:
            self._changed.wait_for(self._has_room)
            while self._idle:
                worker = self._idle.pop()
                if not worker.has_ended:
                    return worker
                worker.stop()
                self._count -= 1
            self._count += 1
        try:
            return self._start()
        except BaseException:
            self._give_back(None)
            raise

    def _has_room(self) -> bool:
        """Whether a worker may be lent: those whose jobs wait do not count, up to a maximum number."""
        running = self._count - len(self._idle) - len(self._waiting)
        return running < self._size and bool(self._idle or self._count < MOST_WAITING * self._size)

    def _set_waiting(self, worker: object, waits: bool) -> None:
        with self._changed:
            (self._waiting.add if waits else self._waiting.discard)(worker)
            self._changed.notify()

    def _give_back(self, worker: AnyWorker | None) -> None:
        with self._changed:
            if worker is None:
                self._count -= 1
            else:
                self._idle.append(worker)
            self._changed.notify()

    def _start(self) -> AnyWorker:
        check_platform(self._isolation)
        worker: AnyWorker
        if is_needed():
            worker = PortableWorker(self._packages, _environment(self._packages))
        else:
            worker = ForkServerWorker(self._isolation, self._packages)
        if "unimportable" in worker.hello:
            worker.stop()
            raise InvalidArgumentError(f"packages: {worker.hello['unimportable']}")
        unusable: str | None = worker.hello.get("unusable")
        problem = unusable or isolation_problem(worker.hello, self._isolation)
        if problem:
            worker.stop()
            raise SandboxUnavailableError(f"{problem}. {_ADVICE}")
        self._entered = tuple(worker.hello["layers"])
        return worker

    def isolation(self) -> str:
        """The layers of isolation in force, joined by `+`, or `"none"`; starts a server if none was started yet.

        Raises:
            SandboxUnavailableError: If the system does not provide the requested isolation.
            WorkerDiedError: If a server could not be started.
        """
        if self._isolation != "none" and self._entered is None:
            with self.worker():
                pass  # it reports them when it starts
        return "+".join(self._entered or ()) or "none"

    def idle_pids(self) -> tuple[int, ...]:
        """Process ids of the servers that wait for work."""
        with self._changed:
            return tuple(worker.pid for worker in self._idle)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the settings: a copy starts servers of its own."""
        return type(self), (self._size, self._isolation, self._packages)

    def close(self) -> None:
        """End every idle worker; the pool starts new ones if it is used again."""
        with self._changed:
            workers = self._idle[:]
            self._idle.clear()
            self._count -= len(workers)
        for worker in workers:
            worker.stop()


def available_cpus(cgroups: str = "/sys/fs/cgroup", own: str = "/proc/self/cgroup") -> int:
    """The number of CPUs that this process may use: those it may run on, or its container's quota if that is less.

    `cgroups` is where control groups are mounted (version 2), and `own` the file that names that of this process.
    """
    cpus = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    with contextlib.suppress(OSError, ValueError):
        with open(own) as file:
            group = next((line.strip().removeprefix("0::") for line in file if line.startswith("0::")), "/")
        while group:
            with contextlib.suppress(OSError, ValueError), open(f"{cgroups}{group.rstrip('/')}/cpu.max") as file:
                quota, period = map(int, file.read().split())  # a group without a quota says "max"
                cpus = min(cpus, max(1, -(-quota // period)))
            group = group.rstrip("/").rpartition("/")[0] + "/" if group != "/" else ""
    return cpus


def check_platform(isolation: str) -> None:
    """Raise SandboxUnavailableError if no program can be run here at all."""
    lacks = missing()
    if (sys.platform == "linux" and not lacks) or (isolation == "none" and is_needed()):
        return
    reason = f", whose Python lacks {' and '.join(lacks)}" if lacks else ""
    alone = ". For programs that you trust, isolation='none' runs them here, slowly" if sys.platform != "win32" else ""
    raise SandboxUnavailableError(
        f"programs are isolated by means of Linux, and this is {sys.platform!r}{reason}. Run this in a Linux container or "
        "virtual machine, for example with `docker run --rm -it -v .:/work -w /work python bash`: no privileges are needed "
        f"there{alone}"
    )


def _stop_all(workers: list[AnyWorker]) -> None:
    for worker in workers:
        worker.stop()


_pools: weakref.WeakSet[Pool] = weakref.WeakSet()


def _forget_all() -> None:
    for pool in list(_pools):
        pool.forget()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_all)
