"""The fork server: a warm interpreter of one thread that forks a candidate for each job, and a tester for many.

It never reads a job: programs and tests are in files whose descriptors pass through it. It enforces the limits that need a
watcher, reaps its children and reports what they used. It ends when its parent does, for whatever reason.
"""

from __future__ import annotations

import contextlib
import fcntl
import functools
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
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ..candidate import candidate
from ..isolation import devices, probe, syscalls
from ..isolation.jail import MIB, MOST_DESCRIPTORS, Jail, limit_descriptors, raise_stack_limit
from ..protocol import packages, unpatched
from ..protocol.channel import Channel, ChannelClosedError
from ..protocol.limits import Limits
from ..tester import tester
from ..tester.report import MAX_REPORT
from ..tester.test_files import own_process
from . import whole_library
from .child_processes import TESTER_LIFE_S, Child, TesterProcess, kill_strays
from .cpu_affinity import YOUNG_S, Placement
from .idle_detector import Idleness
from .page_pinning import pin_written_by

PRELOADED = """
abc array bisect collections collections.abc contextlib copy dataclasses datetime decimal enum fractions functools heapq io
itertools json math numbers operator os queue random re statistics string struct sys textwrap threading time traceback types
typing
"""
"""Modules that programs commonly import, loaded before the first fork; each costs every fork a little."""

_FIRST_OWN = 16
"""The server's own descriptors, and those that arrive, lie at or above this; a child's final ones lie below."""
_NULL = _FIRST_OWN - 1
"""A descriptor of the null device."""
_RECURSION_LIMIT = 1000 + 20
"""The recursion limit of a script, plus the candidate's own frames below it."""
_TICK_S = 0.25
_WAITING_S = 0.5
"""A job that has been idle for this long needs no CPU at the moment: another may run beside it."""
_START_S = 60
_TRIAL_LIMITS = Limits(cpu_s=5, wall_s=5, idle_s=5, memory_mib=1024, output_mib=1, processes=64)
_SAMPLE = """
from typing import List


def call(numbers: List[int]) -> int:
    return sum(number for number in numbers if number > 1)
"""
_SAMPLE_CALL = ["call", ["h", 0], [["r", 0]], [], [[0, ["l", 3, 1, -2, True, 10]]], [0]]
_MAX_REQUEST = 4096
_MAX_DESCRIPTORS = 8


class ParentGoneError(Exception):
    """The process that started the server has ended or closed its end."""


