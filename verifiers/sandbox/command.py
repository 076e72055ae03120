"""Runs installed programs, such as a compiler, on untrusted input; each run has its own jail and its own folder."""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import shutil
import signal
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from verifiers.errors import InvalidArgumentError, SandboxUnavailableError
from verifiers.sandbox.contract import Contract, JobEnd, Plan, Role
from verifiers.sandbox.limits import FOLDER, Limits
from verifiers.sandbox.memory_files import memory_files, read_all
from verifiers.sandbox.packages import Packages
from verifiers.sandbox.pool import Pool, available_cpus
from verifiers.sandbox.programs.archive import pack, unpack
from verifiers.sandbox.worker import WorkerDiedError

_IN_JAIL = "verifiers.sandbox.programs"
_ROLE = Role("command", f"{_IN_JAIL}.command:run_command", confines_itself=True)
_CONTRACT = Contract(_IN_JAIL, (_ROLE,), prepare=f"{_IN_JAIL}.command:prepare")
_FILES = ("stdin", "stdout", "stderr", "request", "answer")
_PLAN = Plan(_FILES, ((_ROLE.name, _FILES),))
_PATH = re.compile(r"(?!/)(?:(?:(?!\.\.?(?:/|\Z))[^/\0]+)(?:/(?=.)|\Z))+")
"""Matches a path beneath a folder, without `.` and `..`."""
_ADVICE = (
    "Programs of the machine run isolated on Linux 5.13 or later, x86-64 or aarch64, with seccomp filters and with landlock or "
    "user namespaces (5.12, and mounts in them, for a folder to write in and for processes); in a container, the seccomp "
    "profile has to permit one of these. To run them without isolation, on text that you trust, pass isolation='none'."
)


class LaunchError(Exception):
    """A program could not be started; the message says nothing about the program's input."""


class NotExecutableError(LaunchError):
    """The file to be run is not a program."""


class UnplacedFilesError(LaunchError):
    """The files have names that no folder can hold, or they don't fit into the folder in memory."""


@dataclass(frozen=True, slots=True)
class Command:
    """An installed program to run, with its files and its rights."""

    arguments: Sequence[str]
    """The path of the program, and its arguments."""
    files: Mapping[str, bytes] = field(default_factory=dict)
    """The files in the program's folder: content by path, such as `"src/main.c"`."""
    stdin: bytes = b""
    writes: Sequence[str] = ()
    """Paths of files to hand back, or of folders of such files. Without `folder_mib` the program may write no other file."""
    readable: Sequence[str] = ()
    """Paths that the program may read besides its folder and the system's libraries; programs there may be executed."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """Environment variables besides `LC_ALL`, `PATH`, `HOME` and `TMPDIR`; the last two are the program's folder."""
    folder_mib: int = 0
    """Size in MiB of a folder in memory in which the program may do anything; if 0, the program can't create files in its
    folder."""
    folder_files: int = 4096
    """Maximum number of files and folders in the folder in memory."""
    processes: int = 0
    """Number of other processes that the program may start; they share the limit on threads."""

    def __post_init__(self) -> None:
        """Refuse paths that lead out of the folder.

        Raises:
            InvalidArgumentError: If there is such a path.
        """
        for path in (*self.files, *self.writes):
            if not _PATH.fullmatch(path):
                raise InvalidArgumentError(f"files of a command are named like 'a/b.txt', in its folder, got {path!r}")


@dataclass(frozen=True, slots=True)
class Finished:
    """How a run ended."""

    exit_code: int | None
    """The exit status, negative for a signal; None if the run was stopped."""
    stopped: str | None
    """The limit that was exceeded: `"cpu"`, `"wall"`, `"idle"`, `"memory"` or `"output"`; None if none was."""
    stdout: bytes
    """The program's output, in which `.` replaces the folder's path."""
    stderr: bytes
    written: Mapping[str, bytes]
    """The files to hand back, by path; empty files, and anything that is not a file, are left out."""
    isolation: str
    """The layers of isolation in force, joined by `+`, or `"none"`."""
    end: JobEnd
    """How the job ended, and the resources that it used."""

    @property
    def seconds(self) -> float:
        """Wall-clock seconds."""
        return self.end.seconds

    @property
    def cpu_seconds(self) -> float:
        """CPU seconds of the program and of the processes that it waited for."""
        return self.end.processes[_ROLE.name].cpu_s


