"""The role of a process that enters the jail itself and runs something in a folder, such as an installed program.

The fork server of such roles is not in the jail. Each of its children enters the layers, with its own root and folder, and
forks the process that is confined for good. That process tries forbidden operations, notes the results, and goes on only if the
isolation is as requested. A program that may start processes runs in a namespace of process ids. The first process of the
namespace is a child between the two, and no process of the namespace outlives it. At the end the requested files are read
within the jail.
"""

from __future__ import annotations

import contextlib
import errno
import itertools
import os
import resource
import signal
import stat
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from ..isolation import namespaces, probe, syscalls
from ..isolation.jail import Jail, ResourceLimits, filters
from ..limits import FOLDER, LAYERS, Limits
from ..memory_files import read_all
from .archive import pack, unpack

_REQUEST, _ANSWER = 3, 4
"""Descriptors of the request and of the answer, above the standard streams; the program gets neither. The first line of the
answer says which isolation is in force.
"""
_TOLD = 3
"""Descriptor of the answer in the confined process until that process becomes the program."""
_BAD_NAMES = frozenset({errno.ENAMETOOLONG, errno.ENOTDIR, errno.EISDIR, errno.EEXIST})
"""Errors caused by names that are too long, or by a file used as a folder."""
# Bound once, since a program may replace them.
_exit, _write = os._exit, os.write


def prepare(packages: Mapping[str, Any]) -> None:
    """Do once, in the server, work that each child would otherwise repeat: half of the cost of a run without its program."""
    namespaces.try_for_children()
    with contextlib.suppress(OSError):  # each child then meets the error itself, and answers with it
        for folder, processes in itertools.product((False, True), repeat=2):
            filters(True, folder, processes, True)


def run_command() -> None:
    """Run the program that the request names."""
    run_in_folder(_become)


def run_in_folder(main: Callable[[Mapping[str, Any]], object], more: int = 0) -> None:
    """Run a function in a confined process; answer with how the process ended and with the files that it left.

    Args:
        main: The function, which is called with the request's header.
        more: Number of further descriptors of the role, which the function gets as descriptors 4 and above.
    """
    try:
        _run_in_folder(main, tuple(range(_ANSWER + 1, _ANSWER + 1 + more)))
    except _UnplacedError as error:
        _tell(_ANSWER, {"unplaced": str(error)})
    except Exception as error:  # noqa: BLE001 - answered: nothing of the program has run in this process
        _tell(_ANSWER, {"failed": f"{type(error).__name__}: {error}"})
    _exit(0)


def close_answer() -> None:
    """Close the answer in a confined process that does not become a program."""
    os.close(_TOLD)


def _run_in_folder(main: Callable[[Mapping[str, Any]], object], more: tuple[int, ...]) -> None:
    held_mib = 0 if main is _become else _data_mib()
    asked, files = unpack(read_all(_REQUEST))
    server, extras = os.getppid(), namespaces.Extras(**asked["extras"], stdin=read_all(0))
    if asked["cpus"]:
        os.sched_setaffinity(0, asked["cpus"])  # the server keeps only what it started on its own CPU
    confined = asked["isolation"] != "none"
    folder = FOLDER if confined and extras.folder_mib else asked["folder"]
    if folder == asked["folder"]:
        _fill(folder, files, asked["writes"])
        os.chmod(folder, 0o777 if extras.folder_mib else 0o555)
        extras = extras if confined else namespaces.NOTHING_MORE
    jail = Jail(
        frozenset(LAYERS) if confined else frozenset(),
        asked["readable"] if folder == FOLDER else [*asked["readable"], folder],
        writable=[] if folder == FOLDER else [os.path.join(folder, name) for name in asked["writes"]],
        executes=True,
        extras=extras,
    )
    syscalls.die_with(server)  # again, since a new user id clears this setting
    problem = _lacking(jail, extras)
    if problem is not None:
        _tell(_ANSWER, {"layers": jail.entered, "problem": problem})
        return
    if jail.has_folder:
        _fill(folder, files, files)
    os.chdir(folder)
    supervised = _Supervised(asked, jail, extras, folder, main, more, held_mib)
    if jail.has_processes:
        os.waitpid(_fork(supervised.run_as_first), 0)
    else:
        supervised.run()


def _lacking(jail: Jail, extras: namespaces.Extras) -> str | None:
    needs = [(extras.folder_mib, "a folder to write in"), (extras.processes, "processes of their own")]
    wanted = " and ".join(what for amount, what in needs if amount)
    if not wanted or "namespaces" in jail.entered:
        return None
    return f"this system provides no namespaces, which programs with {wanted} need ({jail.missing['namespaces']})"


