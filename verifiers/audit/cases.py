"""Cases of an audit: questions for a verifier, with the expected results."""

from __future__ import annotations

import enum
from dataclasses import dataclass

from verifiers.types import Problem


class Label(enum.StrEnum):
    """The expected result of a case."""

    CORRECT = "correct"
    WRONG = "wrong"
    ANY = "any"
    """No result is expected: only crashes, delays and contradictions count."""


@dataclass(frozen=True, slots=True)
class Case:
    """One completion to be judged against one problem."""

    family: str
    """The transformation or attack that made the case."""
    label: Label
    answer: str
    completion: str
    """The answer, presented as in the data set's completions."""
    problem: Problem
    hostile: bool = False
    """Whether the case is meant to break the verifier rather than to be judged."""
    canary: str = ""
    """A path that exists only if the completion was executed."""
    mirror: int | None = None
    """The index of the case in which gold and answer are exchanged, if both cases must get the same verdict."""
    kind: str = ""
    """The subject of a drawn problem; empty for a problem of a data set, whose kind is recognised from its gold."""

    @property
    def gold(self) -> str:
        """The gold answer as text."""
        return str(self.problem.reference)
