"""Verifies that a completion is JSON that fits a schema, in a process with limits and without network access."""

from verifiers.json_schema.verifier import JSONSchemaVerifier

__all__ = ["JSONSchemaVerifier"]