class Server:
    """Serves one job at a time."""

    def __init__(self, control: socket.socket, parent: int, jail: Jail, taken_mib: int) -> None:
        """Make a server that ends with the process of the pidfd `parent`; `taken_mib` of address space are not a program's."""
        self._control = control
        self._jail = jail
        self._pid = os.getpid()
        self._parent = parent
        self._tester: TesterProcess | None = None
        self._placement = Placement()
        self._taken_mib = taken_mib

    def serve(self) -> None:
        """Answer requests until the parent ends."""
        watch = select.poll()
        watch.register(self._control, select.POLLIN)
        watch.register(self._parent, select.POLLIN)
        while True:
            ready = dict(watch.poll())
            if self._parent in ready:
                return
            (tested, limits), descriptors = self._receive()
            run = self._run_tested if tested else self._run_script
            self._placement.begin()
            try:
                answer = run(descriptors, limits)
            finally:
                self._placement.end()
                for descriptor in descriptors:
                    os.close(descriptor)
            self._control.send(json.dumps(answer).encode())

    def _receive(self) -> tuple[tuple[bool, Limits], list[int]]:
        data, descriptors, _, _ = socket.recv_fds(self._control, _MAX_REQUEST, _MAX_DESCRIPTORS)
        if not data:
            raise ParentGoneError
        return _read_request(data), descriptors

    def _run_tested(self, descriptors: Sequence[int], limits: Limits) -> dict[str, Any]:
        """Run candidate and tester; descriptors are stdin, stdout, stderr, program, tests, report."""
        start = time.monotonic()
        stdin, stdout, stderr, program, tests, report = descriptors
        requests, replies = os.pipe2(os.O_CLOEXEC), os.pipe2(os.O_CLOEXEC)
        judging = (replies[0], requests[1], tests, report)
        running = (stdin, stdout, stderr, requests[0], replies[1], program)
        with _closing(replies[0], requests[1]):
            with _closing(requests[0], replies[1]):
                shared = self._begin_tests(judging, limits)
                child = self._fork(running, limits, candidate.answer_calls)
            try:
                try:
                    stopped = self._supervise([child, shared.child], limits, start, shared.control.fileno())
                    if stopped is None and shared.has_declined():
                        self._end_tester()
                        shared = self._begin_tests(judging, limits)
                        stopped = self._supervise([child, shared.child], limits, start, shared.control.fileno())
                finally:
                    child.reap()
                self._settle(shared, stopped)
            finally:
                self._clean_up()
        return self._answer(stopped, start, child) | {"tester_exit": shared.child.exit_code()}

    def _begin_tests(self, judging: tuple[int, ...], limits: Limits) -> TesterProcess:
        """Give the job to the present tester, or to a new one."""
        if self._tester is not None and self._tester.limits == limits:
            self._placement.bring(self._tester.child)
            if self._tester.begin(judging):
                return self._tester
        self._end_tester()
        self._tester = self._fork_tester(limits)
        self._tester.begin(judging)
        return self._tester

    def _settle(self, shared: TesterProcess, stopped: str | None) -> None:
        """Let a tester whose candidate used up its time finish; end it unless it can serve another job."""
        # A tester that stood still may do so for ever.
        used_up = stopped is not None and (stopped != "cpu" or shared.child.clock() >= shared.limits.cpu_s)
        if used_up or not shared.answers() or shared.is_worn():
            self._end_tester()

    def _run_script(self, descriptors: Sequence[int], limits: Limits) -> dict[str, Any]:
        """Run a program without a tester; descriptors are stdin, stdout, stderr, program."""
        start = time.monotonic()
        program = self._fork(tuple(descriptors), limits, candidate.run_script)
        try:
            stopped = self._supervise([program], limits, start)
        finally:
            program.reap()
            self._clean_up()
        return self._answer(stopped, start, program)

    @staticmethod
    def _answer(stopped: str | None, start: float, program: Child) -> dict[str, Any]:
        return {"stopped": stopped, "seconds": time.monotonic() - start, "candidate": program.summary()}

    def _clean_up(self) -> None:
        if not self._jail.forbids_forks:
            self._end_tester()
            kill_strays()

    def _end_tester(self) -> None:
        if self._tester is not None:
            self._tester.end()
            self._tester = None

    def _fork_tester(self, limits: Limits) -> TesterProcess:
        mine, theirs = socket.socketpair()
        with theirs:
            descriptors = (_NULL, _NULL, _NULL, theirs.fileno())
            # A report has room whatever the limit on the program's output.
            output_mib = max(limits.output_mib, MAX_REPORT // MIB)
            lasting = replace(limits, cpu_s=limits.cpu_s + TESTER_LIFE_S, output_mib=output_mib)
            serve = functools.partial(tester.serve, own_process.run_alone)
            child = self._fork(descriptors, lasting, serve, receives_descriptors=True)
        return TesterProcess(child, mine, limits)

    def _fork(
        self,
        descriptors: tuple[int, ...],
        limits: Limits,
        run: Callable[[], None],
        *,
        receives_descriptors: bool = False,
    ) -> Child:
        settings = self._jail.settings(_with_memory(limits, self._taken_mib))
        pid = syscalls.fork()
        if pid == 0:
            try:
                self._jail.confine(descriptors, settings, self._pid, receives_descriptors=receives_descriptors)
                run()
            finally:
                os._exit(1)
        return Child(pid, os.pidfd_open(pid), cpu=self._placement.cpu)

    def _supervise(self, children: Sequence[Child], limits: Limits, start: float, *finished: int) -> str | None:
        """Wait until the last child ends or a `finished` descriptor is readable; return the limit exceeded before, if any."""
        ends = {children[-1].handle, *finished}
        watch = select.poll()
        for descriptor in (*ends, self._parent, self._control.fileno()):
            watch.register(descriptor, select.POLLIN)
        idleness, spent, last, waits = Idleness(), 0.0, start, False
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
            idle_s = idleness.seconds
            idleness.add(now - last, sum(clocks) - spent)
            if waits != (waits := idleness.seconds > idle_s and idleness.seconds >= _WAITING_S):
                self._control.send(json.dumps({"waits": waits}).encode())
            spent, last = sum(clocks), now
            if max(clocks) >= limits.cpu_s:
                return "cpu"
            if idleness.seconds >= limits.idle_s:
                return "idle"
            if now - start >= limits.wall_s:
                return "wall"


@functools.lru_cache(8)
def _with_memory(limits: Limits, more_mib: int) -> Limits:
    return replace(limits, memory_mib=limits.memory_mib + more_mib)


@functools.lru_cache(8)
def _read_request(data: bytes) -> tuple[bool, Limits]:
    request = json.loads(data)
    return request["tested"], Limits(**request["limits"])


@contextlib.contextmanager
def _closing(*descriptors: int) -> Iterator[None]:
    try:
        yield
    finally:
        for descriptor in descriptors:
            os.close(descriptor)


def _move_up(control: int) -> int:
    """Move a descriptor above those of the children, fill all free ones below with the null device, and return it."""
    moved = fcntl.fcntl(control, fcntl.F_DUPFD_CLOEXEC, _FIRST_OWN)
    os.closerange(MOST_DESCRIPTORS, control + 1)
    limit_descriptors()
    null = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
    os.dup2(null, devices.NULL, inheritable=False)
    for number in range(_FIRST_OWN):
        if number != null:
            os.dup2(null, number, inheritable=False)
    return moved


def _warm_up(wanted: Mapping[str, Any]) -> int:
    """Load and prepare everything that children inherit; return the address space that packages take, in MiB."""
    for name in PRELOADED.split():
        importlib.import_module(name)
    taken_mib = packages.preload(wanted)
    site.setquit()  # the interpreter runs without `site`; scripts expect its exit() and quit()
    devices.install()
    raise_stack_limit()
    # Everything possible is prepared here: each page that a child writes to costs it a copy.
    sys.argv = ["solution.py"]
    sys.setrecursionlimit(_RECURSION_LIMIT)
    unpatched.uninstall()
    for name in [name for name in sys.modules if name.partition(".")[0] == "sandbox"]:
        del sys.modules[name]
    sys.path[:] = [path for path in sys.path if os.path.basename(path) != "unit_tests"]
    gc.collect()
    gc.freeze()
    gc.disable()
    with _sample() as run:
        pin_written_by(run)
    return taken_mib


@contextlib.contextmanager
def _sample() -> Iterator[Callable[[], None]]:
    """What every candidate does, by which pages that it writes to are found: it answers a tester's calls of a small program."""
    (requests, asking), program, jail = os.pipe(), os.memfd_create("sample"), Jail(frozenset())
    tester = Channel(_NULL, asking)
    for request in (["resolve", None, ["call"], []], *[_SAMPLE_CALL] * 3):
        tester.send(request)
    os.close(asking)
    os.write(program, json.dumps({"files": {"solution.py": _SAMPLE}, "main": "solution.py", "seed": 1}).encode())
    settings, server = jail.settings(_TRIAL_LIMITS), os.getpid()

    def run() -> None:
        jail.confine((_NULL, _NULL, _NULL, requests, _NULL, program), settings, server)
        with contextlib.suppress(ChannelClosedError):
            candidate.serve()

    with _closing(requests, program):
        yield run


def _load_library() -> int:
    """Load the standard library; return the address space that it takes, in MiB."""
    before = packages.address_space_mib()
    whole_library.load()
    gc.collect()
    gc.freeze()
    return round(packages.address_space_mib() - before)


def _probe(jail: Jail) -> list[str]:
    """Try forbidden operations in a confined child, and return those that worked."""
    reader, writer = os.pipe()
    server, settings = os.getpid(), jail.settings(_TRIAL_LIMITS)
    pid = syscalls.fork()
    if pid == 0:
        try:
            jail.confine((0, 1, 2, writer), settings, server)
            os.write(3, " ".join(probe.escapes()).encode() or b"-")
        finally:
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as file:
        output = file.read()
    os.waitpid(pid, 0)
    return ["anything: the probe did not finish"] if not output else output.replace("-", "").split()


def main() -> None:
    """Serve; the arguments are the control socket's descriptor, the parent's process id and the settings from `pool`."""
    descriptor, parent, settings = int(sys.argv[1]), int(sys.argv[2]), json.loads(sys.argv[3])
    wanted, imported = frozenset(settings["layers"]), settings["packages"]
    control = socket.socket(fileno=_move_up(descriptor))
    signal.alarm(_START_S)  # ends a start that hangs
    with contextlib.suppress(ParentGoneError, ConnectionError):
        watched = _watch(control, parent, wanted)
        _go_first_without_memory()
        try:
            taken_mib = _warm_up(imported)
        except ImportError as error:
            control.send(json.dumps({"unimportable": str(error)}).encode())
            return
        jail = Jail(wanted, imported["paths"], may_close_files=settings["may_close_files"])
        if jail.closes_files:
            taken_mib += _load_library()
        server = Server(control, watched, jail, taken_mib)
        _greet(control, jail)
        signal.alarm(0)
        server.serve()


def _go_first_without_memory() -> None:
    """Have the kernel kill this process or its children first when the machine runs out of memory.

    Among these it kills the one that uses most memory, which is a program and not the server.
    """
    with contextlib.suppress(OSError), open("/proc/self/oom_score_adj", "w") as file:
        file.write("1000")


def _greet(control: socket.socket, jail: Jail) -> None:
    """Report that the server is ready, and which layers of isolation are in force."""
    escapes = _probe(jail) if jail.wanted else []
    control.send(json.dumps({"layers": jail.entered, "missing": jail.missing, "escapes": escapes}).encode())


def _watch(control: socket.socket, parent: int, wanted: frozenset[str]) -> int:
    """Watch the parent, and become the reaper of all descendants of this process.

    Raises ParentGoneError if the parent has ended, or the system lacks the calls to watch processes, which was reported.
    """
    problem = "this kernel can't watch processes through descriptors (pidfd_open"
    try:
        watched = os.pidfd_open(parent)
        if os.getppid() != parent:
            raise ParentGoneError
        if sys.platform == "linux":
            problem = "this system doesn't let a process reap its descendants and end with its parent (prctl"
            syscalls.prctl(syscalls.PR_SET_CHILD_SUBREAPER, 1)
            syscalls.prctl(syscalls.PR_SET_PDEATHSIG, 0)
            if wanted:
                syscalls.prctl(syscalls.PR_SET_NO_NEW_PRIVS, 1)
        return watched
    except OSError as error:
        unusable = f"{problem}: {error})"
        control.send(json.dumps({"layers": [], "missing": {}, "escapes": [], "unusable": unusable}).encode())
        raise ParentGoneError from error
