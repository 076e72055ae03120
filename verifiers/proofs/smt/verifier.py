"""`SmtVerifier`: an SMT solver decides whether a completion's term has a required property."""

from __future__ import annotations

import functools
import importlib.util
import queue
from collections.abc import Sequence
from typing import Any, cast

from verifiers._settings import checked
from verifiers._workers import Worker, WorkerBrokenError, WorkerStartError, WorkerTimeoutError
from verifiers.bounds import Count, Seconds
from verifiers.completion.blocks import block_or_text
from verifiers.completion.cut import cut, thought_names
from verifiers.completion.explicit import explicit_marks
from verifiers.completion.statements import last_line
from verifiers.completion.words import THOUGHTS
from verifiers.errors import UnreadableReferenceError, missing_dependency
from verifiers.functions import verify_in_threads
from verifiers.proofs.references import goal_of
from verifiers.proofs.smt.goal import SmtGoal
from verifiers.proofs.smt.terms import TermError, read_signature, read_term
from verifiers.types import Outcome, Problem, Verdict

_LANGUAGES = ("smt", "smt2", "smtlib", "smt-lib", "sygus", "lisp", "scheme")
_WALL_FACTOR, _WALL_S = 10, 60.0
_MARKS = " \t\n$`"


class SmtVerifier:
    """Judges terms: a completion is correct if the function that its term defines satisfies the goal for all constants.

    The term is in the last `<answer>` tags, else in the last code block, else on the last line. It is parsed by the grammar of
    `verifiers.proofs.smt.terms` and rewritten, so that the solver gets a term and never a command. The goal holds if Z3 finds
    its negation unsatisfiable. If Z3 leaves the goal open, or does not decide it within its limits, the verdict is `TIMEOUT`.
    Z3's decisions are trusted.

    `Problem.reference` is a `SmtGoal`, or a mapping of its fields. The verdict's `detail` holds `counterexample` or `reason`.

    Args:
        timeout_s: CPU seconds that the solver may use.
        memory_mib: Maximum address space of the solver's process, in MiB.
        workers: Number of processes, which judge a batch together; each is started for its first problem.
        thoughts: Names of the tags that enclose thoughts, which are cut off; a sequence, or text with commas between the names.

    Raises:
        MissingDependencyError: If `z3-solver` is not installed.
        InvalidArgumentError: If an argument is out of range.
    """

    @checked
    def __init__(
        self,
        *,
        timeout_s: Seconds = 10.0,
        memory_mib: Count = 1024,
        workers: Count = 1,
        thoughts: str | Sequence[str] = THOUGHTS,
    ) -> None:
        if importlib.util.find_spec("z3") is None:
            raise missing_dependency("z3-solver", "smt", "the verifier 'smt'")
        self._thoughts = thought_names(thoughts)
        self._arguments: dict[str, Any] = {
            "timeout_s": timeout_s, "memory_mib": memory_mib, "workers": workers, "thoughts": self._thoughts,
        }  # fmt: skip
        self._timeout_s = timeout_s
        self._workers = workers
        self._free: queue.SimpleQueue[Worker] = queue.SimpleQueue()
        for _ in range(workers):
            self._free.put(Worker("verifiers.proofs.smt.worker", memory_mib=memory_mib))

    def __call__(self, completion: str, problem: Problem) -> Verdict:
        """Judge one completion.

        Raises:
            UnreadableReferenceError: If the reference is not a goal, or the solver can't read it.
        """
        goal = goal_of(SmtGoal, problem)
        text = _answer(cut(completion, thoughts=self._thoughts).text)
        if not text:
            return Verdict.of(Outcome.NO_ANSWER)
        _, parameters, signature = read_signature(goal.function)
        try:
            term = read_term(text, parameters, goal.allowed_operators)
        except TermError as error:
            return Verdict.of(Outcome.INCORRECT, text, detail={"reason": str(error)})
        try:
            kind, said = self._ask([goal.declarations, signature, term, goal.goal, self._timeout_s])
        except WorkerStartError as error:
            return Verdict.of(Outcome.VERIFIER_ERROR, term, detail={"error": str(error)})
        except (WorkerTimeoutError, WorkerBrokenError) as error:  # the process reached its limits on this term
            return Verdict.of(Outcome.TIMEOUT, term, detail={"reason": f"the solver ended at its limits: {error}"})
        if kind == "bad_goal":
            raise UnreadableReferenceError(f"Z3 can't read the goal of problem {problem.id!r}: {said}")
        return _verdict(kind, said, term)

    def _ask(self, question: list[object]) -> tuple[str, str]:
        worker = self._free.get()
        try:
            answer = worker.ask(question, deadline_s=_WALL_FACTOR * self._timeout_s + _WALL_S)
        finally:
            self._free.put(worker)
        kind, said = cast("list[str]", answer)
        return kind, said

    def verify_batch(self, completions: Sequence[str], problems: Sequence[Problem]) -> list[Verdict]:
        """Judge completion i against problem i, as many completions at once as there are processes.

        Raises:
            InvalidArgumentError: If the numbers of completions and problems differ.
        """
        return verify_in_threads(self, completions, problems, self._workers)

    def __reduce__(self) -> tuple[Any, ...]:
        """A copied or unpickled verifier has its own processes."""
        return functools.partial(type(self), **self._arguments), ()


def _answer(text: str) -> str:
    if tags := explicit_marks(text, ("tag",)):
        return tags[-1].contents[-1].strip(_MARKS)
    if "```" in text or "~~~" in text:
        return (block_or_text(text, _LANGUAGES) or "").strip(_MARKS)
    return last_line(text).strip(_MARKS)


def _verdict(kind: str, said: str, term: str) -> Verdict:
    if kind == "proved":
        return Verdict.of(Outcome.CORRECT, term)
    if kind == "refuted":
        return Verdict.of(Outcome.INCORRECT, term, detail={"counterexample": said})
    if kind == "bad_term":
        return Verdict.of(Outcome.INCORRECT, term, detail={"reason": said})
    return Verdict.of(Outcome.TIMEOUT, term, detail={"reason": f"the solver leaves it open: {said}"})
