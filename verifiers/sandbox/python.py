"""Runs a Python program in the sandbox and returns its output."""

from __future__ import annotations

import json
import re
import signal
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from verifiers.errors import VerifierFailureError
from verifiers.sandbox.contract import SCRIPT, JobEnd, Plan
from verifiers.sandbox.limits import Limits
from verifiers.sandbox.live import LiveProgram, ProgramEndedError
from verifiers.sandbox.memory_files import memory_files, read_all
from verifiers.sandbox.pool import Pool
from verifiers.sandbox.programs.script import FAILURES
from verifiers.sandbox.sandbox import Sandbox
from verifiers.sandbox.worker import WorkerDiedError

_FILES = ("stdin", "stdout", "stderr", "program")
_PLAN = Plan(_FILES, ((SCRIPT.name, _FILES),))
_EXCERPT = 1000
_CUT = b"\n[...]\n"
_ERROR_LINE = re.compile(r"^(?P<type>\w+): (?P<message>.*?)(?: \((?P<file>[^()]*), line (?P<line>\d+)\))?\Z")
"""Matches the exception that ended a script, as its process writes it in the last line of standard error."""
_ADDRESS = re.compile(r"0x[0-9a-fA-F]{6,}")


@dataclass(frozen=True, slots=True)
class ProgramOutput:
    """A program's output, and how it ended."""

    stdout: str
    excerpts: Mapping[str, str]
    """The beginning and the end of `stdout` and of `stderr`, for those that are not empty."""
    failure: str | None
    """The class of failure: `timeout`, `memory`, `output_limit`, `forbidden`, `exit`, `crash`, `exception` or `syntax_error`;
    None if the program did not fail.
    """
    exception: Mapping[str, object] | None
    """Type, message, file and line of the exception that ended the program; None if there was none."""
    end: JobEnd

    @property
    def stderr(self) -> str:
        """The standard error; if it is long, only its beginning and its end."""
        return self.excerpts.get("stderr", "")

    @property
    def cpu_seconds(self) -> float:
        """CPU seconds of the program."""
        return next(iter(self.end.processes.values())).cpu_s


def encode_program(files: Mapping[str, str], main: str, seed: str, **more: object) -> bytes:
    """Encode a program for `run_script`.

    Args:
        files: Source text by path.
        main: The path of the file to run; the others can be imported.
        seed: Seeds the program's `random`.
        more: A `prelude`, which runs before the main file in its namespace, and further fields of a contract's program.
    """
    # The seed is a number, since deriving one from a string would take time in each child.
    number = zlib.crc32(seed.encode("utf-8", "surrogatepass"))
    content = {"files": dict(files), "main": main, "seed": number, **more}
    # Not in ASCII: as escapes, two adjacent lone surrogates would be decoded as one character.
    return json.dumps(content, ensure_ascii=False).encode("utf-8", "surrogatepass")


def run_script(pool: Pool, limits: Limits, program: bytes, stdin: str) -> ProgramOutput:
    """Run an encoded program and return its output; raises WorkerDiedError if the fork server ends."""
    with memory_files(stdin.encode(), b"", b"", program) as files:
        with pool.worker() as worker:
            end = worker.run(_PLAN, files, limits)
        stdout, stderr = map(read_all, files[1:3])
    streams = excerpts_of(stdout, stderr)
    status = end.processes[SCRIPT.name].exit_code
    exception = _exception(streams.get("stderr", "")) if status in FAILURES else None
    failure = _failure(end, len(stdout) >= limits.output_mib << 20)
    return ProgramOutput(stdout.decode(errors="replace"), streams, failure, exception, end)


def _failure(end: JobEnd, output_full: bool) -> str | None:
    """The class of failure of a program that ran as a script; None if it did not fail."""
    status = end.processes[SCRIPT.name].exit_code
    assert status is not None, "it has been reaped"
    if end.stopped or status == -signal.SIGXCPU:
        return "timeout"
    if output_full:
        return "output_limit"
    if status == 0:
        return None
    return FAILURES.get(status, "crash" if status < 0 else "exit")


def _exception(stderr: str) -> dict[str, object] | None:
    match = _ERROR_LINE.match(stderr.rstrip("\n").split("\n")[-1])
    if match is None:
        return None
    return match.groupdict() | {"line": None if match["line"] is None else int(match["line"])}


def excerpts(stdout: int, stderr: int) -> dict[str, str]:
    """The beginning and the end of a program's standard output and standard error, if they are not empty."""
    return excerpts_of(read_all(stdout), read_all(stderr))


def excerpts_of(stdout: bytes, stderr: bytes) -> dict[str, str]:
    """The same as `excerpts`, for output that has already been read."""
    half = _EXCERPT // 2
    streams = {"stdout": stdout, "stderr": stderr}
    cut = {name: text if len(text) <= _EXCERPT else text[:half] + _CUT + text[-half:] for name, text in streams.items()}
    return {name: clean(text.decode(errors="replace")) for name, text in cut.items() if text}


def clean(text: str) -> str:
    """Drop memory addresses from a text, since they differ from run to run."""
    return _ADDRESS.sub("0x...", text)


class ProgramRunner:
    """Runs programs of one file in the sandbox, from any number of threads.

    Args:
        settings: Settings of `Sandbox`: `timeout_s`, `wall_s`, `memory_mib`, `output_mib`, `max_threads`, `workers`,
            `isolation`, `packages`.

    Raises:
        InvalidArgumentError: If a setting is out of range, or a package is not installed.
    """

    def __init__(self, **settings: Any) -> None:
        self._sandbox = Sandbox(**settings)

    def __call__(
        self, program: str, stdin: str = "", *, seed: str = "", timeout_s: float | None = None
    ) -> ProgramOutput:
        """Run a program.

        Args:
            program: The program's text.
            stdin: The program's standard input.
            seed: Seeds the program's `random`; equal programs with equal seeds write the same, except for times and addresses.
            timeout_s: CPU seconds, and seconds of idleness, in place of the runner's own.

        Raises:
            SandboxUnavailableError: If the system provides less isolation than requested.
            VerifierFailureError: If the sandbox itself fails.
        """
        limits = self._sandbox.limits_within(timeout_s)
        encoded = encode_program({"solution.py": program}, "solution.py", seed)
        try:
            return self._sandbox.pool.attempt(lambda pool: run_script(pool, limits, encoded, stdin))
        except WorkerDiedError as error:
            raise VerifierFailureError(str(error)) from error

    def keep(self, program: str, *, seed: str = "", timeout_s: float | None = None) -> LiveProgram:
        """Start a program that keeps running between questions.

        Args:
            program: The program's text.
            seed: Seeds the program's `random`.
            timeout_s: CPU seconds over all answers of the program, in place of the runner's own.

        Raises:
            SandboxUnavailableError: If the system provides less isolation than requested.
            ProgramEndedError: If the system can't keep the program apart from others, or a fork server ends.
        """
        limits = self._sandbox.limits_within(timeout_s)
        encoded = encode_program({"solution.py": program}, "solution.py", seed)
        try:
            return self._sandbox.pool.attempt(lambda pool: LiveProgram(pool, limits, encoded))
        except WorkerDiedError as error:
            raise ProgramEndedError(str(error)) from error

    def close(self) -> None:
        """End the fork servers. A runner that is used again starts new ones."""
        self._sandbox.pool.close()
