"""The statement to be proved, and its compiled form."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from verifiers.proofs.references import check_texts

SUBMISSION, DEFINITIONS = "Submission", "Definitions"


@dataclass(frozen=True)
class CoqGoal:
    """The statement to be proved. Everything here is trusted.

    Raises:
        InvalidArgumentError: If a field has the wrong type, or the statement is empty.
    """

    statement: str
    """A proposition, or any type, such as `forall n, n + 0 = n`."""
    definitions: str = ""
    """Source of the module `Definitions`, which is imported before the statement and before the completion; with
    `Require Export`, it passes on the modules that it needs itself."""
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
        """The source of `check_module`; it sets the options that soundness needs, or the submission's options would apply."""
        return (
            f"Require {SUBMISSION}. Require Spec_{self.nonce}.\n"
            "Set Guard Checking. Set Positivity Checking. Set Universe Checking.\n"
            f"Definition verdict_{self.nonce} : Spec_{self.nonce}.goal := {SUBMISSION}.solution.\n"
            f"Print Assumptions verdict_{self.nonce}.\n"
        )
