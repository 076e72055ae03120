"""A pool of fork servers that is shared by threads, starts servers on first use, and starts anew in a forked process."""

from __future__ import annotations

import contextlib
import os
import sys
import threading
import weakref
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from verifiers.errors import InvalidArgumentError, SandboxUnavailableError
from verifiers.sandbox.contract import Contract
from verifiers.sandbox.descriptors import check_server_limit, enough_descriptors
from verifiers.sandbox.isolation.probe import isolation_problem
from verifiers.sandbox.packages import Packages
from verifiers.sandbox.worker import Worker, WorkerDiedError

_ATTEMPTS = 2
_Result = TypeVar("_Result")
_ADVICE = (
    "Programs run isolated on Linux 5.13 or later, x86-64 or aarch64, with seccomp filters and with landlock or user "
    "namespaces; in a container, the seccomp profile has to permit one of these. With isolation='available', seccomp filters "
    "are enough: programs then open no file. To run programs you trust without isolation, pass isolation='none'."
)


class Pool:
    """Fork servers, each lent to one thread at a time."""

    def __init__(self, size: int, isolation: str, packages: Packages, contract: Contract | None = None) -> None:
        self._size = size
        self._contract = contract
        self._packages = packages
        self._isolation = isolation
        self._entered: tuple[str, ...] | None = None
        """The layers that a server has entered; None until a server has started."""
        self._reset()
        self._finalizer = weakref.finalize(self, _stop_all, self._idle)
        _pools.add(self)

    def _reset(self) -> None:
        self._changed = threading.Condition()
        self._idle: list[Worker] = []
        self._count = 0

    def forget(self) -> None:
        """Drop all workers in a forked process, since they belong to the parent."""
        for worker in self._idle:
            worker.forget()
        self._finalizer.detach()
        self._reset()
        self._finalizer = weakref.finalize(self, _stop_all, self._idle)

    def attempt(self, job: Callable[[Pool], _Result]) -> _Result:
        """Do a job that needs workers, repeating it once if a worker dies; raises WorkerDiedError if another dies."""
        check_platform()  # before the job makes files in memory
        problem = ""
        for _ in range(_ATTEMPTS):
            try:
                with enough_descriptors():
                    return job(self)
            except WorkerDiedError as error:
                problem = str(error)
        raise WorkerDiedError(f"the fork server died {_ATTEMPTS} times: {problem}")

    @contextlib.contextmanager
    def worker(self) -> Iterator[Worker]:
        """Lend a worker, waiting if all are lent; a worker that died or was left busy is never lent again.

        Raises:
            SandboxUnavailableError: If the system does not provide the requested isolation.
            InvalidArgumentError: If a package can't be loaded.
            WorkerDiedError: If a new server could not be started.
        """
        worker = self._take()
        usable = False
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
            self._give_back(worker if usable else None)

    def _take(self) -> Worker:
        with self._changed:
            self._changed.wait_for(lambda: self._idle or self._count < self._size)
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

    def _give_back(self, worker: Worker | None) -> None:
        with self._changed:
            if worker is None:
                self._count -= 1
            else:
                self._idle.append(worker)
            self._changed.notify()

    def _start(self) -> Worker:
        check_platform()
        with enough_descriptors():
            check_server_limit()
            worker = Worker(self._isolation, self._packages, self._contract)
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
                pass  # the server names its layers when it starts
        return "+".join(self._entered or ()) or "none"

    def idle_pids(self) -> tuple[int, ...]:
        """Process ids of the servers that wait for work."""
        with self._changed:
            return tuple(worker.pid for worker in self._idle)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the settings: a copy starts servers of its own."""
        return type(self), (self._size, self._isolation, self._packages, self._contract)

    def close(self) -> None:
        """End every idle worker; the pool starts new ones if it is used again."""
        with self._changed:
            workers = self._idle[:]
            self._idle.clear()
            self._count -= len(workers)
        for worker in workers:
            worker.stop()


def available_cpus(cgroups: str = "/sys/fs/cgroup", own: str = "/proc/self/cgroup") -> int:
    """The number of CPUs that this process may use: those it may run on, or fewer if its container's quota is smaller.

    `cgroups` is the mount point of control groups (version 2), and `own` the file that names this process's group.
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


def check_platform() -> None:
    """Raise SandboxUnavailableError if this machine can't run programs at all."""
    lacks = [f"os.{name}" for name in ("memfd_create", "pidfd_open", "register_at_fork") if not hasattr(os, name)]
    if sys.platform == "linux" and not lacks:
        return
    reason = f", whose Python lacks {' and '.join(lacks)}" if lacks else ""
    raise SandboxUnavailableError(
        f"programs run in processes of Linux, also with isolation='none', and this is {sys.platform!r}{reason}. Run this in a "
        "Linux container or virtual machine, for example with `docker run --rm -it -v .:/work -w /work python bash`: no "
        "privileges are needed there"
    )


def _stop_all(workers: list[Worker]) -> None:
    for worker in workers:
        worker.stop()


_pools: weakref.WeakSet[Pool] = weakref.WeakSet()


def _forget_all() -> None:
    for pool in list(_pools):
        pool.forget()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_all)
