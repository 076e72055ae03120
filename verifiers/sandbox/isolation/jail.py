"""The jail: privileges that the fork server gives up once, and privileges that each child gives up before its program runs."""

from __future__ import annotations

import functools
import math
import os
import resource
import sys
import time
from collections.abc import Sequence

from ..limits import FOLDER, LAYERS, Limits
from . import devices, landlock, namespaces, seccomp, syscalls
from .library_folders import library_paths

ResourceLimits = tuple[tuple[int, tuple[int, int]], ...]
"""Resource limits, each with its soft and hard value."""
MIB = 1 << 20
MOST_DESCRIPTORS = devices.NULL
"""Maximum number of descriptors of the fork server. Before Linux 5.9 they are closed one by one."""
_TRUSTED_S = 0.1
"""Seconds for which a count of the user's threads is reused before it is taken again."""
_ROOM = 512
"""Number of threads that may start while a count is reused."""
_MOST_THREADS = 1 << 22
"""Maximum number of threads that a kernel allows."""
_STACK = 64 * MIB
"""Half of the memory that the kernel keeps free below the stack, whatever limit was set when the program started."""


class Jail:
    """The layers of isolation that a fork server and its children enter."""

    def __init__(
        self,
        wanted: frozenset[str],
        readable: Sequence[str] = (),
        *,
        writable: Sequence[str] = (),
        may_close_files: bool = False,
        executes: bool = False,
        extras: namespaces.Extras = namespaces.NOTHING_MORE,
    ) -> None:
        """Enter the layers that also confine the server, and prepare the filter of the children.

        Args:
            wanted: Names from `LAYERS`. Layers that the system does not support are listed in `missing`, with the reason.
            readable: Paths that programs may read besides the libraries.
            writable: Files that programs may write, beneath the readable paths.
            may_close_files: Whether programs may be denied all files if no layer can limit which files they read.
            executes: Whether a child becomes another program, which is installed on the machine.
            extras: Further rights of the installed program; each needs namespaces.
        """
        self.wanted = wanted
        self.entered: list[str] = []
        self.missing: dict[str, str] = {}
        self._may_close_files = may_close_files
        self._executes = executes
        self._extras = extras
        self._writable = writable
        self._filters: dict[bool, seccomp.Filter] = {}
        self._others: OtherThreads | None = None
        self._settings: dict[tuple[Limits, int], ResourceLimits] = {}
        uid = os.getuid()
        self._paths = library_paths(readable)
        if sys.platform == "linux" and wanted:
            syscalls.prctl(syscalls.PR_SET_NO_NEW_PRIVS, 1)
        for name in LAYERS:
            if name in wanted:
                self._enter(name)
            if name == "namespaces" and "namespaces" not in self.entered:
                if os.geteuid() == 0 and wanted:
                    namespaces.drop_privileges_outside()
                if os.getuid() in (uid, namespaces.NOBODY):
                    self._others = OtherThreads()

    def _enter(self, name: str) -> None:
        try:
            if name == "namespaces":
                namespaces.enter(self._paths, self._writable, self._extras)
                namespaces.drop_privileges()
            elif name == "landlock":
                folder = FOLDER if self.has_folder else ""
                writable = [*self._writable, *(["/dev/null"] if self._executes else [])]
                own = [namespaces.STDIN] if self._extras.stdin is not None and "namespaces" in self.entered else []
                landlock.restrict([*self._paths, *own], writable, folder)
            else:
                outer, self._filters = filters(
                    self._executes, self.has_folder, self.has_processes, not self.closes_files
                )
                outer.install(os.getpid())
        except (OSError, AttributeError) as error:
            self.missing[name] = str(error)
        else:
            self.entered.append(name)

    @property
    def closes_files(self) -> bool:
        """Whether a child can't open any file: only the system-call filter is in force, and it can't tell files apart."""
        return self._may_close_files and not {"namespaces", "landlock"} & {*self.entered}

    @property
    def has_folder(self) -> bool:
        """Whether there is a folder to write in."""
        return self._extras.folder_mib > 0 and "namespaces" in self.entered

    @property
    def has_processes(self) -> bool:
        """Whether the next child will be the first process in a namespace of process ids."""
        return self._extras.processes > 0 and "namespaces" in self.entered

    @property
    def forbids_forks(self) -> bool:
        """Whether a child can't leave a process behind."""
        return "seccomp" in self.entered

    def settings(self, limits: Limits) -> ResourceLimits:
        """The limits that `confine` sets, computed once rather than in every child."""
        key = limits, self._others.bound() if self._others else 0
        if key not in self._settings:
            self._settings[key] = resource_limits(*key)
        return self._settings[key]

    def confine(
        self, descriptors: tuple[int, ...], settings: ResourceLimits, server: int, *, receives_descriptors: bool = False
    ) -> None:
        """Confine this child for good, with these descriptors as 0, 1, 2, …; it ends when the process `server` ends."""
        for number, descriptor in enumerate(descriptors):
            os.dup2(descriptor, number)
        os.closerange(len(descriptors), MOST_DESCRIPTORS)
        for limit, values in settings:
            resource.setrlimit(limit, values)
        if sys.platform == "linux":
            syscalls.die_with(server)
        if self._filters:
            self._filters[receives_descriptors].install(os.getpid())


