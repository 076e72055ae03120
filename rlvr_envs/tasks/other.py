"""Code for rows of `other.toml`: make problems with instructions, schemas, and questions about tables."""

from __future__ import annotations

from rlvr_envs.data import Row
from rlvr_envs.data.converters import convert, find_converter
from rlvr_envs.data.rows import own_id
from verifiers import InvalidArgumentError, Problem
from verifiers.sql import SQLReference, is_query

_QUESTION, _QUERY = ("sql_prompt", "question"), ("sql", "query", "SQL")
_FILE, _SCRIPT = "db_path", ("sql_context", "schema")


def instructions(row: Row, default_id: str) -> Problem:
    """Make a problem from a row of IFEval or IFBench; see `ToProblem`."""
    key = row.value("key")
    if isinstance(key, bool) or not isinstance(key, str | int):
        raise row.wrong_type("a string or an integer", key, "key")
    row.value("kwargs")
    reference = convert(find_converter("ifeval"), row, "instruction_id_list")
    metadata = row.without("key", "prompt", "instruction_id_list", "kwargs")
    return Problem(own_id(default_id, key), row.text("prompt"), reference, metadata)


def json_schema(row: Row, default_id: str) -> Problem:
    """Make a problem from a row with a JSON schema; see `ToProblem`."""
    schema = row.text("json_schema")
    prompt = f"Give a JSON value that fits this JSON schema.\n\n```json\n{schema.strip()}\n```"
    return Problem(own_id(default_id, row.text("unique_id")), prompt, schema, row.without("json_schema", "unique_id"))


def sql(row: Row, default_id: str) -> Problem:
    """Make a problem from a row with a question, a query and a database; see `ToProblem`."""
    query = row.text(*_QUERY)
    files = (row.text(_FILE),) if _FILE in row.values else ()
    scripts = () if files and not any(column in row.values for column in _SCRIPT) else (row.text(*_SCRIPT),)
    try:
        reference = SQLReference(query, () if files else scripts, files)
    except InvalidArgumentError as error:
        raise row.error(str(error)) from error
    used = (*_QUESTION, *_QUERY, _FILE, *_SCRIPT, "evidence")
    metadata = row.without(*used) | {"gold_completion": f"```sql\n{query.strip()}\n```"}
    return Problem(default_id, _prompt(row, scripts), reference, metadata)


def _prompt(row: Row, scripts: tuple[str, ...]) -> str:
    parts = [*(script.strip() for script in scripts), row.text(*_QUESTION).strip()]
    evidence = row.values.get("evidence")
    return "\n\n".join([*parts, evidence.strip()] if isinstance(evidence, str) and evidence.strip() else parts)


def asks(row: Row, split: str) -> bool:
    """Whether a row asks a question; some rows ask for a change of the tables instead."""
    return is_query(row.text(*_QUERY))
