"""Tests that stay in storage until a program is judged. The tests of one LiveCodeBench row can take megabytes."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from rlvr_envs.data.converters import convert, find_converter
from rlvr_envs.data.rows import Row, Stored
from verifiers import DataError

if TYPE_CHECKING:
    from verifiers.unit_tests import Tests


@dataclass(frozen=True, slots=True)
class Held:
    """The columns of a row that exists only in memory."""

    values: dict[str, object]

    def read(self, columns: Sequence[str]) -> dict[str, object]:
        """Read these columns again; see `Stored`."""
        return {column: self.values[column] for column in columns if column in self.values}


@dataclass(frozen=True, slots=True)
class StoredTests:
    """The tests of a row, which `load` reads and decodes. This class implements `verifiers.unit_tests.DeferredTests`.

    Two instances are equal if the contents of their columns are equal, wherever they are stored.
    """

    converter: str
    """Name of the converter that makes the tests; see `rlvr_envs.data.converters`."""
    columns: tuple[str, ...]
    """The columns that determine the tests; the converter gets the first column."""
    digest: str
    """Hexadecimal sha256 of the columns' contents."""
    location: str = field(compare=False)
    """Location of the row, for error messages."""
    stored: Stored = field(compare=False, repr=False)

    def load(self) -> Tests:
        """Read the row again, and make its tests.

        Raises:
            DataError: If the row is gone or has changed, or its tests can't be read; the message names the row.
        """
        values = self.stored.read(self.columns)
        if _digest(values) != self.digest:
            raise DataError(f"{self.location}: the row has changed since it was loaded; load the data set again")
        tests: Tests = convert(find_converter(self.converter), Row(values, 0, self.location), self.columns[0])  # type: ignore[assignment]
        return tests


def stored_tests(row: Row, converter: str, *columns: str) -> StoredTests:
    """Leave the tests of a row in storage.

    Args:
        row: The row.
        converter: Name of the converter that makes tests from the first column.
        *columns: The columns that the converter reads. The row must have the first column; the other columns are optional.

    Raises:
        DataError: If the row does not have the first column, or this column is empty.
    """
    if row.value(columns[0]) in (None, "", [], {}):
        raise row.error(f"column {columns[0]!r} is empty: the row has no tests, so that nothing would be judged")
    values = {column: row.values[column] for column in columns if column in row.values}
    return StoredTests(converter, tuple(values), _digest(values), row.location, row.stored or Held(values))


def _digest(values: dict[str, object]) -> str:
    return hashlib.sha256(json.dumps(values, sort_keys=True, default=str).encode()).hexdigest()
