"""Verifiers of proofs: Coq and Lean check proofs, and an SMT solver checks terms; each is imported when it is used."""

from __future__ import annotations

from typing import TYPE_CHECKING

from verifiers.lazy import lazy_face

if TYPE_CHECKING:
    from verifiers.proofs.coq.goal import CoqGoal as CoqGoal
    from verifiers.proofs.coq.verifier import CoqVerifier as CoqVerifier
    from verifiers.proofs.lean.goal import LeanGoal as LeanGoal
    from verifiers.proofs.lean.verifier import LeanVerifier as LeanVerifier
    from verifiers.proofs.smt.goal import SmtGoal as SmtGoal
    from verifiers.proofs.smt.verifier import SmtVerifier as SmtVerifier

__getattr__, __dir__, __all__ = lazy_face(__name__)
