"""Runs a program in the sandbox for its output, without tests."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from verifiers.errors import VerifierFailureError
from verifiers.unit_tests.host.jobs import encode_script, run_script, script_failure
from verifiers.unit_tests.host.pool import WorkerDiedError, check_platform
from verifiers.unit_tests.sandbox.protocol.limits import Limits
from verifiers.unit_tests.verifier import UnitTestVerifier

_ATTEMPTS = 2


@dataclass(frozen=True, slots=True)
class ProgramOutput:
    """What a program wrote, and how it ended."""

    stdout: str
    stderr: str
    """Its beginning and its end, where it is long."""
    failure: str | None
    """None, or as in a verdict's detail: `timeout`, `memory`, `output_limit`, `forbidden`, `exit`, `crash`, `exception` or
    `syntax_error`."""
    cpu_seconds: float


class ProgramRunner:
    """Runs programs of one file in the sandbox of `unit_tests`, from any number of threads.

    Args:
        settings: Those of `UnitTestVerifier` that limit a program: `timeout_s`, `wall_s`, `memory_mib`, `output_mib`,
            `max_threads`, `workers`, `isolation`, `packages`.

    Raises:
        InvalidArgumentError: If a setting is out of range, or a package is not installed.
    """

    def __init__(self, **settings: Any) -> None:
        self._sandbox = UnitTestVerifier(**settings)

    def __call__(
        self, program: str, stdin: str = "", *, seed: str = "", timeout_s: float | None = None
    ) -> ProgramOutput:
        """Run a program.

        Args:
            program: Its text.
            stdin: Its standard input.
            seed: Seeds the program's `random`; equal programs with equal seeds write the same, but for the clock and addresses.
            timeout_s: CPU seconds, and seconds of idleness, in place of the runner's own.

        Raises:
            SandboxUnavailableError: If the system provides less isolation than requested.
            VerifierFailureError: If the sandbox itself fails.
        """
        check_platform(self._sandbox._isolation_asked)
        limits = self._sandbox._limits
        if timeout_s is not None:
            limits = replace(limits, cpu_s=timeout_s, idle_s=timeout_s + 1, wall_s=10 * timeout_s + 30)
        problem = ""
        for _ in range(_ATTEMPTS):
            try:
                return self._run(encode_script(program, seed), stdin, limits)
            except WorkerDiedError as error:
                problem = str(error)
        raise VerifierFailureError(f"the fork server died {_ATTEMPTS} times: {problem}")

    def _run(self, program: bytes, stdin: str, limits: Limits) -> ProgramOutput:
        output, streams, answer = run_script(self._sandbox._pool.worker, limits, program, stdin)
        return ProgramOutput(
            output.decode(errors="replace"),
            streams.get("stderr", ""),
            script_failure(answer, len(output) >= limits.output_mib << 20),
            float(answer["candidate"]["cpu_s"]),
        )

    def close(self) -> None:
        """End the fork servers. A runner that is used again starts new ones."""
        self._sandbox.close()
