"""The fork server at work: it forks the processes of one job after another.

A job's content is in files, which the server never reads; it only passes on their descriptors. The server enforces the limits
that need a watcher, reaps its children, and answers with the resources that they used. It ends when its parent ends, for
whatever reason.
"""

from __future__ import annotations

import fcntl
import functools
import json
import os
import select
import socket
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ..contract import MOST_DESCRIPTORS, Role
from ..isolation import syscalls
from ..isolation.jail import Jail
from ..limits import Limits
from .affinity import YOUNG_S, Placement
from .children import Child, LastingProcess, kill_strays
from .idle import Idleness

NULL = 15
"""Descriptor of the null device. The descriptors of the server and of incoming files are above it, those of a child below."""
_TICK_S = 0.25
_MAX_REQUEST = 4096
_NO_LIMIT_S = 1e9
"""Limit on the CPU seconds of a lasting process over all its jobs, in effect none; each job has its own watched limit."""
_exit = os._exit  # a program may replace it


class ParentGoneError(Exception):
    """The process that started the server has ended, or has closed its end of the socket."""


@dataclass(frozen=True, slots=True)
class _Request:
    """A job as decoded from `contract.encoded_request`."""

    roles: tuple[tuple[str, tuple[int, ...]], ...]
    pipes: int
    limits: Limits
    kept: bool


