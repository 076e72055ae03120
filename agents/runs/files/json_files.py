r"""JSON as written by this package: strict, in UTF-8, for any data.

Text, finite numbers, booleans, null, lists and objects with text as keys are written as they are. Other values are converted:

| value | written as |
|---|---|
| a lone surrogate in text | six characters such as `\ud800`, as from Python's "backslashreplace" |
| NaN and infinities | the text `NaN`, `Infinity` or `-Infinity`, as in the JSON mapping of Protocol Buffers |
| an integer of more than 2048 bits | its hexadecimal text, since Python refuses to parse decimal integers of that size |
| a mapping, a dataclass | an object |
| a key that is not text | its JSON text; an apostrophe is appended if that key exists |
| a tuple, a set | a list; for a set, sorted by the items' JSON text |
| NumPy's and torch's numbers and arrays | numbers and lists |
| a path | text |
| bytes | text decoded from UTF-8, with invalid bytes as `\xff` |
| a `verifiers.Secret` | its source, such as `env:NAME` |
| anything else, a value that contains itself, a value nested deeper than 64 levels | the text of its `repr` |

Control characters and all kinds of line ends are escaped, so that every reader of lines finds the same lines.
"""

from __future__ import annotations

import dataclasses
import json
import math
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Set as AbstractSet
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from verifiers import DataError, Secret

T = TypeVar("T")
_MOST_BITS = 2048
_MOST_LEVELS = 64
_CONTROLS = re.compile("[\x7f-\x9f\u2028\u2029]")
"""Control characters and line ends that the `json` module writes as they are."""


def to_json(value: object, *, indent: int | None = None) -> str:
    """Convert any value to strict JSON, on one line unless `indent` is set."""
    text = json.dumps(plain(value), ensure_ascii=False, allow_nan=False, indent=indent)
    return _CONTROLS.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def as_text(value: object) -> str:
    """A value as text: a text as it is, an empty text for None, and anything else as JSON."""
    return value if isinstance(value, str) else "" if value is None else to_json(value)


def plain(value: object) -> Any:
    """Convert a value as in the module's table; the result equals `json.loads(to_json(value))`."""
    return _plain(value, ())


def _plain(value: object, outer: tuple[int, ...]) -> Any:
    try:
        return _converted(value, outer)
    except Exception:  # noqa: BLE001 - methods of arbitrary objects may raise anything: reported in the text
        return _described(value)


def _converted(value: object, outer: tuple[int, ...]) -> Any:
    """Convert a value that lies in containers with the ids `outer`."""
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, Secret):
        return value.source
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, np.bool_):
        return bool(value)
    if isinstance(value, int | np.integer):
        exact = int(value)
        return exact if exact.bit_length() <= _MOST_BITS else hex(exact)
    if isinstance(value, float | np.floating):
        return _number(float(value))
    if isinstance(value, bytes | bytearray):
        return value.decode("utf-8", "backslashreplace")
    if id(value) in outer or len(outer) >= _MOST_LEVELS:
        return _described(value)
    return _converted_container(value, (*outer, id(value)))


def _converted_container(value: object, outer: tuple[int, ...]) -> Any:
    if isinstance(value, Mapping):
        return _object(value.items(), outer)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return _object([(field.name, getattr(value, field.name)) for field in dataclasses.fields(value)], outer)
    if isinstance(value, list | tuple):
        return [_plain(item, outer) for item in value]
    if isinstance(value, AbstractSet):
        return sorted((_plain(item, outer) for item in value), key=json.dumps)
    if isinstance(value, os.PathLike):
        return _plain(os.fspath(value), outer)
    if callable(to_list := getattr(value, "tolist", None)) and not isinstance(value, np.generic):
        return _plain(to_list(), outer)
    return _described(value)


def _object(items: Iterable[tuple[object, object]], outer: tuple[int, ...]) -> dict[str, Any]:
    pairs = list(items)
    as_they_are = {key for key, _ in pairs if type(key) is str and _text(key) == key}
    result: dict[str, Any] = {}
    for key, item in pairs:
        name = _plain(key, outer)
        name = name if isinstance(name, str) else json.dumps(name)
        unchanged = type(key) is str and name == key
        while name in result or (name in as_they_are and not unchanged):
            name += "'"
        result[name] = _plain(item, outer)
    return result


