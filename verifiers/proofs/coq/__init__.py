"""Verifies proofs written in Coq."""
