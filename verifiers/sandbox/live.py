"""Python programs that keep running in the sandbox between questions."""

from __future__ import annotations

import os
import select
import time

from verifiers.sandbox.contract import SCRIPT, Plan
from verifiers.sandbox.limits import Limits
from verifiers.sandbox.memory_files import memory_files
from verifiers.sandbox.pool import Pool

_FILES = ("stdin", "stdout", "stderr", "program")
_PLAN = Plan(_FILES, ((SCRIPT.name, _FILES),))
_MOST_BYTES = 8 << 20
"""Maximum length of an answer, in bytes."""


class ProgramEndedError(Exception):
    """The program has ended, or does not answer in time."""


class LiveProgram:
    """A program that answers each line of standard input with a line of standard output; used by one thread at a time.

    The limits apply to all answers together, as to a single run. The program ends with `close`, with this object, or with this
    process.

    Args:
        pool: The fork servers.
        limits: The program's limits; of the limits on time, only the one on processor time applies.
        program: The program, encoded by `encode_program`.

    Raises:
        ProgramEndedError: If the system can't keep the program apart from others.
        WorkerDiedError: If a fork server ends.
    """

    def __init__(self, pool: Pool, limits: Limits, program: bytes) -> None:
        asked, self._questions = os.pipe()
        self._answers, answered = os.pipe()
        # A question that is longer than the pipe would wait for the program, which may never read.
        os.set_blocking(self._questions, False)
        try:
            with memory_files(b"", program) as files, pool.worker() as worker:
                kept = worker.keep(_PLAN, (asked, answered, *files), limits)
        except BaseException:
            self.close()
            raise
        finally:
            os.close(asked)
            os.close(answered)
        if not kept:
            self.close()
            raise ProgramEndedError("a program that is kept needs filters of system calls")

    def ask(self, question: str, timeout_s: float) -> str:
        """Ask a question of one line, and return the line that answers it.

        Raises:
            ProgramEndedError: If no answer arrives in time; the program can't be used any more.
        """
        if not hasattr(self, "_questions"):
            raise ProgramEndedError("the program was closed")
        left, answer, end = memoryview(question.encode() + b"\n"), b"", time.monotonic() + timeout_s
        try:
            while not answer.endswith(b"\n"):
                if left:
                    self._wait(self._questions, select.POLLOUT, end)
                    left = left[os.write(self._questions, left) :]
                    continue
                self._wait(self._answers, select.POLLIN, end)
                part = os.read(self._answers, 1 << 16)
                if not part or len(answer) > _MOST_BYTES:
                    raise ProgramEndedError("the program has ended, or answers without end")
                answer += part
        except OSError as error:
            raise ProgramEndedError(str(error)) from error
        return answer.decode(errors="replace")

    def _wait(self, descriptor: int, event: int, end: float) -> None:
        waiting = select.poll()
        waiting.register(descriptor, event)
        if not waiting.poll(1000 * max(0.0, end - time.monotonic())):
            raise ProgramEndedError("the program does not answer in time")

    def close(self) -> None:
        """End the program."""
        for name in ("_questions", "_answers"):
            descriptor = self.__dict__.pop(name, None)
            if descriptor is not None:
                os.close(descriptor)

    def __del__(self) -> None:
        self.close()
