"""The goal of a Coq proof: the statement to be proved, and its compiled form."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from verifiers.proofs.references import check_texts

SUBMISSION, DEFINITIONS = "Submission", "Definitions"


@dataclass(frozen=True)
class CoqGoal:
    """The statement that a Coq proof must prove. All of its fields are trusted.

    Raises:
        InvalidArgumentError: If a field has the wrong type, or the statement is empty.
    """

    statement: str
    """A proposition, or any type, such as `forall n, n + 0 = n`."""
    definitions: str = ""
    """Source of the module `Definitions`, which is imported before the statement and before the completion; it passes on the
    modules that it imports with `Require Export`.
    """
    axioms: tuple[str, ...] = ()
    """Full names of axioms that a proof may use, such as `Coq.Logic.Classical_Prop.classic`."""

    def __post_init__(self) -> None:
        check_texts(self)


@dataclass(frozen=True)
class PreparedGoal:
    """A compiled goal."""

    nonce: str
    """A secret part of the trusted modules' names, which no completion can know."""
    axioms: tuple[str, ...]
    definitions: Mapping[str, bytes]
    """The compiled module `Definitions` by its file name; empty if there is none."""
    spec: Mapping[str, bytes]
    """The compiled module with the statement, by its file name."""

    @property
    def imports(self) -> list[str]:
        """The modules imported before the statement and before a completion."""
        return [DEFINITIONS] if self.definitions else []

    @property
    def check_module(self) -> str:
        """The name of the module that checks whether a submission proves the goal."""
        return f"Check_{self.nonce}"

    @property
    def check_source(self) -> str:
        """The source of `check_module`; it sets the options that soundness needs, which override the submission's options."""
        return (
            f"Require {SUBMISSION}. Require Spec_{self.nonce}.\n"
            "Set Guard Checking. Set Positivity Checking. Set Universe Checking.\n"
            f"Definition verdict_{self.nonce} : Spec_{self.nonce}.goal := {SUBMISSION}.solution.\n"
            f"Print Assumptions verdict_{self.nonce}.\n"
        )
