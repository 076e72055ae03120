"""The jail: what the fork server gives up once, and what each child gives up before it runs a line of the program."""

from __future__ import annotations

import os
import resource
import sys
import sysconfig

from . import landlock, namespaces, seccomp, syscalls
from .limits import LAYERS, Limits

ResourceLimits = tuple[tuple[int, tuple[int, int]], ...]
"""Kinds of limits, each with its soft and its hard value."""
MIB = 1 << 20
_STACK = 64 * MIB
"""Half of what the kernel keeps free below the stack, whatever the limit was when the program started."""


def library_paths() -> list[str]:
    """What a program may read: the standard library, shared libraries, time zones and the harmless devices."""
    libraries = {sysconfig.get_path("stdlib"), sysconfig.get_path("platstdlib"), os.path.join(sys.base_prefix, "lib")}
    libraries |= {os.path.dirname(os.__file__)}
    system = ["/lib", "/lib64", "/usr/lib", "/usr/lib64", "/usr/share/zoneinfo", "/etc/ld.so.cache", "/etc/localtime"]
    searched = [folder for folder in os.environ.get("LD_LIBRARY_PATH", "").split(":") if folder.startswith("/")]
    devices = ["/dev/null", "/dev/zero", "/dev/random", "/dev/urandom"]
    return _outermost([*sorted(libraries), *system, *searched]) + devices


def _outermost(paths: list[str]) -> list[str]:
    """Drop paths that lie beneath another one."""
    unique = sorted({os.path.normpath(path) for path in paths})
    return [p for p in unique if not any(p.startswith(other + "/") for other in unique)]


class Jail:
    """The layers of isolation of a fork server and of its children."""

    def __init__(self, wanted: frozenset[str]) -> None:
        """Enter the layers that bind the server too, and prepare the filter of the children.

        Args:
            wanted: Names out of `LAYERS`. What the system does not give goes into `missing`, with the reason.
        """
        self.entered: list[str] = []
        self.missing: dict[str, str] = {}
        self._filters: dict[bool, seccomp.Filter] = {}
        self._other_processes = 0
        self._settings: dict[Limits, ResourceLimits] = {}
        uid = os.getuid()
        self._paths = library_paths()
        if sys.platform == "linux" and wanted:
            syscalls.prctl(syscalls.PR_SET_NO_NEW_PRIVS, 1)
        for name in LAYERS:
            if name in wanted:
                self._enter(name)
            if name == "namespaces" and "namespaces" not in self.entered:
                if os.geteuid() == 0 and wanted:
                    namespaces.drop_privileges_outside()
                if os.getuid() in (uid, namespaces.NOBODY):
                    self._other_processes = _count_processes(os.getuid())

    def _enter(self, name: str) -> None:
        try:
            if name == "namespaces":
                namespaces.enter(self._paths)
                namespaces.drop_privileges()
            elif name == "landlock":
                landlock.restrict(self._paths)
            else:
                seccomp.Filter(seccomp.build_outer()).install(os.getpid())
                self._filters = {
                    receives: seccomp.Filter(seccomp.build_inner(receives_descriptors=receives))
                    for receives in (False, True)
                }
        except (OSError, AttributeError) as error:
            self.missing[name] = str(error)
        else:
            self.entered.append(name)

    @property
    def forbids_forks(self) -> bool:
        """Whether a child can leave no process behind."""
        return "seccomp" in self.entered

    def settings(self, limits: Limits) -> ResourceLimits:
        """What `confine` sets, so that it is worked out once and not in every child."""
        if limits not in self._settings:
            self._settings[limits] = resource_limits(limits, self._other_processes)
        return self._settings[limits]

    def confine(
        self, descriptors: tuple[int, ...], settings: ResourceLimits, server: int, *, receives_descriptors: bool = False
    ) -> None:
        """Confine this child: after the call it has these descriptors as 0, 1, 2, …, its limits, and no way back.

        Args:
            descriptors: What becomes descriptor 0, 1, 2 and so on; each lies above them all.
            settings: What the child may use, from `settings`.
            server: Process id of the fork server, with which the child dies.
            receives_descriptors: Whether the child may be sent further descriptors.
        """
        for number, descriptor in enumerate(descriptors):
            os.dup2(descriptor, number)
        os.closerange(len(descriptors), 1 << 30)
        for kind, values in settings:
            resource.setrlimit(kind, values)
        if sys.platform == "linux":
            syscalls.die_with(server)
        if self._filters:
            self._filters[receives_descriptors].install(os.getpid())


def _count_processes(uid: int) -> int:
    """Processes and threads of a user, which the limit on processes counts together."""
    count = 0
    for entry in os.scandir("/proc") if os.path.isdir("/proc") else ():
        try:
            if entry.name.isdigit() and entry.stat().st_uid == uid:
                count += len(os.listdir(f"{entry.path}/task"))
        except OSError:
            continue  # it ended meanwhile
    return count


def resource_limits(limits: Limits, other_processes: int) -> ResourceLimits:
    """Resource limits of a child, soft and hard alike, none above what this process has.

    The CPU limit only backs up the server's own, which is exact and kills first.
    """
    wanted = {
        resource.RLIMIT_CPU: int(limits.cpu_s) + 2,
        resource.RLIMIT_AS: limits.memory_mib * MIB,
        resource.RLIMIT_FSIZE: limits.output_mib * MIB,
        resource.RLIMIT_NOFILE: 64,
        resource.RLIMIT_NPROC: limits.processes + other_processes,
        resource.RLIMIT_CORE: 0,
    }
    return tuple((kind, (_allowed(kind, value),) * 2) for kind, value in wanted.items())


def raise_stack_limit() -> None:
    """Let the stack of this process and of its children grow further: sorting keys and caches recurse on it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_STACK)
    if soft != resource.RLIM_INFINITY and soft < _STACK:
        allowed = _STACK if hard == resource.RLIM_INFINITY else min(_STACK, hard)
        resource.setrlimit(resource.RLIMIT_STACK, (allowed, hard))


def _allowed(kind: int, value: int) -> int:
    hard = resource.getrlimit(kind)[1]
    return value if hard == resource.RLIM_INFINITY else min(value, hard)
