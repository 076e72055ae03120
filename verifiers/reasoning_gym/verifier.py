"""Judges answers to problems of reasoning-gym with its own scorers."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Annotated, Any

from verifiers._settings import checked
from verifiers.bounds import AtLeast, Seconds
from verifiers.completion.cut import cut, thought_names
from verifiers.completion.explicit import explicit_marks
from verifiers.completion.words import THOUGHTS
from verifiers.errors import InvalidArgumentError, UnreadableReferenceError, VerifierFailureError
from verifiers.functions import verify_one
from verifiers.reasoning_gym.problems import ask, refusal, request_of, require_reasoning_gym, runner
from verifiers.reasoning_gym.reference import ReasoningGymReference, read_reference
from verifiers.sandbox import Isolation, ProgramOutput
from verifiers.types import Outcome, Problem, Verdict

_THREADS = 16
"""Maximum number of verdicts to wait for at once; the sandbox runs as many programs at a time as there are CPUs."""


class ReasoningGymVerifier:
    """Judges problems of reasoning-gym: a completion is correct if the problem's own scorer gives it the full score, 1.0.

    The reference is a `ReasoningGymReference`, or a mapping with its fields, from which the problem is made again. The
    answer is the content of the response's last `<answer>…</answer>`; without these tags the verdict is `NO_ANSWER`.
    A score between 0 and 1 is `SCORED`, a score of 0 is `INCORRECT`.

    Some scorers evaluate the answer as Python, so each verdict is formed in its own process in the sandbox of `unit_tests`,
    where `eval` accepts only literals, arithmetic and elementary functions. If a scorer of this release gives wrong answers the
    full score, a further condition applies (`jailed.CONDITIONS`). An answer with a number that is not finite is never right.

    Before the answer, the problem's own right answer and a meaningless answer are scored. If the scorer can't tell these apart,
    the reference is unreadable, whatever the completion. Any later failure is due to the answer: an exception in the scorer is
    `INCORRECT`, and an exceeded limit `TIMEOUT` or `INCORRECT`.

    Args:
        timeout_s: Processor time, in seconds, that one verdict may take.
        memory_mib: Limit on the address space of the process, in MiB.
        isolation: As for `UnitTestVerifier`.
        partial_credit: Whether a score between 0 and 1 is kept as `SCORED`; otherwise the verdict is `INCORRECT`.
        thoughts: Names of the tags that enclose thoughts, which are cut off; a sequence, or text with commas between the names.

    Raises:
        MissingDependencyError: If reasoning-gym is not installed.
        InvalidArgumentError: If another release is installed than the supported one, or an argument is out of range.
        UnknownNameError: If there is no such `isolation`.
    """

    @checked
    def __init__(
        self,
        *,
        timeout_s: Seconds = 20.0,
        memory_mib: Annotated[int, AtLeast(512)] = 1024,
        isolation: Isolation = "auto",
        partial_credit: bool = True,
        thoughts: str | Sequence[str] = THOUGHTS,
    ) -> None:
        self._thoughts = thought_names(thoughts)
        require_reasoning_gym("the verifier 'reasoning_gym'")
        self._timeout_s = timeout_s
        self._sandbox = (isolation, memory_mib)
        self._partial_credit = partial_credit

    def __call__(self, completion: str, problem: Problem) -> Verdict:
        """Judge one completion.

        Raises:
            UnreadableReferenceError: If the reference has another form, or its problem can't be made or judged.
            SandboxUnavailableError: If the system provides less isolation than requested.
        """
        try:
            reference = read_reference(problem.reference)
        except InvalidArgumentError as error:
            raise UnreadableReferenceError(f"problem {problem.id!r}: {error}") from error
        tags = explicit_marks(cut(completion, thoughts=self._thoughts).text, ("tag",))
        if not tags:
            return Verdict.of(Outcome.NO_ANSWER)
        answer = tags[-1].contents[-1].strip()
        request = request_of(reference) | {"answer": answer}
        try:
            replies, output = ask(runner(*self._sandbox), request, timeout_s=self._timeout_s)
        except VerifierFailureError as error:
            return Verdict.of(Outcome.VERIFIER_ERROR, detail={"error": str(error)})
        if not replies:  # the answer was not scored yet
            reason = f"the problem was not made again ({output.failure}): {output.stderr[-300:]}".rstrip(": ")
            return Verdict.of(Outcome.VERIFIER_ERROR, detail={"error": reason})
        self._check_problem(replies[0], reference, problem)
        return self._verdict(answer, replies[1] if len(replies) > 1 else None, output)

    def _check_problem(self, reply: dict[str, Any], reference: ReasoningGymReference, problem: Problem) -> None:
        if "refused" in reply:
            raise UnreadableReferenceError(f"problem {problem.id!r}: {refusal(reference, *reply['refused'])}")
        if reply["unjudgeable"]:
            raise UnreadableReferenceError(
                f"answers to problem {problem.id!r} ({reference.task}) can't be judged: {reply['unjudgeable']}"
            )

    def _verdict(self, answer: str, reply: dict[str, Any] | None, output: ProgramOutput) -> Verdict:
        cost = {"cpu_seconds": output.cpu_seconds}
        if reply is None:
            outcome = Outcome.TIMEOUT if output.failure == "timeout" else Outcome.INCORRECT
            return Verdict.of(outcome, answer, detail={"failure": str(output.failure)}, cost=cost)
        score = reply["score"]
        if score == 1.0:
            return Verdict.of(Outcome.CORRECT, answer, detail=reply, cost=cost)
        if score > 0.0 and self._partial_credit:
            return Verdict(score, Outcome.SCORED, answer, detail=reply, cost=cost)
        return Verdict.of(Outcome.INCORRECT, answer, detail=reply, cost=cost)

    def verify_batch(self, completions: Sequence[str], problems: Sequence[Problem]) -> list[Verdict]:
        """Judge completion i against problem i, as many completions at a time as there are CPUs."""
        with ThreadPoolExecutor(_THREADS, thread_name_prefix="reasoning_gym") as threads:
            return list(threads.map(functools.partial(verify_one, self), completions, problems))