class Server:
    """Serves one job at a time."""

    def __init__(
        self,
        control: socket.socket,
        parent: int,
        jail: Jail,
        roles: Mapping[str, tuple[Role, Callable[[], object]]],
        taken_mib: int,
    ) -> None:
        """Make a server that ends with the process of the pidfd `parent`; `taken_mib` of address space belong to no program."""
        self._control = control
        self._jail = jail
        self._pid = os.getpid()
        self._parent = parent
        self._roles = roles
        self._lasting: LastingProcess | None = None
        self._kept: dict[int, Child] = {}
        """Processes that continue after their jobs, by descriptor of a pipe; each runs while the pipe's other end is open."""
        self._placement = Placement()
        self._taken_mib = taken_mib

    def serve(self) -> None:
        """Answer requests until the parent ends."""
        watch = select.poll()
        watch.register(self._control, select.POLLIN)
        watch.register(self._parent, select.POLLIN)
        while True:
            for pipe in self._kept:
                watch.register(pipe, 0)  # an event shows only that the other end was closed
            ready = dict(watch.poll())
            if self._parent in ready:
                return
            for pipe in self._kept.keys() & ready.keys():
                watch.unregister(pipe)
                self._kept.pop(pipe).reap()
                os.close(pipe)
            if self._control.fileno() not in ready:
                continue
            request, files = self._receive()
            self._placement.begin()
            try:
                answer = self._run(request, files)
            finally:
                self._placement.end()
                for descriptor in files:
                    os.close(descriptor)
            self._control.send(json.dumps(answer).encode())

    def _receive(self) -> tuple[_Request, list[int]]:
        data, descriptors, _, _ = socket.recv_fds(self._control, _MAX_REQUEST, MOST_DESCRIPTORS)
        if not data:
            raise ParentGoneError
        return _read_request(data), descriptors

    def _run(self, request: _Request, files: Sequence[int]) -> dict[str, Any]:
        """Run the processes of a job until the last one ends; return the fields of a `JobEnd`."""
        if request.kept:
            return {"processes": self._keep(request, files)}
        start = time.monotonic()
        ends = [end for _ in range(request.pipes) for end in os.pipe2(os.O_CLOEXEC)]
        known = (*files, *ends, NULL)
        given = [(name, tuple(known[index] for index in indices)) for name, indices in request.roles]
        run = self._run_beside_lasting if self._roles[given[-1][0]][0].lasting else self._run_forked
        try:
            stopped, children = run(given, ends, request.limits, start)
        finally:
            _close(ends)
            self._clean_up()
        processes = {name: child.end() for name, child in children.items()}
        return {"stopped": stopped, "seconds": time.monotonic() - start, "processes": processes}

    def _keep(self, request: _Request, files: Sequence[int]) -> list[str]:
        """Start a process that continues after its job, and return its role; do nothing if it could leave processes behind."""
        if not self._jail.forbids_forks:
            return []
        ((name, indices),) = request.roles
        child = self._fork(name, tuple(files[index] for index in indices), request.limits)
        self._placement.let_go(child)
        self._kept[fcntl.fcntl(files[0], fcntl.F_DUPFD_CLOEXEC, NULL + 1)] = child
        return [name]

    def _run_forked(self, given: _Given, ends: list[int], limits: Limits, start: float) -> _Outcome:
        """Run a job whose processes are all forked for it."""
        children = {name: self._fork(name, descriptors, limits) for name, descriptors in given}
        _close(ends)
        try:
            return self._supervise([*children.values()], limits, start), children
        finally:
            for child in children.values():
                child.reap()

    def _run_beside_lasting(self, given: _Given, ends: list[int], limits: Limits, start: float) -> _Outcome:
        """Run a job whose last role is a lasting process."""
        *others, (role, descriptors) = given
        lasting = self._hand_over(role, descriptors, limits)
        children = {name: self._fork(name, descriptors, limits) for name, descriptors in others}
        _close(ends, but=descriptors)  # a second process may need these descriptors
        try:
            stopped = self._supervise([*children.values(), lasting.child], limits, start, lasting.control.fileno())
            if stopped is None and lasting.has_declined():
                self._end_lasting()
                lasting = self._hand_over(role, descriptors, limits)
                stopped = self._supervise([*children.values(), lasting.child], limits, start, lasting.control.fileno())
        finally:
            for child in children.values():
                child.reap()
        self._settle(lasting, stopped)
        return stopped, {**children, role: lasting.child}

    def _hand_over(self, role: str, descriptors: Sequence[int], limits: Limits) -> LastingProcess:
        """Give a job to the current lasting process, or else to a new one."""
        if self._lasting is not None and (self._lasting.role, self._lasting.limits) == (role, limits):
            self._placement.bring(self._lasting.child)
            if self._lasting.begin(descriptors):
                return self._lasting
        self._end_lasting()
        self._lasting = self._fork_lasting(role, limits)
        self._lasting.begin(descriptors)
        return self._lasting

    def _settle(self, lasting: LastingProcess, stopped: str | None) -> None:
        """Let a lasting process finish if another process used up the time; end it unless it can serve another job."""
        # A process that stood still may do so for ever.
        used_up = stopped is not None and (stopped != "cpu" or lasting.child.clock() >= lasting.limits.cpu_s)
        if used_up or not lasting.answers():
            self._end_lasting()

    def _clean_up(self) -> None:
        if not self._jail.forbids_forks:
            self._end_lasting()
            kill_strays()

    def _end_lasting(self) -> None:
        if self._lasting is not None:
            self._lasting.end()
            self._lasting = None

    def _fork_lasting(self, role: str, limits: Limits) -> LastingProcess:
        mine, theirs = socket.socketpair()
        with theirs:
            child = self._fork(role, (NULL, NULL, NULL, theirs.fileno()), replace(limits, cpu_s=_NO_LIMIT_S))
        return LastingProcess(child, mine, role, limits)

    def _fork(self, name: str, descriptors: tuple[int, ...], limits: Limits) -> Child:
        role, run = self._roles[name]
        room = _with_room(limits, self._taken_mib, role.output_mib)
        settings = () if role.confines_itself else self._jail.settings(room)
        pid = syscalls.fork()
        if pid == 0:
            try:
                self._jail.confine(descriptors, settings, self._pid, receives_descriptors=role.lasting)
                run()
            finally:
                _exit(1)
        return Child(pid, os.pidfd_open(pid), cpu=self._placement.cpu, is_tree=role.confines_itself)

    def _supervise(self, children: Sequence[Child], limits: Limits, start: float, *finished: int) -> str | None:
        """Wait until the last child ends or a `finished` descriptor is readable; return the limit exceeded before, if any."""
        ends = {children[-1].handle, *finished}
        watch = select.poll()
        for descriptor in (*ends, self._parent, self._control.fileno()):
            watch.register(descriptor, select.POLLIN)
        idleness, spent, last = Idleness(), 0.0, start
        tick_s = YOUNG_S
        while True:
            left = limits.cpu_s - spent
            ready = dict(watch.poll(1000 * min(tick_s, max(left, 0.01))))
            if not ends.isdisjoint(ready):
                return None
            if ready:
                raise ParentGoneError
            if tick_s == YOUNG_S:
                self._placement.let_go(*children)
                tick_s = _TICK_S
            now = time.monotonic()
            clocks = [child.clock() for child in children]
            if any(child.is_tree and child.exceeds(limits.memory_mib << 20) for child in children):
                return "memory"
            idleness.add(now - last, sum(clocks) - spent)
            spent, last = sum(clocks), now
            if max(clocks) >= limits.cpu_s:
                return "cpu"
            if idleness.seconds >= limits.idle_s:
                return "idle"
            if now - start >= limits.wall_s:
                return "wall"


_Given = list[tuple[str, tuple[int, ...]]]
_Outcome = tuple[str | None, dict[str, Child]]


@functools.lru_cache(8)
def _with_room(limits: Limits, more_mib: int, output_mib: int) -> Limits:
    """Limits with more address space and with at least `output_mib` for files."""
    return replace(limits, memory_mib=limits.memory_mib + more_mib, output_mib=max(limits.output_mib, output_mib))


@functools.lru_cache(8)
def _read_request(data: bytes) -> _Request:
    request = json.loads(data)
    roles = tuple((name, tuple(indices)) for name, indices in request["roles"])
    return _Request(roles, request["pipes"], Limits(**request["limits"]), request["kept"])


def _close(ends: list[int], but: Collection[int] = ()) -> None:
    """Close descriptors other than `but`, and remove them from the list."""
    for end in ends:
        if end not in but:
            os.close(end)
    ends[:] = [end for end in ends if end in but]