class _Supervised:
    """The confined process, and the process that supervises it."""

    def __init__(
        self,
        asked: Mapping[str, Any],
        jail: Jail,
        extras: namespaces.Extras,
        folder: str,
        main: Callable[[Mapping[str, Any]], object],
        more: tuple[int, ...],
        held_mib: int,
    ) -> None:
        self._asked, self._jail, self._main, self._more = asked, jail, main, more
        self._folder = folder
        limits = Limits(**asked["limits"])
        # Two more are this process and, if the program may start processes, the first process of the namespace.
        threads = limits.processes + extras.processes + 2
        room = max(limits.output_mib, extras.folder_mib)
        memory_mib = limits.memory_mib + held_mib
        settings = jail.settings(replace(limits, processes=threads, output_mib=room, memory_mib=memory_mib))
        self._settings = _of_data(settings)

    def run_as_first(self) -> None:
        """Run as the first process of a namespace; when it ends, so do all others in the namespace."""
        syscalls.prctl(syscalls.PR_SET_PDEATHSIG, signal.SIGKILL)
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # the kernel withholds only signals without a handler
        self.run(is_first=True)

    def run(self, *, is_first: bool = False) -> None:
        """Start the confined process, wait until it ends, end what it has left running, and answer."""
        pid = _fork(self._run_confined)
        status = _wait(pid)
        if is_first:
            with contextlib.suppress(ProcessLookupError):
                os.kill(-1, signal.SIGKILL)
        paths = [path for name in self._asked["writes"] for path in self._files_of(name)]
        written = {path: content for path in paths if (content := self._read(path))}
        _tell(_ANSWER, {"status": os.waitstatus_to_exitcode(status)}, written)

    def _run_confined(self) -> None:
        jail, parent = self._jail, os.getppid()
        if jail.has_processes:
            os.setsid()  # the kernel shares a CPU among sessions first, so that the server gets its part beside many processes
        jail.confine((0, 1, 2, _ANSWER, *self._more), self._settings, parent)
        os.set_inheritable(_TOLD, False)
        hello = {"layers": jail.entered, "missing": jail.missing, "escapes": []}
        if jail.wanted:
            hello["escapes"] = probe.escapes(("fork", "signals") if jail.has_processes else ())
        problem = probe.isolation_problem(hello, self._asked["isolation"])
        _tell(_TOLD, {"layers": jail.entered, "problem": problem})
        if problem is None:
            self._main({**self._asked, "folder": self._folder})

    def _files_of(self, name: str) -> list[str]:
        """The path itself; for a folder inside this run's folder, also the paths of the files in it."""
        paths, start = [name], os.path.join(self._folder, name)
        if not f"{os.path.realpath(start)}/".startswith(f"{os.path.realpath(self._folder)}/"):
            return paths  # a link leads out
        with contextlib.suppress(RecursionError):  # a program can nest folders deeper than they can be walked
            for top, _, files in os.walk(start):
                paths += [os.path.relpath(os.path.join(top, file), self._folder) for file in files]
        return paths

    def _read(self, name: str) -> bytes:
        """The content of a regular file in the folder; empty for anything else. Links can't leave the jail's root."""
        try:
            handle = os.open(
                os.path.join(self._folder, name), os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
            )
        except OSError:  # the program has not made it, or it is a link
            return b""
        try:
            return read_all(handle) if stat.S_ISREG(os.fstat(handle).st_mode) else b""
        finally:
            os.close(handle)


def _become(asked: Mapping[str, Any]) -> None:
    """Become the program."""
    for ignored in (signal.SIGPIPE, signal.SIGXFSZ):  # Python ignores them
        signal.signal(ignored, signal.SIG_DFL)
    folder = asked["folder"]
    environment = {"LC_ALL": "C.UTF-8", "HOME": folder, "TMPDIR": folder, "PATH": "/usr/local/bin:/usr/bin:/bin"}
    try:
        os.execve(asked["command"][0], asked["command"], environment | asked["environment"])
    except OSError as error:
        _tell(_TOLD, {"problem": f"can't execute {asked['command'][0]}: {error}"})


def _data_mib() -> int:
    """Memory, in MiB, that this process inherited from the server; it does not count as the program's."""
    with open("/proc/self/status") as file:
        sizes = dict(line.split(":", 1) for line in file)
    return int(sizes["VmData"].split()[0]) >> 10


def _of_data(settings: ResourceLimits) -> ResourceLimits:
    """The same limits, but with the memory limit applied to data, as some programs reserve address space they never use."""
    return tuple((resource.RLIMIT_DATA if limit == resource.RLIMIT_AS else limit, values) for limit, values in settings)


class _UnplacedError(Exception):
    """Files could not be written, for a reason that lies in the files themselves."""


def _fill(folder: str, files: Mapping[str, bytes], writable: Collection[str]) -> None:
    """Write files into a folder; files that the program may write are created too, writable by any user."""
    for name, content in {**{name: b"" for name in writable if name not in files}, **files}.items():
        try:
            _write_file(os.path.join(folder, name), content, 0o777 if name in writable else 0o555)
        except RecursionError as error:
            raise _UnplacedError("a file lies in too many folders") from error
        except OSError as error:
            # A folder on disk may be full for other reasons; one in memory holds nothing else.
            if error.errno in _BAD_NAMES or (error.errno == errno.ENOSPC and folder == FOLDER):
                raise _UnplacedError(str(error)) from error
            raise


def _write_file(path: str, content: bytes, mode: int) -> None:
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as file:
        file.write(content)
    os.chmod(path, mode)


def _fork(body: Callable[[], object]) -> int:
    pid = syscalls.fork()
    if pid == 0:
        try:
            body()
        finally:
            _exit(1)
    return pid


def _wait(child: int) -> int:
    """Wait for a child and return its status; other children that end in the meantime are reaped."""
    while True:
        pid, status = os.wait()
        if pid == child:
            return status


def _tell(descriptor: int, header: Mapping[str, object], files: Mapping[str, bytes] = MappingProxyType({})) -> None:
    content = pack(header, files)
    while content:
        content = content[_write(descriptor, content) :]
