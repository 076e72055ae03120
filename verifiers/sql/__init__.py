"""Does a query give what the gold query gives? On SQLite databases, read-only, in a process with limits."""

from verifiers.sql.reference import SQLReference
from verifiers.sql.statements import is_query
from verifiers.sql.verifier import SQLVerifier

__all__ = ["SQLReference", "SQLVerifier", "is_query"]
