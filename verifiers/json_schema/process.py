"""The process in which values are validated; `serve` speaks the protocol of `verifiers._workers`."""

from __future__ import annotations

import functools
import json
import sys
from typing import IO, Any

from verifiers._workers import answer_requests, processor_time
from verifiers.json_schema.patterns import load_properties
from verifiers.json_schema.schemas import SchemaError, validator_of

_MOST_ERRORS = 3
_RECURSION = 10_000  # deep enough for the schema and a value of limited depth, unlike Python's default


def serve(requests: IO[bytes], replies: IO[bytes]) -> None:
    """Answer each request (a schema, a value or None, a limit in seconds) with the errors of the value or of the schema."""
    import jsonschema  # noqa: F401 - loaded before any limit applies

    sys.setrecursionlimit(_RECURSION)
    answer_requests(requests, replies, _limited)


def _limited(schema: str, value: str | None, seconds: float) -> dict[str, Any]:
    if "p{" in schema.lower():  # loading once is not part of a validation
        load_properties()
    with processor_time(seconds):
        return _answer(schema, value)


def _answer(schema: str, value: str | None) -> dict[str, Any]:
    try:
        validator = _validator(schema)
        return {"errors": [] if value is None else _errors(validator, json.loads(value))}
    except SchemaError as error:
        return {"schema_error": str(error)}
    except Exception as error:  # noqa: BLE001 - a broken validation is recorded in the verdict, never scored
        return {"failure": f"{type(error).__name__}: {error}"[:300]}


@functools.lru_cache(maxsize=256)
def _validator(schema: str) -> Any:
    return validator_of(json.loads(schema))


def _errors(validator: Any, value: object) -> list[str]:
    found = []
    for error in validator.iter_errors(value):
        found.append(f"{error.json_path}: {error.message}"[:300])
        if len(found) == _MOST_ERRORS:
            break
    return found
