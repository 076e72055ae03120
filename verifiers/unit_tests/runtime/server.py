"""The fork server: a warm interpreter of one thread that forks a candidate, and a tester, for each job.

It never sees a job: programs and tests lie in files whose descriptors pass through it. It enforces the limits that need a
watcher, reaps its children and reports what they used. It ends when its parent does, however that ends.
"""

from __future__ import annotations

import contextlib
import fcntl
import gc
import importlib
import json
import os
import select
import signal
import site
import socket
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from . import candidate, syscalls, tester
from .jail import Jail, Limits

PRELOADED = """
abc array bisect calendar cmath collections collections.abc contextlib copy dataclasses datetime decimal enum
fractions functools hashlib heapq io itertools json math numbers operator os queue random re statistics string
struct sys textwrap threading time traceback types typing unicodedata
"""
"""Modules that programs commonly import, loaded before the first fork."""

_FIRST_OWN = 16
"""The server's own descriptors, and those that arrive, lie at or above this; a child's final ones lie below."""
_RECURSION_LIMIT = 1000 + 20
"""What a script has, and what the candidate's own frames below it take."""
_TICK_S = 0.25
_IDLE_SHARE = 0.004
"""A tick in which candidate and tester together had less than this share of a CPU counts as idle."""
_MAX_REQUEST = 4096
_MAX_DESCRIPTORS = 8


@dataclass(slots=True)
class Child:
    """A child and, once it has ended, what it used."""

    pid: int
    handle: int
    status: int | None = None
    cpu_s: float = 0.0
    memory_bytes: int = 0

    def clock(self) -> float:
        """CPU seconds so far, all threads together."""
        # The clock of a process by its id, as clock_getcpuclockid makes it.
        return time.clock_gettime((~self.pid << 3) | 2)

    def reap(self) -> None:
        """Kill the child if it still runs, and collect it."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)
        _, self.status, usage = os.wait4(self.pid, 0)
        os.close(self.handle)
        self.cpu_s = usage.ru_utime + usage.ru_stime
        self.memory_bytes = usage.ru_maxrss * 1024

    def summary(self) -> dict[str, Any]:
        """What the parent is told."""
        assert self.status is not None
        code = os.waitstatus_to_exitcode(self.status)
        return {"exit": code, "cpu_s": self.cpu_s, "memory_bytes": self.memory_bytes}


def _kill_strays() -> None:
    """Without a filter a program can fork: kill what it left, which has become this process's children."""
    path = f"/proc/self/task/{os.getpid()}/children"
    while os.path.exists(path):
        with open(path) as file:
            pids = file.read().split()
        if not pids:
            return
        for pid in pids:
            os.kill(int(pid), signal.SIGKILL)
            os.waitpid(int(pid), 0)


class ParentGoneError(Exception):
    """The process that started the server has ended or closed its end."""


class Server:
    """Serves one job at a time."""

    def __init__(self, control: socket.socket, parent: int, jail: Jail) -> None:
        """Make a server.

        Args:
            control: Requests come and answers go here.
            parent: A pidfd of the process to end with.
            jail: What confines the children.
        """
        self._control = control
        self._jail = jail
        self._pid = os.getpid()
        self._parent = parent

    def serve(self) -> None:
        """Answer requests until the parent ends."""
        watch = select.poll()
        watch.register(self._control, select.POLLIN)
        watch.register(self._parent, select.POLLIN)
        while True:
            ready = dict(watch.poll())
            if self._parent in ready:
                return
            request, descriptors = self._receive()
            try:
                answer = self._run(request, descriptors)
            finally:
                for descriptor in descriptors:
                    os.close(descriptor)
            self._control.send(json.dumps(answer).encode())

    def _receive(self) -> tuple[dict[str, Any], list[int]]:
        data, descriptors, _, _ = socket.recv_fds(self._control, _MAX_REQUEST, _MAX_DESCRIPTORS)
        if not data:
            raise ParentGoneError
        return json.loads(data), descriptors

    def _run(self, request: dict[str, Any], descriptors: Sequence[int]) -> dict[str, Any]:
        limits = Limits(**request["limits"])
        start = time.monotonic()
        children = self._fork_pair(descriptors, limits) if request["tested"] else self._fork_script(descriptors, limits)
        try:
            stopped = self._supervise(children, limits, start)
        finally:
            for child in children:
                child.reap()
            if "seccomp" not in self._jail.entered:
                _kill_strays()
        return {
            "stopped": stopped,
            "seconds": time.monotonic() - start,
            "candidate": children[0].summary(),
            "tester": children[-1].summary(),
        }

    def _fork_pair(self, descriptors: Sequence[int], limits: Limits) -> list[Child]:
        """Fork candidate and tester; descriptors are stdin, stdout, stderr, program, tests, report."""
        stdin, stdout, stderr, program, tests, report = descriptors
        mine, theirs = socket.socketpair()
        with mine, theirs:
            runs = (stdin, stdout, stderr, mine.fileno(), program)
            judges = (stdin, stdin, stdin, theirs.fileno(), tests, report)
            return [
                self._fork(runs, limits, candidate.answer_calls),
                self._fork(judges, limits, tester.run_tests),
            ]

    def _fork_script(self, descriptors: Sequence[int], limits: Limits) -> list[Child]:
        """Fork a program that stands alone; descriptors are stdin, stdout, stderr, program."""
        return [self._fork(tuple(descriptors), limits, candidate.run_script)]

    def _fork(self, descriptors: tuple[int, ...], limits: Limits, run: Callable[[], None]) -> Child:
        pid = syscalls.fork()
        if pid == 0:
            try:
                self._jail.confine(descriptors, limits, self._pid)
                run()
            finally:
                os._exit(1)
        return Child(pid, os.pidfd_open(pid))

    def _supervise(self, children: list[Child], limits: Limits, start: float) -> str | None:
        """Wait for the last child to end, or for a limit to be passed: then say which."""
        watch = select.poll()
        for descriptor in (children[-1].handle, self._parent, self._control.fileno()):
            watch.register(descriptor, select.POLLIN)
        idle, spent, last = 0.0, 0.0, start
        while True:
            left = limits.cpu_s - spent
            ready = dict(watch.poll(1000 * min(_TICK_S, max(left, 0.01))))
            if children[-1].handle in ready:
                return None
            if ready:
                raise ParentGoneError
            now = time.monotonic()
            clocks = [child.clock() for child in children]
            idle += now - last if sum(clocks) - spent < _IDLE_SHARE * (now - last) else 0.0
            spent, last = sum(clocks), now
            if max(clocks) >= limits.cpu_s:
                return "cpu"
            if idle >= limits.idle_s:
                return "idle"
            if now - start >= limits.wall_s:
                return "wall"


