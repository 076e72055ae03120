"""The steps of a verdict of Coq; each runs in a fresh process that gets only compiled files from the previous step."""

from __future__ import annotations

import contextlib
import secrets
from collections.abc import Iterator, Mapping, Sequence

from verifiers.proofs.coq.assumptions import objection
from verifiers.proofs.coq.goal import DEFINITIONS, SUBMISSION, CoqGoal, PreparedGoal
from verifiers.proofs.coq.toolchain import Toolchain
from verifiers.sandbox import Finished
from verifiers.types import Outcome

_SHOWN = 1000


class RefusedError(Exception):
    """Coq or its checker rejects its input."""

    def __init__(self, outcome: Outcome, step: str, error: str) -> None:
        super().__init__(error)
        self.outcome, self.step = outcome, step


class Steps:
    """Runs the steps, and adds up the time that they take."""

    def __init__(self, toolchain: Toolchain) -> None:
        self.seconds = 0.0
        self.isolation = "unknown"
        self._toolchain = toolchain

    def prepare(self, goal: CoqGoal) -> PreparedGoal:
        """Compile a goal.

        Raises:
            RefusedError: If Coq does not accept the goal; the message does not contain the nonce.
            SandboxUnavailableError, LaunchError: As for `CommandRunner`.
        """
        nonce = secrets.token_hex(8)
        with _unshown(nonce):
            return self._prepare(goal, nonce)

    def _prepare(self, goal: CoqGoal, nonce: str) -> PreparedGoal:
        definitions: dict[str, bytes] = {}
        if goal.definitions.strip():
            definitions = self._compiled("definitions", DEFINITIONS, goal.definitions, {})
        source = f"Definition goal : Type :=\n{goal.statement.strip().removesuffix('.')}\n."
        imports = [DEFINITIONS] if definitions else []
        spec = self._compiled("statement", f"Spec_{nonce}", source, definitions, imports)
        return PreparedGoal(nonce, goal.axioms, definitions, spec)

    def judge(self, source: str, goal: PreparedGoal) -> None:
        """Go through the steps of a verdict.

        Raises:
            RefusedError: If the source does not prove the goal; the message does not contain the nonce.
            SandboxUnavailableError, LaunchError: As for `CommandRunner`.
        """
        with _unshown(goal.nonce):
            self._judge(source, goal)

    def _judge(self, source: str, goal: PreparedGoal) -> None:
        submission = self._compiled("submission", SUBMISSION, source, goal.definitions, goal.imports)
        libraries = {**goal.definitions, **goal.spec, **submission}
        verdict = self._succeeded("verdict", self._toolchain.compile(goal.check_module, goal.check_source, libraries))
        libraries |= _library("verdict", goal.check_module, verdict)
        checked = self._succeeded("checker", self._toolchain.check([SUBMISSION, goal.check_module], libraries))
        own = {name.removesuffix(".vo") for name in libraries}
        problem = objection(_text(verdict.stdout), _text(checked.stdout + checked.stderr), own, goal.axioms)
        if problem is not None:
            raise RefusedError(Outcome.INCORRECT, "assumptions", problem)

    def _compiled(
        self, step: str, module: str, source: str, libraries: Mapping[str, bytes], imports: Sequence[str] = ()
    ) -> dict[str, bytes]:
        """Compile a module, and return the compiled file by its name."""
        return _library(
            step, module, self._succeeded(step, self._toolchain.compile(module, source, libraries, imports))
        )

    def _succeeded(self, step: str, finished: Finished) -> Finished:
        """Return a run if it succeeded.

        Raises:
            RefusedError: If it did not succeed.
        """
        self.seconds += finished.seconds
        self.isolation = finished.isolation
        if finished.stopped in ("cpu", "wall", "idle"):
            raise RefusedError(Outcome.TIMEOUT, step, "it ran past its time")
        if finished.stopped:
            raise RefusedError(Outcome.INCORRECT, step, f"it uses more {finished.stopped} than it may")
        if finished.exit_code != 0:
            said = _text(finished.stderr).strip()
            error = said[-_SHOWN:] or f"it ended with exit status {finished.exit_code}"
            raise RefusedError(Outcome.INCORRECT, step, error)
        return finished


@contextlib.contextmanager
def _unshown(nonce: str) -> Iterator[None]:
    """Remove a secret nonce from the message of a refusal."""
    try:
        yield
    except RefusedError as refusal:
        shown = str(refusal).replace(f"_{nonce}", "")
        raise RefusedError(refusal.outcome, refusal.step, shown) from None


def _library(step: str, module: str, finished: Finished) -> dict[str, bytes]:
    name = f"{module}.vo"
    if name not in finished.written:
        raise RefusedError(Outcome.INCORRECT, step, "it left no compiled module")
    return {name: finished.written[name]}


def _text(output: bytes) -> str:
    return output.decode(errors="replace")
