"""What is put to a verifier, and what should come of it."""

from __future__ import annotations

import enum
from dataclasses import dataclass

from verifiers.types import Problem


class Label(enum.StrEnum):
    """What a verifier should find."""

    CORRECT = "correct"
    WRONG = "wrong"
    ANY = "any"
    """No claim is made: only crashes, delays and contradictions count."""


@dataclass(frozen=True, slots=True)
class Case:
    """One completion, put against one problem."""

    family: str
    """The transformation or attack that made it."""
    label: Label
    answer: str
    completion: str
    """The answer as the data set's completions present it."""
    problem: Problem
    hostile: bool = False
    """Whether it is meant to break the verifier rather than to be judged."""
    canary: str = ""
    """A path that exists only if the completion was executed."""
    mirror: int | None = None
    """The place of the case with gold and answer exchanged, where the two must agree."""

    @property
    def gold(self) -> str:
        """The gold answer as text."""
        return str(self.problem.reference)