def _move_up(control: int) -> int:
    """Move a descriptor out of the way of the children's, fill its place and what is free below, and return it."""
    moved = fcntl.fcntl(control, fcntl.F_DUPFD_CLOEXEC, _FIRST_OWN)
    null = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
    for number in range(_FIRST_OWN):
        if number != null:
            os.dup2(null, number, inheritable=False)
    return moved


def _warm_up() -> None:
    for name in PRELOADED.split():
        importlib.import_module(name)
    site.setquit()  # the interpreter runs without `site`; scripts expect its exit() and quit()
    # All that can be prepared here is: what a child writes to costs it a copy of the page.
    sys.argv = ["solution.py"]
    sys.setrecursionlimit(_RECURSION_LIMIT)
    for name in [name for name in sys.modules if name.partition(".")[0] == "runtime"]:
        del sys.modules[name]
    sys.path[:] = [path for path in sys.path if os.path.basename(path) != "unit_tests"]
    gc.collect()
    gc.freeze()
    gc.disable()


def _probe(jail: Jail) -> list[str]:
    """Try in a confined child what must not work, and return what did."""
    reader, writer = os.pipe()
    limits = Limits(cpu_s=5, wall_s=5, idle_s=5, memory_mib=1024, output_mib=1, processes=64)
    server = os.getpid()
    pid = syscalls.fork()
    if pid == 0:
        try:
            jail.confine((0, 1, 2, writer), limits, server)
            os.write(3, " ".join(name for name, attempt in _ATTEMPTS.items() if _works(attempt)).encode() or b"-")
        finally:
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as file:
        found = file.read()
    os.waitpid(pid, 0)
    return ["anything: the probe did not finish"] if not found else found.replace("-", "").split()


def _works(attempt: Callable[[], object]) -> bool:
    try:
        attempt()
    except OSError:
        return False
    return True


def _fork_and_wait() -> None:
    pid = os.fork()
    if pid == 0:
        os._exit(0)
    os.waitpid(pid, 0)


_ATTEMPTS: dict[str, Callable[[], object]] = {
    "fork": _fork_and_wait,
    "sockets": lambda: socket.socket().close(),
    "signals": lambda: os.kill(os.getppid(), 0),
    "reading": lambda: os.close(os.open("/proc/version", os.O_RDONLY)),
    "listing": lambda: os.listdir("/etc"),
    "writing": lambda: os.close(os.open("/tmp/probe", os.O_WRONLY | os.O_CREAT | os.O_EXCL)),
}


def main() -> None:
    """Serve: the arguments are the control socket's descriptor, the parent's process id, and the wanted layers."""
    descriptor, parent, wanted = int(sys.argv[1]), int(sys.argv[2]), frozenset(filter(None, sys.argv[3].split(",")))
    control = socket.socket(fileno=_move_up(descriptor))
    _warm_up()
    with contextlib.suppress(ParentGoneError, ConnectionError):
        _start(control, parent, wanted).serve()


def _start(control: socket.socket, parent: int, wanted: frozenset[str]) -> Server:
    watched = os.pidfd_open(parent)
    if os.getppid() != parent:
        raise ParentGoneError
    if sys.platform == "linux":
        syscalls.prctl(syscalls.PR_SET_CHILD_SUBREAPER, 1)
    jail = Jail(wanted)
    server = Server(control, watched, jail)
    escapes = _probe(jail) if wanted else []
    hello = {"layers": jail.entered, "missing": jail.missing, "escapes": escapes}
    control.send(json.dumps(hello).encode())
    return server
