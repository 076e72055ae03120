"""A handle of the owning process for one fork server."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from verifiers.sandbox.contract import SCRIPT, SCRIPT_SAMPLE, Contract, JobEnd, Plan, ProcessEnd, encoded_request
from verifiers.sandbox.limits import LAYERS, Limits
from verifiers.sandbox.packages import Packages, folder_of

_HOME = os.path.dirname(os.path.abspath(__file__))
BOOT_FILE = os.path.join(_HOME, "boot.py")
OWN_FOLDER = {"verifiers.sandbox": _HOME}
"""The folder of the jail's own package, in the form in which `boot` takes it."""
_BOOT = """
import fcntl, os, resource, sys
resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
errors = fcntl.fcntl(2, fcntl.F_DUPFD_CLOEXEC, 16)
try:
    with open(sys.argv.pop(1)) as file: exec(file.read())
    from verifiers.sandbox.server.start import main
    main()
except Exception:
    import traceback
    os.write(errors, traceback.format_exc().encode(errors="replace"))
"""
"""Source that starts the server; it writes the error that ends the server to a separate copy of standard error."""
_LAST_WORDS = 2000
"""Number of bytes kept of a server's last output."""
_START_S = 60.0
_END_S = 1.0
_GRACE_S = 30.0


class WorkerDiedError(Exception):
    """A fork server ended, or did not answer in time."""


class Worker:
    """A handle for one fork server; used by one thread at a time."""

    def __init__(self, isolation: str, packages: Packages, contract: Contract | None) -> None:
        """Start a fork server; raises WorkerDiedError if it ends before it is ready."""
        self.in_step = True
        """Whether the server has answered every request; otherwise its next answer belongs to an earlier request."""
        with contextlib.ExitStack() as opened:
            self._control, theirs = map(opened.enter_context, socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET))
            self._errors = opened.enter_context(os.fdopen(os.memfd_create("errors", os.MFD_CLOEXEC), "rb"))
            self._process = subprocess.Popen(
                _command(theirs.fileno(), isolation, packages, contract),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=self._errors,
                pass_fds=[theirs.fileno()],
                env=_environment(packages),
                cwd="/",
                start_new_session=True,
            )
            opened.pop_all()
            theirs.close()
        try:
            self.hello: Mapping[str, Any] = self._receive(_START_S)
        except WorkerDiedError:
            self.stop()
            raise

    def run(self, plan: Plan, files: Sequence[int], limits: Limits) -> JobEnd:
        """Run a job; raises WorkerDiedError if no answer comes until well after the job's wall-clock limit."""
        answer = self._ask(encoded_request(plan, limits), files, limits.wall_s + _GRACE_S)
        ends = {role: ProcessEnd(*end) for role, end in answer["processes"].items()}
        return JobEnd(answer["stopped"], answer["seconds"], ends)

    def keep(self, plan: Plan, files: Sequence[int], limits: Limits) -> bool:
        """Start a process that continues after this call, until it ends or its first file, a pipe, is closed at the other end.

        The only time limit on the process is processor time. Returns False, without keeping a process, if processes could leave
        other processes behind. Raises WorkerDiedError if there is no answer.
        """
        answer = self._ask(encoded_request(plan, limits, kept=True), files, _GRACE_S)
        return bool(answer["processes"])

    def _ask(self, request: bytes, files: Sequence[int], timeout_s: float) -> dict[str, Any]:
        self.in_step = False
        try:
            socket.send_fds(self._control, [request], list(files))
        except OSError as error:
            raise WorkerDiedError(self._last_words(str(error))) from error
        answer = self._receive(timeout_s)
        self.in_step = True
        return answer

    def _receive(self, timeout_s: float) -> dict[str, Any]:
        self._control.settimeout(timeout_s)
        try:
            data = self._control.recv(1 << 16)
        except OSError as error:
            raise WorkerDiedError(str(error) or "no answer") from error
        if not data:
            raise WorkerDiedError(self._last_words("the fork server ended"))
        answer: dict[str, Any] = json.loads(data)
        return answer

    def _last_words(self, problem: str) -> str:
        """A description of a problem with the server's exit status and last output."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            problem += f" (exit status {self._process.wait(_END_S)})"
        descriptor = self._errors.fileno()
        size = os.fstat(descriptor).st_size
        written = os.pread(descriptor, _LAST_WORDS, max(0, size - _LAST_WORDS)).decode(errors="replace").strip()
        return f"{problem}: {written}" if written else problem

    @property
    def has_ended(self) -> bool:
        """Whether the server has ended."""
        return self._process.poll() is not None

    @property
    def pid(self) -> int:
        """Process id of the fork server."""
        return self._process.pid

    def stop(self) -> None:
        """End the server and its children, and wait until it is gone."""
        self._control.close()
        self._errors.close()
        self._process.kill()
        self._process.wait()

    def forget(self) -> None:
        """Release a server that belongs to the parent of this forked process, without ending it."""
        self._control.close()
        self._errors.close()
        self._process.returncode = 0  # it is not this process's child, so there is nothing to wait for


def _command(descriptor: int, isolation: str, packages: Packages, contract: Contract | None) -> list[str]:
    flags = ["-s", "-S", "-P", *(["-B"] if sys.dont_write_bytecode else []), "-X", "frozen_modules=on"]
    folders = OWN_FOLDER | ({contract.package: folder_of(contract.package)} if contract else {})
    settings = {
        "layers": () if isolation == "none" else LAYERS,
        "may_close_files": isolation == "available",
        "packages": asdict(packages),
        "roles": [asdict(role) for role in (SCRIPT, *(contract.roles if contract else ()))],
        "prepare": contract.prepare if contract else "",
        "sample": contract.sample if contract else SCRIPT_SAMPLE,
    }
    arguments = [BOOT_FILE, json.dumps(folders), str(descriptor), str(os.getpid()), json.dumps(settings)]
    return [sys.executable, *flags, "-c", _BOOT, *arguments]


_ONE_THREAD = {
    f"{library}_NUM_THREADS": "1" for library in ("OMP", "OPENBLAS", "MKL", "BLIS", "VECLIB_MAXIMUM", "NUMEXPR")
}
"""Environment variables that keep libraries from starting threads: a process with threads can't be forked, and programs share
their CPUs.
"""


def _environment(packages: Packages) -> dict[str, str]:
    """A fixed environment without secrets, in which hashes, and thus output, are the same in every run."""
    fixed = {"PYTHONHASHSEED": "0", "PYTHONUTF8": "1", "MALLOC_ARENA_MAX": "1", "LC_ALL": "C.UTF-8", "HOME": "/"}
    searched = os.environ.get("LD_LIBRARY_PATH")
    return fixed | ({"LD_LIBRARY_PATH": searched} if searched else {}) | (_ONE_THREAD if packages.names else {})
