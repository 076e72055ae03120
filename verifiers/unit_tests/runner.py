"""Runs a program in the sandbox for its output, without tests."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from verifiers.errors import VerifierFailureError
from verifiers.unit_tests.host.jobs import encode_script, run_script, script_failure
from verifiers.unit_tests.host.pool import Pool, WorkerDiedError
from verifiers.unit_tests.verifier import UnitTestVerifier


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
        limits = self._sandbox._limits_within(timeout_s)

        def run(pool: Pool) -> ProgramOutput:
            output, streams, answer = run_script(pool, limits, encode_script(program, seed), stdin)
            failure = script_failure(answer, len(output) >= limits.output_mib << 20)
            cpu_s = float(answer["candidate"]["cpu_s"])
            return ProgramOutput(output.decode(errors="replace"), streams.get("stderr", ""), failure, cpu_s)

        try:
            return self._sandbox._pool.attempt(run)
        except WorkerDiedError as error:
            raise VerifierFailureError(str(error)) from error

    def close(self) -> None:
        """End the fork servers. A runner that is used again starts new ones."""
        self._sandbox.close()
