"""`GrowingLines`: a file of JSON Lines that another process may be writing."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, Generic, TypeAlias, TypeVar

T = TypeVar("T")
Place: TypeAlias = tuple[int, int]
"""Position of a line in its file, and its length, in bytes."""


class GrowingLines(Generic[T]):
    """The parsed lines of a file; each line is read once.

    A last line without a line break is still being written, and is read later. If the file was replaced or cut, as when a run
    is resumed, the whole file is read again.

    Args:
        path: The file, which need not exist yet.
        parse: Makes a result from a line's object and place, or raises a ValueError if the line is not of the expected form.
    """

    def __init__(self, path: Path, parse: Callable[[dict[str, Any], Place], T]) -> None:
        self.path = path
        self.values: list[T] = []
        self.damaged = 0
        """Number of complete lines that can't be read."""
        self.version = 0
        """Number of times that `read` found the file changed."""
        self._parse = parse
        self._inode, self._end, self._mark = -1, 0, b""

    def read(self) -> None:
        """Read the lines that were appended."""
        before = self._inode, self._end
        try:
            with self.path.open("rb") as file:
                inode = os.fstat(file.fileno()).st_ino
                file.seek(self._end - len(self._mark))
                if inode != self._inode or file.read(len(self._mark)) != self._mark:
                    self._forget(inode)
                file.seek(self._end)
                for line in file:
                    if not line.endswith(b"\n"):
                        break
                    self._add(line)
        except FileNotFoundError:
            self._forget(-1)
        self.version += (self._inode, self._end) != before

    def line(self, place: Place) -> bytes:
        """A line, without its line break."""
        with self.path.open("rb") as file:
            file.seek(place[0])
            return file.read(place[1]).rstrip(b"\n")

    def _forget(self, inode: int) -> None:
        self.values, self.damaged = [], 0
        self._inode, self._end, self._mark = inode, 0, b""

    def _add(self, line: bytes) -> None:
        try:
            content = json.loads(line)
            if not isinstance(content, dict):
                raise ValueError("it is not an object")
            self.values.append(self._parse(content, (self._end, len(line))))
        except (ValueError, RecursionError):
            self.damaged += 1
        self._end += len(line)
        self._mark = line[-256:]  # these bytes must be unchanged when more is read
