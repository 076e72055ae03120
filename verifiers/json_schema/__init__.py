"""Is it JSON, and does it fit the schema? In a process with limits, and without the network."""

from verifiers.json_schema.verifier import JSONSchemaVerifier

__all__ = ["JSONSchemaVerifier"]
