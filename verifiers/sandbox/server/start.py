"""The start of a fork server: it loads everything that its children inherit, enters the jail, and checks it."""

from __future__ import annotations

import contextlib
import fcntl
import gc
import importlib
import json
import os
import signal
import site
import socket
import sys
from collections.abc import Callable, Mapping
from typing import Any

from ..contract import Role
from ..isolation import devices, probe, syscalls
from ..isolation.jail import MOST_DESCRIPTORS, Jail, limit_descriptors, raise_stack_limit
from ..limits import Limits
from . import preload, whole_library
from .page_pinning import pin_written_by
from .server import NULL, ParentGoneError, Server

PRELOADED = """
abc array bisect collections collections.abc contextlib copy dataclasses datetime decimal enum fractions functools heapq io
itertools json math numbers operator os queue random re statistics string struct sys textwrap threading time traceback types
typing
"""
"""Modules that programs often import, loaded before the first fork; each makes every fork slightly slower."""

_RECURSION_LIMIT = 1000 + 20
"""The recursion limit of a script, plus the frames that the server and its role occupy."""
_START_S = 60
_SAMPLE = (
    b"""{"files": {"main.py": "def f(x): return sum(n for n in x if n > 1)\\nf([3, 1, True])"}, "main": "main.py"}"""
)
_TRIAL_LIMITS = Limits(cpu_s=5, wall_s=5, idle_s=5, memory_mib=1024, output_mib=1, processes=64)


def main() -> None:
    """Run the server; the arguments are the control socket's descriptor, the parent's process id, and its settings."""
    descriptor, parent, settings = int(sys.argv[1]), int(sys.argv[2]), json.loads(sys.argv[3])
    wanted = frozenset(settings["layers"])
    control = socket.socket(fileno=_move_up(descriptor))
    signal.alarm(_START_S)  # ends a start that hangs
    with contextlib.suppress(ParentGoneError, ConnectionError):
        watched = _watch(control, parent, wanted)
        _go_first_without_memory()
        try:
            taken_mib = preload.load_packages(settings["packages"])
        except ImportError as error:
            control.send(json.dumps({"unimportable": str(error)}).encode())
            return
        roles = _load_code(settings)
        for name in PRELOADED.split():
            importlib.import_module(name)
        _warm_up(_function(settings["sample"]))
        jail = Jail(wanted, settings["packages"]["paths"], may_close_files=settings["may_close_files"])
        if jail.closes_files:
            taken_mib += _load_library()
        server = Server(control, watched, jail, roles, taken_mib)
        _greet(control, jail)
        signal.alarm(0)
        server.serve()


def _move_up(control: int) -> int:
    """Move a descriptor above the children's, fill the free numbers below with the null device, and return the new number."""
    moved = fcntl.fcntl(control, fcntl.F_DUPFD_CLOEXEC, NULL + 1)
    os.closerange(MOST_DESCRIPTORS, control + 1)
    limit_descriptors()
    null = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
    os.dup2(null, devices.NULL, inheritable=False)
    for number in range(NULL + 1):
        if number != null:
            os.dup2(null, number, inheritable=False)
    return moved


def _watch(control: socket.socket, parent: int, wanted: frozenset[str]) -> int:
    """Watch the parent, and become the reaper of all descendants of this process.

    Raises ParentGoneError if the parent has ended or the system can't watch processes; in the second case the parent is sent
    the reason.
    """
    problem = "this kernel can't watch processes through descriptors (pidfd_open"
    try:
        watched = os.pidfd_open(parent)
        if os.getppid() != parent:
            raise ParentGoneError
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


def _go_first_without_memory() -> None:
    """Have the kernel kill this process or its children first when the machine runs out of memory.

    Among these processes the kernel kills the one that uses most memory, which is a program rather than the server.
    """
    with contextlib.suppress(OSError), open("/proc/self/oom_score_adj", "w") as file:
        file.write("1000")


def _load_code(settings: Mapping[str, Any]) -> dict[str, tuple[Role, Callable[[], object]]]:
    """Load all code that runs in children; return the roles by name."""
    if settings["prepare"]:
        _function(settings["prepare"])(settings["packages"])
    roles = [Role(**role) for role in settings["roles"]]
    return {role.name: (role, _function(role.run)) for role in roles}


def _function(name: str) -> Callable[..., Any]:
    """The function named `module:function`."""
    module, _, function = name.partition(":")
    found: Callable[..., Any] = getattr(importlib.import_module(module), function)
    return found


def _warm_up(sample: Callable[[], object]) -> None:
    """Touch everything that children inherit, since each page that a child is the first to write to costs it a copy."""
    site.setquit()  # the interpreter runs without `site`; scripts expect its exit() and quit()
    devices.install()
    raise_stack_limit()
    sys.argv = ["solution.py"]
    sys.setrecursionlimit(_RECURSION_LIMIT)
    finder: Any = sys.meta_path[0]
    finder.retire()
    gc.collect()
    gc.freeze()
    gc.disable()
    jail, server = Jail(frozenset()), os.getpid()
    settings = jail.settings(_TRIAL_LIMITS)
    program = os.memfd_create("sample")
    os.write(program, _SAMPLE)

    def run_confined() -> None:
        jail.confine((NULL, NULL, NULL, program, program, program), settings, server)
        with contextlib.suppress(Exception):
            sample()

    pin_written_by(run_confined)
    os.close(program)


def _load_library() -> int:
    """Load the standard library; return the address space that it takes, in MiB."""
    before = preload.address_space_mib()
    whole_library.load()
    gc.collect()
    gc.freeze()
    return round(preload.address_space_mib() - before)


def _greet(control: socket.socket, jail: Jail) -> None:
    """Tell the parent that the server is ready and which layers of isolation are in force."""
    escapes = _probe(jail) if jail.wanted else []
    control.send(json.dumps({"layers": jail.entered, "missing": jail.missing, "escapes": escapes}).encode())


def _probe(jail: Jail) -> list[str]:
    """Try forbidden operations in a confined child; return those that succeeded."""
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
