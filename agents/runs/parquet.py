"""Samples as a table that pandas, DuckDB and the hub's viewer can read: `samples.parquet`.

The columns are those of a record's lines. Structured values (messages, references, details) become JSON text, so that all files
have the same schema.
"""

from __future__ import annotations

import importlib.util
import itertools
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from agents.runs.files.json_files import to_json
from verifiers import missing_dependency

_INTEGERS = ("problem", "sample", "seed", "tokens", "prompt_tokens", "step", "episode", "group")
_NUMBERS = ("score", "advantage", "cost")
_FLAGS = ("truncated", "unsupported")
_TEXTS = "token_texts"
_ROWS = 1000
"""Number of rows to write at once."""
_LISTS = ("log_probabilities", "token_advantages", "token_scores")


def can_write() -> bool:
    """Whether pyarrow is installed, which writes the files."""
    return importlib.util.find_spec("pyarrow") is not None


def write_parquet(path: Path, columns: Sequence[str], rows: Iterable[Mapping[str, Any]]) -> None:
    """Write rows as a Parquet file, atomically: the file is complete or unchanged. Few rows are in memory at once.

    Raises:
        MissingDependencyError: If pyarrow is not installed.
        OSError: If the file can't be written.
    """
    try:
        import pyarrow  # type: ignore[import-untyped]  # pyarrow has no types
        import pyarrow.parquet  # type: ignore[import-untyped]
    except ImportError as error:
        raise missing_dependency("pyarrow", "hub", "Parquet files") from error
    schema = pyarrow.schema([(name, _type(pyarrow, name)) for name in columns])
    partial = path.with_name(f".{path.name}.partial")
    remaining = iter(rows)
    try:
        with pyarrow.parquet.ParquetWriter(partial, schema, compression="zstd") as writer:
            while chunk := list(itertools.islice(remaining, _ROWS)):
                cells = {name: [_cell(name, row.get(name)) for row in chunk] for name in columns}
                writer.write_table(pyarrow.table(cells, schema=schema))
        os.replace(partial, path)
    finally:
        partial.unlink(missing_ok=True)


def _type(pyarrow: Any, name: str) -> Any:
    if name in _INTEGERS:
        return pyarrow.uint64() if name == "seed" else pyarrow.int64()
    if name in _NUMBERS:
        return pyarrow.float64()
    if name in _FLAGS:
        return pyarrow.bool_()
    if name == _TEXTS:
        return pyarrow.list_(pyarrow.string())
    return pyarrow.list_(pyarrow.float32()) if name in _LISTS else pyarrow.string()


def _cell(name: str, value: Any) -> Any:
    if value is None or name in (*_INTEGERS, *_NUMBERS, *_FLAGS, *_LISTS, _TEXTS) or isinstance(value, str):
        return value
    return to_json(value)
