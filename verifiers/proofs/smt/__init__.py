"""Verifies with an SMT solver that a term has a required property."""
