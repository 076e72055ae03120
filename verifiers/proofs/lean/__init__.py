"""Verifies proofs written in Lean 4, which a Kimina Lean Server checks."""