class CommandRunner:
    """Runs installed programs, from any number of threads; each run is a fork of a warm server that becomes the program.

    Args:
        isolation: `"auto"`, `"strict"` or `"none"`, as for `UnitTestVerifier`.
        workers: Number of programs that run at the same time, by default the number of CPUs of this process.
    """

    def __init__(self, isolation: str = "auto", workers: int | None = None) -> None:
        self._isolation = isolation
        # The server itself is not in a jail; each of its children enters one.
        self._pool = Pool(workers or available_cpus(), "none", Packages(), _CONTRACT)

    def __call__(self, command: Command, limits: Limits) -> Finished:
        """Run a program in a new folder; afterwards the folder is gone, and so is everything that the program has started.

        Args:
            command: The program.
            limits: The limits of the program; those on time and memory apply to all its processes together. `memory_mib`
                limits data, since some programs reserve address space that they never use.

        Raises:
            SandboxUnavailableError: If the system does not provide the requested isolation, or anything else that the program
                needs.
            NotExecutableError: If the file to be run is not a program.
            UnplacedFilesError: If the folder can't hold the files.
            LaunchError: If the program did not start for another reason.
        """
        try:
            return self._pool.attempt(lambda pool: self._run(pool, command, limits))
        except WorkerDiedError as error:
            raise LaunchError(str(error)) from error

    def _run(self, pool: Pool, command: Command, limits: Limits) -> Finished:
        with folder_on_disk() as folder, memory_files(command.stdin, b"", b"", b"", b"") as files:
            os.pwrite(files[3], encode_request(command, limits, self._isolation, folder), 0)
            with pool.worker() as worker:
                end = worker.run(_PLAN, files, limits)
            layers, answer, written = read_answer(read_all(files[4]), end)
            stdout, stderr = (_without(read_all(file), folder) for file in files[1:3])
        stopped = end.stopped or _stopped(answer.get("status"), max(map(len, (stdout, stderr))), limits)
        return Finished(
            None if stopped else answer["status"], stopped, stdout, stderr, written, "+".join(layers) or "none", end
        )

    def close(self) -> None:
        """End the fork servers. A runner that is used again starts new ones."""
        self._pool.close()


def encode_request(command: Command, limits: Limits, isolation: str, folder: str, own: object = None) -> bytes:
    """Encode the request to a role that runs in a folder.

    Args:
        command: The command to run.
        limits: The limits of the command.
        isolation: The requested isolation.
        folder: A folder on disk, used if no folder in memory is available.
        own: The role's own settings, as JSON values.
    """
    header = {
        "isolation": isolation,
        "readable": list(command.readable),
        "writes": list(command.writes),
        "folder": folder,
        "limits": asdict(limits),
        "command": list(command.arguments),
        "own": own,
        "environment": dict(command.environment),
        "extras": {name: getattr(command, name) for name in ("folder_mib", "folder_files", "processes")},
        "cpus": sorted(os.sched_getaffinity(0)),
    }
    return pack(header, command.files)


def read_answer(answer: bytes, end: JobEnd) -> tuple[list[str], dict[str, Any], dict[str, bytes]]:
    """The layers of isolation, how the confined process ended (empty if it was stopped), and the files.

    Raises:
        SandboxUnavailableError: If the isolation is less than requested.
        LaunchError: If the program did not start.
        UnplacedFilesError: If the folder can't hold the files.
        NotExecutableError: If the program could not be executed.
    """
    first, newline, rest = answer.partition(b"\n")
    hello: dict[str, Any] = unpack(first + newline)[0] if newline else {"failed": f"{end}"}
    if "unplaced" in hello:
        raise UnplacedFilesError(f"the folder can't hold the files: {hello['unplaced']}")
    if "failed" in hello:
        raise LaunchError(f"the program did not start: {hello['failed']}")
    if hello["problem"]:
        raise SandboxUnavailableError(f"{hello['problem']}. {_ADVICE}")
    if end.stopped:
        return hello["layers"], {}, {}
    if not rest:
        raise LaunchError(f"the process that watches the program was killed: {end}")
    header, files = unpack(rest)
    if "problem" in header:
        raise NotExecutableError(header["problem"])
    return hello["layers"], header, files


def _stopped(status: int | None, written: int, limits: Limits) -> str | None:
    if status == -signal.SIGXFSZ or written >= limits.output_mib << 20:
        return "output"
    return "cpu" if status == -signal.SIGXCPU else None


def _without(output: bytes, folder: str) -> bytes:
    return output.replace(folder.encode(), b".").replace(FOLDER.encode(), b".")


@contextlib.contextmanager
def folder_on_disk() -> Iterator[str]:
    """A folder on the disk, for programs that do not have a folder in memory.

    If root runs the program as another user, that user reaches the folder by a path that nobody can list.
    """
    is_root = os.geteuid() == 0
    outer = tempfile.mkdtemp(prefix="rlvr-")
    try:
        os.chmod(outer, 0o711 if is_root else 0o700)
        folder = os.path.join(outer, secrets.token_hex(16) if is_root else "run")
        os.mkdir(folder)
        yield folder
    finally:
        with contextlib.suppress(OSError, UnboundLocalError):
            os.chmod(folder, 0o700)
        shutil.rmtree(outer, ignore_errors=True)