def _number(value: float) -> float | str:
    if math.isfinite(value):
        return value
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def _text(value: str) -> str:
    return str.encode(value, "utf-8", "backslashreplace").decode()


def _described(value: object) -> str:
    try:
        return _text(repr(value))
    except Exception as error:  # noqa: BLE001 - reported in the text
        return f"<{type(value).__name__} whose repr raised {type(error).__name__}>"


def write_json(path: Path, value: object) -> None:
    """Write a file of indented JSON atomically."""
    partial = path.with_name(f".{path.name}.partial")
    try:
        with partial.open("w", encoding="utf-8") as file:
            file.write(to_json(value, indent=2) + "\n")
            file.flush()
            os.fsync(file.fileno())
        os.replace(partial, path)
    finally:
        partial.unlink(missing_ok=True)


def read_json(path: Path) -> Any:
    """Read a JSON file."""
    try:
        return json.loads(path.read_bytes())
    except (ValueError, RecursionError) as error:
        raise DataError(f"{path} is not valid JSON, or is truncated: {error}") from error


def read_lines(path: Path, parse: Callable[[Any], T]) -> list[T]:
    """Return the result of `parse` for each line's value; the file is not changed.

    Another process may still be writing the file: a last line without a line break is incomplete and ignored.

    Raises:
        DataError: If a line is not JSON, or `parse` raises a ValueError.
    """
    return read_from(path, parse)[0]


def read_from(
    path: Path, parse: Callable[[Any], T], start: int = 0, *, advice: str = "correct or remove that line"
) -> tuple[list[T], int]:
    """The results of `parse` for the lines from an offset on, and the offset at which the last of these lines ends."""
    values: list[T] = []
    end = start
    with path.open("rb") as file:
        file.seek(start)
        for number, line in enumerate(file, start=1):
            if not line.endswith(b"\n"):
                break
            try:
                values.append(parse(json.loads(line)))
            except (ValueError, RecursionError) as error:
                raise DataError(f"{path}, line {number} is damaged ({error}): {advice}") from error
            end += len(line)
    return values, end


class JsonLines:
    """A JSON Lines file to which lines are appended atomically.

    When `write` returns, the line has been passed to the operating system, so a killed process loses no lines. If a process is
    killed during `write`, `read` ignores and removes the partial line. Only one process may write at a time.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file = path.open("a+b", buffering=0)

    def write(self, value: object) -> None:
        """Append one line.

        Raises:
            OSError: If the line can't be written, as on a full disk; the file then holds the earlier lines.
        """
        line = to_json(value).encode() + b"\n"
        start = self._file.seek(0, os.SEEK_END)
        try:
            while line:  # an unbuffered write may be partial
                line = line[self._file.write(line) :]
        except BaseException as error:
            self._file.truncate(start)
            if isinstance(error, OSError):
                raise OSError(error.errno, error.strerror, str(self.path)) from error
            raise

    def read(self, parse: Callable[[Any], T]) -> list[T]:
        """Return the result of `parse` for each line's value; a partial last line left by a crash is removed.

        Raises:
            DataError: If a line is not JSON, or `parse` raises a ValueError.
        """
        values, end = read_from(self.path, parse, advice="remove that line, and it is generated again")
        self._file.truncate(end)
        return values

    def cut(self, keep: Callable[[Any], bool]) -> None:
        """Remove the first line that should not be kept or is not JSON, and all lines after it."""
        end = 0
        with self.path.open("rb") as file:
            for line in file:
                try:
                    kept = line.endswith(b"\n") and keep(json.loads(line))
                except ValueError:
                    kept = False
                if not kept:
                    break
                end += len(line)
        self._file.truncate(end)

    def clear(self) -> None:
        """Remove all lines."""
        self._file.truncate(0)

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def differences(before: object, now: object, name: str = "") -> Iterator[tuple[str, Any, Any]]:
    """The differences between two trees of JSON objects: the dotted name and both values, with None for a missing value."""
    if isinstance(before, dict) and isinstance(now, dict):
        for key in {**before, **now}:
            yield from differences(before.get(key), now.get(key), f"{name}.{key}" if name else key)
    elif before != now:
        yield name, before, now
