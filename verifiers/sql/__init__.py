"""Verifies that a query gives the same rows as the gold query, on read-only SQLite databases in a process with limits."""

from verifiers.sql.reference import SQLReference
from verifiers.sql.statements import is_query
from verifiers.sql.verifier import SQLVerifier

__all__ = ["SQLReference", "SQLVerifier", "is_query"]
