"""Collects the requests that arrive while the verifier works, and judges them together in its next batch."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

from verifiers import Outcome, Problem, Verdict, Verifier, VerifierContractError, verifier_error, verify_batch


class OverloadedError(Exception):
    """Raised if too many completions are waiting."""


@dataclass(frozen=True, slots=True)
class _Job:
    completions: Sequence[str]
    problems: Sequence[Problem]
    verdicts: asyncio.Future[list[Verdict]]


class Batcher:
    """Passes requests to a verifier in one thread, so that the verifier need not be thread-safe.

    No request waits for other requests to arrive. A batch consists of the requests that arrived while the preceding batch was
    judged.
    """

    def __init__(self, verifier: Verifier, *, batch_size: int, max_waiting: int) -> None:
        self._verifier = verifier
        self._batch_size = batch_size
        self._max_waiting = max_waiting
        self._jobs: deque[_Job] = deque()
        self._arrived = asyncio.Event()
        self.waiting = 0
        """Number of completions without a verdict."""
        self.judged = 0
        """Number of completions with a verdict."""
        self.verifier_errors = 0
        """Number of completions with a `VERIFIER_ERROR`."""

    async def verify(self, completions: Sequence[str], problems: Sequence[Problem]) -> list[Verdict]:
        """Judge completion i against problem i."""
        if self.waiting + len(completions) > self._max_waiting:
            raise OverloadedError(
                f"{self.waiting} completions are waiting, and at most {self._max_waiting} may: try again later"
            )
        job = _Job(completions, problems, asyncio.get_running_loop().create_future())
        self.waiting += len(completions)
        self._jobs.append(job)
        self._arrived.set()
        return await job.verdicts

    async def run(self) -> None:
        """Judge requests as they arrive, until cancelled."""
        while True:
            await self._arrived.wait()
            jobs = self._next_jobs()
            completions = [completion for job in jobs for completion in job.completions]
            problems = [problem for job in jobs for problem in job.problems]
            verdicts = await asyncio.to_thread(_judge, self._verifier, completions, problems)
            self.waiting -= len(verdicts)
            self.judged += len(verdicts)
            self.verifier_errors += sum(verdict.outcome is Outcome.VERIFIER_ERROR for verdict in verdicts)
            remaining = iter(verdicts)
            for job in jobs:
                own = [next(remaining) for _ in job.completions]
                if not job.verdicts.done():  # the request may have been cancelled
                    job.verdicts.set_result(own)

    def _next_jobs(self) -> list[_Job]:
        """The oldest request, and those after it that fit into the batch."""
        jobs = [self._jobs.popleft()]
        size = len(jobs[0].completions)
        while self._jobs and size + len(self._jobs[0].completions) <= self._batch_size:
            jobs.append(self._jobs.popleft())
            size += len(jobs[-1].completions)
        if not self._jobs:
            self._arrived.clear()
        return jobs


def _judge(verifier: Verifier, completions: Sequence[str], problems: Sequence[Problem]) -> list[Verdict]:
    try:
        return verify_batch(verifier, completions, problems)
    except VerifierContractError as error:  # the verifier has a defect; the service goes on without a verdict
        return [verifier_error(error)] * len(completions)
