"""Runs programs of the machine, such as a proof checker, on untrusted input: each run in a jail and a folder of its own."""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass

from verifiers.errors import SandboxUnavailableError
from verifiers.sandbox.descriptors import enough_descriptors
from verifiers.sandbox.limits import Limits
from verifiers.sandbox.memory_files import memory_files, read_all
from verifiers.sandbox.worker import BOOT_FILE, OWN_FOLDER

_BOOT = """
import sys
with open(sys.argv.pop(1)) as file: exec(file.read())
from verifiers.sandbox.server.launcher import main
main()
"""
_MOST_ANSWER = 1 << 16
_ADVICE = (
    "Proof checkers and other programs of the machine run isolated on Linux 5.13 or later, x86-64 or aarch64, with seccomp "
    "filters and with landlock or user namespaces; in a container, the seccomp profile has to permit one of these. To run "
    "them without isolation, on text that you trust, pass isolation='none'."
)


class LaunchError(Exception):
    """A program could not be started, which says nothing of its input."""


@dataclass(frozen=True, slots=True)
class Finished:
    """How a run ended."""

    exit_code: int | None
    """The exit status, negative for a signal; None if the run was stopped."""
    stopped: str | None
    """The limit that was exceeded: `"cpu"`, `"wall"`, `"output"`, or None."""
    stdout: bytes
    """What it wrote, where `.` stands for the folder."""
    stderr: bytes
    written: Mapping[str, bytes]
    """The files that the program was allowed to write, by name; empty ones are left out."""
    isolation: str
    """The layers of isolation in force, joined by `+`, or `"none"`."""
    seconds: float
    """Wall-clock time."""


def run_binary(
    command: Sequence[str],
    files: Mapping[str, bytes],
    writes: Sequence[str],
    *,
    readable: Sequence[str],
    limits: Limits,
    isolation: str,
) -> Finished:
    """Run a program in a new folder, which is gone afterwards.

    The environment is fixed, standard input is empty, and the program ends with the calling thread.

    Args:
        command: The program, by its path, and its arguments.
        files: Content by name: what the program finds in its folder.
        writes: Names of the files that it may write there; it can create no other.
        readable: Paths that it may read besides its folder and the system's libraries; programs there may be executed.
        limits: Its limits; the idle time is not used.
        isolation: `"auto"`, `"strict"` or `"none"`, as for `UnitTestVerifier`.

    Raises:
        SandboxUnavailableError: If the system does not provide the requested isolation.
        LaunchError: If the program did not start.
    """
    if sys.platform != "linux":
        raise SandboxUnavailableError(f"this is {sys.platform!r}. {_ADVICE}")
    start = time.monotonic()
    with enough_descriptors(), _folder(files, writes) as folder, memory_files(b"", b"") as (stdout, stderr):
        asked = {
            "isolation": isolation,
            "readable": [*readable, folder],
            "writable": [os.path.join(folder, name) for name in writes],
            "folder": folder,
            "limits": asdict(limits),
            "command": list(command),
            "environment": {"LC_ALL": "C.UTF-8", "HOME": "/", "PATH": ""},
        }
        exit_code, layers = _launch(asked, stdout, stderr, limits.wall_s)
        return Finished(
            exit_code,
            _stopped(exit_code),
            read_all(stdout).replace(folder.encode(), b"."),
            read_all(stderr).replace(folder.encode(), b"."),
            {name: content for name in writes if (content := _read(os.path.join(folder, name)))},
            "+".join(layers) or "none",
            time.monotonic() - start,
        )


def _launch(asked: Mapping[str, object], stdout: int, stderr: int, wall_s: float) -> tuple[int | None, list[str]]:
    """Run to the end; return the exit status, None if the wall-clock time ran out, and the layers of isolation."""
    reader, writer = os.pipe()
    arguments = [BOOT_FILE, json.dumps(OWN_FOLDER), str(writer), str(os.getpid()), json.dumps(asked)]
    with os.fdopen(reader, "rb") as answer:
        try:
            with enough_descriptors():
                process = subprocess.Popen(
                    [sys.executable, "-I", "-S", "-B", "-c", _BOOT, *arguments],
                    stdin=subprocess.DEVNULL,
                    stdout=stdout,
                    stderr=stderr,
                    pass_fds=[writer],
                    cwd="/",
                    env={"LC_ALL": "C.UTF-8"},
                    start_new_session=True,
                )
        except OSError as error:
            raise LaunchError(f"no process could be started: {error}") from error
        finally:
            os.close(writer)
        try:
            said = answer.read(_MOST_ANSWER)  # ends when the launcher becomes the program, or ends itself
            exit_code = process.wait(wall_s)
        except subprocess.TimeoutExpired:
            exit_code = None
        finally:
            _end(process)
    return exit_code, _layers(said, stderr)


def _layers(said: bytes, stderr: int) -> list[str]:
    """The layers of isolation that the launcher tells.

    Raises:
        SandboxUnavailableError: If they are less than was asked for.
        LaunchError: If it tells nothing, or that the program could not be executed.
    """
    if not said.endswith(b"}"):
        problem = (said.rpartition(b"}")[2] or read_all(stderr))[-2000:].decode(errors="replace")
        raise LaunchError(f"the program did not start: {problem}")
    answer = json.loads(said)
    if answer["problem"]:
        raise SandboxUnavailableError(f"{answer['problem']}. {_ADVICE}")
    layers: list[str] = answer["layers"]
    return layers


def _end(process: subprocess.Popen[bytes]) -> None:
    """End a program, and without isolation what it started."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _stopped(exit_code: int | None) -> str | None:
    signals = {-signal.SIGXCPU: "cpu", -signal.SIGXFSZ: "output"}
    return "wall" if exit_code is None else signals.get(exit_code)


@contextlib.contextmanager
def _folder(files: Mapping[str, bytes], writes: Sequence[str]) -> Iterator[str]:
    """A folder with the files, in which nothing can be created; the files to write are there and empty.

    If root runs the program as another user, that one reaches it by a path that nobody can list.
    """
    is_root = os.geteuid() == 0
    outer = tempfile.mkdtemp(prefix="rlvr-")
    try:
        os.chmod(outer, 0o711 if is_root else 0o700)
        folder = os.path.join(outer, secrets.token_hex(16) if is_root else "run")
        os.mkdir(folder)
        for name, content in {**dict.fromkeys(writes, b""), **files}.items():
            path = os.path.join(folder, name)
            with open(path, "wb") as file:
                file.write(content)
            mode = (0o666 if is_root else 0o600) if name in writes else 0o444
            os.chmod(path, mode)
        os.chmod(folder, 0o555)
        yield folder
    finally:
        with contextlib.suppress(OSError, UnboundLocalError):
            os.chmod(folder, 0o700)
        shutil.rmtree(outer, ignore_errors=True)


def _read(path: str) -> bytes:
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:  # without isolation the program may have replaced it
        return b""
    with os.fdopen(handle, "rb") as file:
        return file.read()
