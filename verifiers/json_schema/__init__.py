"""Is a completion JSON that fits a schema? It is validated in a process with limits, without network access."""

from verifiers.json_schema.verifier import JSONSchemaVerifier

__all__ = ["JSONSchemaVerifier"]