class OtherThreads:
    """A bound on this user's processes and threads outside a program, for systems that count all threads of a user together.

    The number of these threads changes, and this process may not see them all, so the kernel's count is found by forking under
    a limit.
    """

    def __init__(self) -> None:
        self._bound = 64
        self._asked_at = -math.inf

    def bound(self) -> int:
        """An upper bound, with a margin for threads that start while a program runs."""
        now = time.monotonic()
        if now - self._asked_at > _TRUSTED_S:
            self._asked_at = now
            while self._bound < _MOST_THREADS and not _can_fork(self._bound):
                self._bound *= 2
        return self._bound + _ROOM


def _can_fork(limit: int) -> bool:
    """Whether the user has fewer processes and threads than the limit."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NPROC)
    resource.setrlimit(resource.RLIMIT_NPROC, (_allowed(resource.RLIMIT_NPROC, limit), hard))
    try:
        pid = syscalls.fork()
        if pid == 0:
            os._exit(0)
        os.waitpid(pid, 0)
    except OSError:
        return False
    finally:
        resource.setrlimit(resource.RLIMIT_NPROC, (soft, hard))
    return True


@functools.cache
def filters(
    executes: bool, folder: bool, processes: bool, opens_files: bool
) -> tuple[seccomp.Filter, dict[bool, seccomp.Filter]]:
    """The server's system-call filter, and the filters of its children: a mapping from whether they receive descriptors."""
    outer = seccomp.build_outer(executes=executes, folder=folder, processes=processes)
    inner = {
        receives: seccomp.build_inner(
            receives_descriptors=receives, opens_files=opens_files, writes_files=executes, processes=processes
        )
        for receives in (False, True)
    }
    return seccomp.Filter(outer), {receives: seccomp.Filter(instructions) for receives, instructions in inner.items()}


def resource_limits(limits: Limits, other_threads: int) -> ResourceLimits:
    """Resource limits of a child, with equal soft and hard values, none of which exceeds this process's own.

    The CPU limit is only a backup for the server's own limit, which is exact and acts first.
    """
    wanted = {
        resource.RLIMIT_CPU: int(limits.cpu_s) + 2,
        resource.RLIMIT_AS: limits.memory_mib * MIB,
        resource.RLIMIT_FSIZE: limits.output_mib * MIB,
        resource.RLIMIT_NOFILE: 64,
        resource.RLIMIT_NPROC: limits.processes + other_threads,
        resource.RLIMIT_CORE: 0,
    }
    return tuple((limit, (_allowed(limit, value),) * 2) for limit, value in wanted.items())


def limit_descriptors() -> None:
    """Limit this process to the descriptors that a child closes, plus that of the null device."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (_allowed(resource.RLIMIT_NOFILE, devices.NULL + 1), hard))


def raise_stack_limit() -> None:
    """Let the stacks of this process and its children grow further, since sort keys and caches may recurse deeply."""
    soft, hard = resource.getrlimit(resource.RLIMIT_STACK)
    if soft != resource.RLIM_INFINITY and soft < _STACK:
        allowed = _STACK if hard == resource.RLIM_INFINITY else min(_STACK, hard)
        resource.setrlimit(resource.RLIMIT_STACK, (allowed, hard))


def _allowed(limit: int, value: int) -> int:
    hard = resource.getrlimit(limit)[1]
    return value if hard == resource.RLIM_INFINITY else min(value, hard)
