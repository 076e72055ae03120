"""Read rows from local files: JSON Lines, Parquet, CSV or a JSON array."""

from __future__ import annotations

import codecs
import csv
import gzip
import io
import os
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, cast

from rlvr_envs.data.rows import Row, Stored
from verifiers import DataError, InvalidArgumentError, _integers, missing_dependency

DATA_DIR_VARIABLE = "RLVR_DATA_DIR"
"""The environment variable that names the folder of local data sets."""

SUFFIXES = (".jsonl", ".parquet")
"""Suffixes of the files in a folder of splits, in order of preference."""

FILE_SUFFIXES = (*SUFFIXES, ".json", ".csv")
"""Suffixes of the files that can be read. After each suffix except `.parquet`, `.gz` may follow."""


def data_folder(data_dir: str | os.PathLike[str] | None) -> Path | None:
    """The folder of local data sets: `data_dir`, or else the folder that `RLVR_DATA_DIR` names, or else None.

    Raises:
        InvalidArgumentError: If the argument is not a path.
    """
    if data_dir is not None and not isinstance(data_dir, str | os.PathLike):
        raise InvalidArgumentError(f"data_dir must be the path of a folder, got {data_dir!r}")
    chosen = data_dir if data_dir is not None else os.environ.get(DATA_DIR_VARIABLE) or None
    return None if chosen is None else Path(chosen).expanduser().absolute()


def find_split(folder: Path, split: str) -> Path | None:
    """The file of a split: `<folder>/<split>.jsonl`, or else `<folder>/<split>.parquet`; None if neither exists."""
    candidates = (folder / f"{split}{suffix}" for suffix in SUFFIXES)
    return next((path for path in candidates if path.is_file()), None)


def read_rows(path: Path) -> list[Row]:
    """Read all rows of a file; see `iterate_rows`."""
    return list(iterate_rows(path))


def iterate_rows(path: Path) -> Iterator[Row]:
    """Read the rows of a file one by one, so that a JSON Lines or Parquet file need not fit in memory.

    Args:
        path: A `.jsonl` file; a `.json` file with an array of objects or with one object on each line; a `.csv` file, in which
            the first line names the columns and all values are text; any of these compressed as `.gz`; or a `.parquet` file.

    Raises:
        InvalidArgumentError: If the file has another suffix.
        DataError: If the file holds no rows, or part of it cannot be read; the message names the line.
        MissingDependencyError: If the file is a Parquet file and pyarrow is not installed.
    """
    readers = dict(zip(FILE_SUFFIXES, (_read_jsonl, _read_parquet, _read_json, _read_csv), strict=True))
    suffix = Path(path.stem).suffix if path.suffix == ".gz" else path.suffix
    if suffix not in readers or path.name.endswith(".parquet.gz"):
        raise InvalidArgumentError(
            f"expected a file that ends in {', '.join(FILE_SUFFIXES[:-1])} or {FILE_SUFFIXES[-1]}, or such an end and .gz, "
            f"got {str(path)!r}"
        )
    index = -1
    try:
        for index, (values, location, stored) in enumerate(readers[suffix](path)):
            yield Row(values, index, location, stored)
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise DataError(f"{path}: not a readable gzip file: {error}") from error
    if index < 0:
        raise DataError(f"{path}: the file holds no rows")


_Read = tuple[dict[str, object], str, Stored | None]


def _open(path: Path) -> IO[bytes]:
    return cast(IO[bytes], gzip.open(path)) if path.suffix == ".gz" else path.open("rb")


@dataclass(frozen=True, slots=True)
class JsonLine:
    """A row of a JSON Lines file."""

    path: Path
    offset: int
    length: int
    location: str

    def read(self, columns: Sequence[str]) -> dict[str, object]:
        """Read these columns again; see `Stored`."""
        try:
            with _open(self.path) as file:
                file.seek(self.offset)
                values = _parse_object(file.read(self.length), self.location)
        except OSError as error:
            raise DataError(f"{self.location}: the file can't be read again: {error}") from error
        return {column: values[column] for column in columns if column in values}


def _read_jsonl(path: Path) -> Iterator[_Read]:
    # Bytes are split at line feeds alone. Text mode would also split at separators that may occur inside JSON strings.
    offset = 0
    with _open(path) as file:
        for number, line in enumerate(file, start=1):
            if line.removeprefix(codecs.BOM_UTF8).strip():
                location = f"{path}, line {number}"
                yield _parse_object(line, location), location, JsonLine(path, offset, len(line), location)
            offset += len(line)


