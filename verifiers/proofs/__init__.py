"""Does a proof hold? Coq and Lean check proofs, and an SMT solver checks terms; each is imported when it is used."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from verifiers.proofs.coq.goal import CoqGoal
    from verifiers.proofs.coq.verifier import CoqVerifier
    from verifiers.proofs.lean.goal import LeanGoal
    from verifiers.proofs.lean.verifier import LeanVerifier
    from verifiers.proofs.smt.goal import SmtGoal
    from verifiers.proofs.smt.verifier import SmtVerifier

_HOMES = {
    "CoqGoal": "coq.goal",
    "CoqVerifier": "coq.verifier",
    "LeanGoal": "lean.goal",
    "LeanVerifier": "lean.verifier",
    "SmtGoal": "smt.goal",
    "SmtVerifier": "smt.verifier",
}

__all__ = ["CoqGoal", "CoqVerifier", "LeanGoal", "LeanVerifier", "SmtGoal", "SmtVerifier"]


def __getattr__(name: str) -> object:
    if name in _HOMES:
        return getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
