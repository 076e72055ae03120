"""Rows from local files: JSON Lines, and Parquet with the same columns."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from rlvr_envs.data.rows import Row
from verifiers import DataError, InvalidArgumentError, missing_dependency

DATA_DIR_VARIABLE = "RLVR_DATA_DIR"
"""The environment variable that names the folder of local data sets."""

SUFFIXES = (".jsonl", ".parquet")
"""What can be read, in the order in which it is looked for."""


def data_folder(data_dir: str | os.PathLike[str] | None) -> Path | None:
    """The folder that holds local data sets: the argument, else `RLVR_DATA_DIR`, else None.

    Raises:
        InvalidArgumentError: If the argument is no path.
    """
    if data_dir is not None and not isinstance(data_dir, str | os.PathLike):
        raise InvalidArgumentError(f"data_dir must be the path of a folder, got {data_dir!r}")
    chosen = data_dir if data_dir is not None else os.environ.get(DATA_DIR_VARIABLE) or None
    return None if chosen is None else Path(chosen).expanduser().absolute()


def find_split(folder: Path, split: str) -> Path | None:
    """The file of a split, `<folder>/<split>.jsonl` before `<folder>/<split>.parquet`; None if there is neither."""
    candidates = (folder / f"{split}{suffix}" for suffix in SUFFIXES)
    return next((path for path in candidates if path.is_file()), None)


def read_rows(path: Path) -> list[Row]:
    """Read a `.jsonl` or `.parquet` file.

    Raises:
        InvalidArgumentError: If the file has another suffix.
        DataError: If the file holds no rows, or something in it cannot be read; the message names the line.
        MissingDependencyError: If it is a Parquet file and pyarrow is not installed.
    """
    readers = {".jsonl": _read_jsonl, ".parquet": _read_parquet}
    if path.suffix not in readers:
        raise InvalidArgumentError(f"expected a file that ends in {' or '.join(SUFFIXES)}, got {str(path)!r}")
    rows = [Row(values, index, location) for index, (values, location) in enumerate(readers[path.suffix](path))]
    if not rows:
        raise DataError(f"{path}: the file holds no rows")
    return rows


def _read_jsonl(path: Path) -> Iterator[tuple[dict[str, object], str]]:
    # Bytes are split at line feeds only; text mode would also accept separators that may stand inside JSON strings.
    with path.open("rb") as file:
        for number, line in enumerate(file, start=1):
            if line.strip():
                location = f"{path}, line {number}"
                yield _parse_object(line, location), location


def _parse_object(line: bytes, location: str) -> dict[str, object]:
    try:
        value = json.loads(line.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise DataError(f"{location}: not UTF-8 text ({error.reason} at byte {error.start} of the line)") from error
    except (ValueError, RecursionError) as error:
        raise DataError(f"{location}: not valid JSON: {error}; expected one JSON object on each line") from error
    if not isinstance(value, dict):
        raise DataError(f"{location}: expected one JSON object on each line, got a {type(value).__name__}")
    return value


def _read_parquet(path: Path) -> Iterable[tuple[dict[str, object], str]]:
    try:
        import pyarrow  # type: ignore[import-untyped]  # ships no types
        import pyarrow.parquet  # type: ignore[import-untyped]
    except ModuleNotFoundError as error:
        raise missing_dependency("pyarrow", "hub", "reading Parquet files") from error
    try:
        table = pyarrow.parquet.ParquetFile(path).read()
    except (pyarrow.ArrowException, OSError) as error:
        raise DataError(f"{path}: not a readable Parquet file: {error}") from error
    return ((row, f"{path}, row {number}") for number, row in enumerate(table.to_pylist(), start=1))