def _read_json(path: Path) -> Iterator[_Read]:
    with _open(path) as file:
        content = file.read()
    if not content.removeprefix(codecs.BOM_UTF8).lstrip().startswith(b"["):
        yield from _read_jsonl(path)
        return
    for number, value in enumerate(_parse(content, str(path), "the file", "an array of objects"), start=1):
        location = f"{path}, item {number}"
        if not isinstance(value, dict):
            raise DataError(f"{location}: expected an object, got a {type(value).__name__}")
        yield value, location, None


def _read_csv(path: Path) -> Iterator[_Read]:
    csv.field_size_limit(2**31 - 1)  # this limit is for the whole process; the default is 128 KiB
    try:
        with _open(path) as file:
            reader = csv.DictReader(io.TextIOWrapper(file, encoding="utf-8-sig", newline=""))
            repeated = [name for name, count in Counter(reader.fieldnames or ()).items() if count > 1]
            if repeated:
                raise DataError(f"{path}: two columns are named {repeated[0]!r}: rename or remove one")
            for values in reader:
                location = f"{path}, line {reader.line_num}"
                if None in values or None in values.values():
                    raise DataError(
                        f"{location}: expected as many values as the first line has names: {reader.fieldnames}"
                    )
                yield dict(values), location, None
    except UnicodeDecodeError as error:
        raise DataError(
            f"{path}: not UTF-8 text ({error.reason}); convert it, as with iconv -f latin1 -t utf-8"
        ) from error
    except csv.Error as error:
        raise DataError(f"{path}: not valid CSV: {error}") from error


def _parse_object(line: bytes, location: str) -> dict[str, object]:
    value = _parse(line, location, "the line", "one JSON object on each line")
    if not isinstance(value, dict):
        raise DataError(f"{location}: expected one JSON object on each line, got a {type(value).__name__}")
    return value


def _parse(content: bytes, location: str, whole: str, expected: str) -> Any:
    try:
        return _integers.loads(content.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise DataError(f"{location}: not UTF-8 text ({error.reason} at byte {error.start} of {whole})") from error
    except (ValueError, RecursionError) as error:
        raise DataError(f"{location}: not valid JSON: {error}; expected {expected}") from error


_BATCH_ROWS = 16
"""Maximum number of rows of a Parquet file in memory at a time, since some data sets have rows of many megabytes."""


@dataclass(frozen=True, slots=True)
class ParquetRow:
    """A row of a Parquet file. Reading the row means reading its whole row group."""

    path: Path
    group: int
    position: int
    location: str

    def read(self, columns: Sequence[str]) -> dict[str, object]:
        """Read these columns again; see `Stored`."""
        arrow = _pyarrow()
        try:
            with arrow.parquet.ParquetFile(self.path) as file:
                names = [name for name in columns if name in file.schema_arrow.names]
                start = 0
                for batch in file.iter_batches(_BATCH_ROWS, row_groups=[self.group], columns=names):
                    if self.position < start + len(batch):
                        row: dict[str, object] = batch.slice(self.position - start, 1).to_pylist()[0]
                        return row
                    start += len(batch)
        except (arrow.ArrowException, OSError) as error:
            raise DataError(f"{self.location}: the file can't be read again: {error}") from error
        raise DataError(f"{self.location}: the file has changed: it no longer holds this row")


def _pyarrow() -> Any:
    try:
        import pyarrow.parquet  # type: ignore[import-untyped]  # ships no types
    except ModuleNotFoundError as error:
        raise missing_dependency("pyarrow", "hub", "reading Parquet files") from error
    return pyarrow


def _read_parquet(path: Path) -> Iterator[_Read]:
    for number, (group, position, values) in enumerate(_parquet_rows(path), start=1):
        location = f"{path}, row {number}"
        yield values, location, ParquetRow(path, group, position, location)


def _parquet_rows(path: Path) -> Iterator[tuple[int, int, dict[str, object]]]:
    """Yield the row group, the position within the group and the values of each row."""
    arrow = _pyarrow()
    try:
        with arrow.parquet.ParquetFile(path) as file:
            for group in range(file.num_row_groups):
                position = 0
                for batch in file.iter_batches(_BATCH_ROWS, row_groups=[group]):
                    for values in batch.to_pylist():
                        yield group, position, values
                        position += 1
    except (arrow.ArrowException, OSError) as error:
        raise DataError(f"{path}: not a readable Parquet file: {error}") from error
