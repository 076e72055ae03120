"""Runs programs where there is no fork server: an interpreter for each program and one for its tests, without isolation.

For `isolation="none"` on systems other than Linux. The limits are wall-clock time and
those that `setrlimit` supports. Each program costs a tenth of a second or more, and nothing keeps one from harming the machine.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from verifiers.unit_tests.host.packages import Packages
from verifiers.unit_tests.sandbox.protocol.limits import Limits

_FOLDER = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
_BOOT = """
import fcntl, json, os, resource, site, sys
folder, role, told = sys.argv[1:]
told = json.loads(told)
for number, descriptor in enumerate([fcntl.fcntl(each, fcntl.F_DUPFD_CLOEXEC, 64) for each in told["descriptors"]]):
    os.dup2(descriptor, number)
sys.path.insert(0, folder)
from sandbox.protocol import unpatched
unpatched.install()
from sandbox.candidate import candidate
from sandbox.protocol import packages
from sandbox.tester.test_files import own_process
packages.preload(told["packages"])
unpatched.uninstall()
sys.path.remove(folder)
site.setquit()
sys.argv = ["solution.py"]
for name, value in told["limits"].items():
    try: resource.setrlimit(getattr(resource, name), (value, value + (name == "RLIMIT_CPU")))  # a signal that says why, first
    except (AttributeError, OSError, ValueError): pass
roles = {"calls": candidate.answer_calls, "script": candidate.run_script, "tests": lambda: own_process.run_alone(3, 4, 5, 6)}
roles[role]()
"""
_POLL_S = 0.005


def is_needed() -> bool:
    """Whether this system can't run a fork server, but can start a process for each job instead."""
    return sys.platform != "win32" and (sys.platform != "linux" or bool(missing()))


def missing() -> list[str]:
    """Functions that the fork server needs and this Python lacks."""
    return [f"os.{name}" for name in ("memfd_create", "pidfd_open", "register_at_fork") if not hasattr(os, name)]


def memory_file(name: str) -> int:
    """Open a file without a path, in memory where the system supports that."""
    if hasattr(os, "memfd_create"):
        return os.memfd_create(name, os.MFD_CLOEXEC)
    with tempfile.TemporaryFile() as file:
        return os.dup(file.fileno())


class PortableWorker:
    """Replaces a `pool.ForkServerWorker`, with new processes for each job."""

    def __init__(self, packages: Packages, environment: Mapping[str, str]) -> None:
        self._packages = packages
        self._environment = environment
        self.hello: Mapping[str, Any] = {"layers": [], "missing": {}, "escapes": []}
        self.in_step = True
        self.on_waiting: Callable[[object, bool], object] | None = None
        """Never called: waiting jobs are not detected here."""
        self.has_ended = False
        self.pid = os.getpid()

    def run(self, request: bytes, descriptors: Sequence[int], wall_s: float) -> dict[str, Any]:
        """Run a job, and return the answer of a fork server."""
        job = json.loads(request)
        limits = Limits(**job["limits"])
        start = time.monotonic()
        deadline = start + min(wall_s, limits.cpu_s + limits.idle_s)
        run = self._run_tested if job["tested"] else self._run_script
        return run(descriptors, limits, deadline) | {"seconds": time.monotonic() - start}

    def stop(self) -> None:
        """Do nothing: no process runs between jobs."""

    def forget(self) -> None:
        """Do nothing: no process runs between jobs."""

    def _run_script(self, descriptors: Sequence[int], limits: Limits, deadline: float) -> dict[str, Any]:
        with self._started("script", descriptors, limits) as program:
            stopped = program.wait(deadline)
        return {"stopped": stopped, "candidate": program.summary()}

    def _run_tested(self, descriptors: Sequence[int], limits: Limits, deadline: float) -> dict[str, Any]:
        stdin, stdout, stderr, program, tests, report = descriptors
        requests, replies, null = os.pipe(), os.pipe(), os.open(os.devnull, os.O_RDWR)
        with contextlib.ExitStack() as stack:
            running = (stdin, stdout, stderr, requests[0], replies[1], program)
            judging = (null, null, null, replies[0], requests[1], tests, report)
            try:
                candidate = stack.enter_context(self._started("calls", running, limits))
                tester = stack.enter_context(self._started("tests", judging, limits))
            finally:
                for descriptor in (*requests, *replies, null):
                    os.close(descriptor)
            # The tester ends when its candidate does, for whatever reason.
            stopped = tester.wait(deadline) or candidate.passed_limit()
        return {"stopped": stopped, "candidate": candidate.summary(), "tester_exit": tester.exit_code}

    @contextlib.contextmanager
    def _started(self, role: str, descriptors: Sequence[int], limits: Limits) -> Iterator[_Process]:
        sizes = {"RLIMIT_CPU": int(limits.cpu_s) + 1, "RLIMIT_AS": limits.memory_mib << 20, "RLIMIT_CORE": 0}
        sizes["RLIMIT_FSIZE"] = max(limits.output_mib, _ROOM_FOR_REPORT if role == "tests" else 0) << 20
        settings = {"descriptors": list(descriptors), "packages": asdict(self._packages), "limits": sizes}
        process = subprocess.Popen(
            [sys.executable, "-s", "-S", "-P", "-c", _BOOT, _FOLDER, role, json.dumps(settings)],
            pass_fds=sorted({*descriptors}),
            env=self._environment,
            cwd="/",
            start_new_session=True,
        )
        started = _Process(process)
        try:
            yield started
        finally:
            started.end()


_ROOM_FOR_REPORT = 64
"""MiB."""


class _Process:
    """An interpreter process, and the resources it used."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process
        self.exit_code: int | None = None
        self._cpu_s, self._memory_bytes = 0.0, 0

    def wait(self, deadline: float) -> str | None:
        """Wait for the end; return the limit that was exceeded, or None."""
        while not self._has_ended(os.WNOHANG):
            if time.monotonic() > deadline:
                return "wall"
            time.sleep(_POLL_S)
        return self.passed_limit()

    def passed_limit(self) -> str | None:
        """The limit for which the system ended the process, or None."""
        return "cpu" if self._has_ended(os.WNOHANG) and self.exit_code == -signal.SIGXCPU else None

    def _has_ended(self, options: int) -> bool:
        if self.exit_code is not None:
            return True
        pid, status, usage = os.wait4(self._process.pid, options)
        if pid == 0:
            return False
        self.exit_code = self._process.returncode = os.waitstatus_to_exitcode(status)
        self._cpu_s = usage.ru_utime + usage.ru_stime
        self._memory_bytes = usage.ru_maxrss * (1 if sys.platform == "darwin" else 1024)
        return True

    def end(self) -> None:
        """Kill the process and everything that it started in its session."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._has_ended(0)

    def summary(self) -> dict[str, Any]:
        """What a fork server reports about a candidate."""
        return {"exit": self.exit_code, "cpu_s": self._cpu_s, "memory_bytes": self._memory_bytes}
