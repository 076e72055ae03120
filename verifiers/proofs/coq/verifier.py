"""`CoqVerifier`: Coq decides whether a completion proves a statement."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal

from verifiers._settings import checked
from verifiers.bounds import Above, AtLeast, Count, Seconds
from verifiers.completion.blocks import block_or_text
from verifiers.completion.cut import cut, thought_names
from verifiers.completion.words import THOUGHTS
from verifiers.errors import SandboxUnavailableError, UnreadableReferenceError
from verifiers.functions import verify_in_threads
from verifiers.proofs.coq.goal import CoqGoal, PreparedGoal
from verifiers.proofs.coq.steps import RefusedError, Steps
from verifiers.proofs.coq.toolchain import find_toolchain
from verifiers.proofs.references import goal_of
from verifiers.sandbox import CommandRunner, LaunchError, Limits, available_cpus
from verifiers.types import Outcome, Problem, Verdict

Isolation = Literal["auto", "strict", "none"]
_LANGUAGES = ("coq", "rocq", "gallina", "v")
_MOST_PREPARED = 256
_THREADS = 8


class CoqVerifier:
    """Judges proofs: a completion is correct if its Coq source defines a `solution` of the stated type, without axioms.

    The source is the completion's last code block. It is compiled alone. A fresh process then reads only the compiled file and
    defines a constant of the statement's type as `Submission.solution`. The proof is accepted under two conditions. `Print
    Assumptions` must say that this constant is closed or rests only on axioms that the goal names. `coqchk`, Coq's independent
    checker, must accept the files of both modules, and find no other axiom in them and nothing that is merely assumed to be
    guarded, positive, or of a consistent universe. `docs/proofs.md` says what this protects against.

    `Problem.reference` is a `CoqGoal`, a mapping of its fields, or a statement. The verdict's `detail` holds the `isolation`
    and the `version` of Coq; if the proof was not accepted, also the `step` that failed (`submission`, `verdict`, `checker`,
    `assumptions`) and its `error`. The verdict's `cost` holds `seconds`.

    Every process runs in the sandbox of the unit tests' verifier: no network, no files except Coq's and those in its own
    folder, no other process.

    Args:
        timeout_s: CPU seconds that each of the three processes may use; exceeding them is `TIMEOUT`.
        wall_s: Wall-clock seconds that each process may take; the default is generous, so that verdicts don't depend on the
            load.
        memory_mib: Maximum address space of each process, in MiB.
        output_mib: Maximum output of each process, and maximum size of a compiled file, in MiB.
        workers: Number of proofs of a batch that are checked at once; by default, the number of CPUs of this process.
        isolation: As for `UnitTestVerifier`: `"auto"` requires a system-call filter, and Landlock, namespaces or both;
            `"strict"` requires namespaces; `"none"` sets limits only, for proofs that you trust.
        thoughts: Names of the tags that enclose thoughts, which are cut off; a sequence, or text with commas between the names.

    Raises:
        MissingDependencyError: If Coq is not installed.
        InvalidArgumentError: If an argument is out of range.
        UnknownNameError: If there is no such isolation.
    """

    @checked
    def __init__(
        self,
        *,
        timeout_s: Seconds = 60.0,
        wall_s: Annotated[float | None, Above(0)] = None,
        memory_mib: Count = 2048,
        output_mib: Count = 16,
        workers: Annotated[int | None, AtLeast(1)] = None,
        isolation: Isolation = "auto",
        thoughts: str | Sequence[str] = THOUGHTS,
    ) -> None:
        self._thoughts = thought_names(thoughts)
        wall_s = 10 * timeout_s + 60 if wall_s is None else wall_s
        limits = Limits(timeout_s, wall_s, wall_s, memory_mib, output_mib, processes=_THREADS)
        self._workers = workers or available_cpus()
        self._toolchain = find_toolchain(limits, CommandRunner(isolation, self._workers))
        self._prepared: dict[CoqGoal, PreparedGoal] = {}
        self._is_tried = False

    def __call__(self, completion: str, problem: Problem) -> Verdict:
        """Judge one completion.

        Raises:
            UnreadableReferenceError: If the reference is not a goal, or Coq does not accept it.
            SandboxUnavailableError: If the system does not provide the requested isolation, or Coq does not work in it.
        """
        goal = goal_of(CoqGoal, problem)
        source = block_or_text(cut(completion, thoughts=self._thoughts).text, _LANGUAGES)
        if source is None:
            return Verdict.of(Outcome.NO_ANSWER)
        try:
            self._try_out()
            return self._judged(source, self._prepare(goal, problem.id))
        except LaunchError as error:
            return Verdict.of(Outcome.VERIFIER_ERROR, source, detail={"error": str(error)})

    def verify_batch(self, completions: Sequence[str], problems: Sequence[Problem]) -> list[Verdict]:
        """Judge completion i against problem i, several completions at once.

        Raises:
            InvalidArgumentError: If the numbers of completions and problems differ.
        """
        return verify_in_threads(self, completions, problems, self._workers)

    def close(self) -> None:
        """End the fork servers. A verifier that is used again starts new ones."""
        self._toolchain.runner.close()

    def _try_out(self) -> None:
        """Judge a right proof once, so that a broken installation raises an error instead of giving wrong verdicts."""
        if self._is_tried:
            return
        verdict = self._judged("Definition solution : True := I.", self._prepare(CoqGoal("True"), "of the trial"))
        if verdict.outcome is not Outcome.CORRECT:
            raise SandboxUnavailableError(
                f"Coq {self._toolchain.version} ({self._toolchain.coqc}) does not accept a proof of True in the sandbox: "
                f"{dict(verdict.detail)}"
            )
        self._is_tried = True

    def _prepare(self, goal: CoqGoal, problem: str) -> PreparedGoal:
        """The compiled goal, which the completions of a group share.

        Raises:
            UnreadableReferenceError: If Coq does not accept the goal.
        """
        if goal not in self._prepared:
            if len(self._prepared) >= _MOST_PREPARED:
                self._prepared.clear()
            try:
                self._prepared[goal] = Steps(self._toolchain).prepare(goal)
            except RefusedError as refusal:
                raise UnreadableReferenceError(
                    f"Coq does not accept the {refusal.step} of problem {problem!r}: {refusal}"
                ) from refusal
        return self._prepared[goal]

    def _judged(self, source: str, goal: PreparedGoal) -> Verdict:
        steps = Steps(self._toolchain)
        outcome, detail = Outcome.CORRECT, {}
        try:
            steps.judge(source, goal)
        except RefusedError as refusal:
            outcome, detail = refusal.outcome, {"step": refusal.step, "error": str(refusal)}
        detail = {**detail, "isolation": steps.isolation, "version": self._toolchain.version}
        return Verdict.of(outcome, source, detail=detail, cost={"seconds": steps.seconds})
