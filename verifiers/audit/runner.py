"""Runs the verifier under audit in a process of its own, which is killed and replaced when it hangs or dies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, cast

from verifiers._verifier_process import VerifierProcess, recipe
from verifiers._workers import START_DEADLINE_S, WorkerBrokenError, WorkerTimeoutError, encode
from verifiers.audit.worker import Asked
from verifiers.registry import VerifierSpec
from verifiers.types import Problem

Mode = Literal["single", "batch", "threads", "thread", "convention"]


@dataclass(frozen=True, slots=True)
class Answer:
    """The result of one question; `error`, `hung` and `died` mean that there is no verdict."""

    outcome: str = ""
    score: float | None = None
    answer: str | None = None
    detail: str = ""
    error: str = ""
    hung: bool = False
    died: bool = False
    seconds: float = 0.0

    @property
    def judged(self) -> bool:
        """Whether there is a verdict."""
        return not (self.error or self.hung or self.died)

    @property
    def accepted(self) -> bool:
        """Whether the verifier accepted the completion: correct, or scored at least one half."""
        return self.outcome == "correct" or (self.outcome == "scored" and (self.score or 0.0) >= 0.5)

    @property
    def reason(self) -> str:
        """The verifier's result in one line."""
        if self.hung or self.died:
            return "no answer before the deadline" if self.hung else "the process died"
        return self.error or f"{self.outcome} (answer {self.answer!r}) {self.detail}"

    def same(self, other: Answer) -> bool:
        """Whether two answers agree in everything but time."""
        ours = (self.outcome, self.score, self.answer, self.detail, self.error, self.hung, self.died)
        return ours == (other.outcome, other.score, other.answer, other.detail, other.error, other.hung, other.died)


class Runner:
    """Asks a verifier questions; a context manager.

    Args:
        spec: The verifier, as for `verifiers.make`; a callable must be importable by name from its module.
        kwargs: Arguments of the verifier.
        memory_mib: Limit on the process's address space.

    Raises:
        InvalidArgumentError: If the verifier cannot be sent to another process.
    """

    def __init__(self, spec: VerifierSpec, kwargs: Mapping[str, object], *, memory_mib: int) -> None:
        self._process = VerifierProcess("verifiers.audit.worker", recipe(spec, kwargs), memory_mib)

    def __enter__(self) -> Runner:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.close()

    def convention(self) -> str | None:
        """How the verifier calls its functions; None if it has no functions, or all of them take (completion, problem).

        Raises:
            RLVRError: If the verifier can't be made, as for `verifiers.make`.
        """
        (answer,) = self.ask("convention", [("", Problem("", "", ""))], deadline_s=START_DEADLINE_S)
        return answer.detail or None

    def ask(self, mode: Mode, asked: Sequence[Asked], *, deadline_s: float) -> list[Answer]:
        """Ask questions and wait for all answers; after a hang or a crash, every answer says so.

        In the threaded modes the answers come thread by thread.
        """
        try:
            reply = self._process.ask(mode, encode(list(asked)), deadline_s)
        except WorkerTimeoutError:
            return [Answer(hung=True, seconds=deadline_s)] * len(asked)
        except WorkerBrokenError:
            return [Answer(died=True)] * len(asked)
        rows = cast("list[dict[str, object] | list[dict[str, object]]]", reply)
        flat = [record for row in rows for record in (row if isinstance(row, list) else [row])]
        return [_answer(record) for record in flat]


def _answer(given: Mapping[str, object]) -> Answer:
    score, text, seconds = given.get("score"), given.get("answer"), given.get("seconds", 0.0)
    return Answer(
        outcome=str(given.get("outcome", "")),
        score=score if isinstance(score, float | int) else None,
        answer=None if text is None else str(text),
        detail=str(given.get("detail", "")),
        error=str(given.get("error", "")),
        seconds=seconds if isinstance(seconds, float) else 0.0,
    )
