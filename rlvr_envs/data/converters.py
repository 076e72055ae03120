"""Named converters from the value of a column to the reference that a verifier expects.

Many public data sets keep answers and tests as JSON text in one column. A converter is called with the column's value and with
the row, whose other columns it may need.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

from rlvr_envs.data.rows import Row
from verifiers import InvalidArgumentError, _integers, unknown_name

Converter = Callable[[object, Row], object]
"""Turns a column's value into a reference; raises `InvalidArgumentError` or `DataError` if the value does not allow it."""


def _json(value: object, row: Row) -> object:
    if not isinstance(value, str):
        raise InvalidArgumentError(f"expected JSON text, got {type(value).__name__}")
    try:
        return _integers.loads(value)
    except (ValueError, RecursionError) as error:
        raise InvalidArgumentError(f"not valid JSON: {error}") from error


def _json_first(value: object, row: Row) -> object:
    items = _json(value, row)
    if not isinstance(items, list) or not items:
        raise InvalidArgumentError(f"expected the JSON of a list that is not empty, got {str(value)[:80]!r}")
    return items[0]


def _input_output(value: object, row: Row) -> object:
    from verifiers.unit_tests import from_input_output

    if not isinstance(value, str | Mapping):
        raise InvalidArgumentError(
            f"expected JSON text or an object with inputs and outputs, got {type(value).__name__}"
        )
    starter = row.values.get("starter_code")
    timeout_s = seconds(row.values.get("time_limit"))
    return from_input_output(value, starter_code=starter if isinstance(starter, str) else "", timeout_s=timeout_s)


def _livecodebench(value: object, row: Row) -> object:
    from verifiers.unit_tests import from_livecodebench

    return from_livecodebench(row.values)


def _test_list(value: object, row: Row) -> object:
    from verifiers.unit_tests import from_test_list

    tests = _json(value, row) if isinstance(value, str) else value
    if isinstance(tests, Mapping):
        return _input_output(tests, row)
    if not isinstance(tests, list):
        raise InvalidArgumentError(f"expected a list of tests, or inputs and outputs, got {type(tests).__name__}")
    timeout_s = seconds(row.values.get("time_limit"))
    return from_test_list(tests, metadata=row.values.get("metadata"), timeout_s=timeout_s)


def _codecontests(value: object, row: Row) -> object:
    from verifiers.unit_tests import from_input_output

    inputs: list[object] = []
    outputs: list[object] = []
    for column in ("public_tests", "private_tests", "generated_tests"):
        inputs += _texts(row, f"{column}.input")
        outputs += _texts(row, f"{column}.output")
    return from_input_output({"inputs": inputs, "outputs": outputs}, timeout_s=seconds(row.values.get("time_limit")))


def _codecontests_in(language: str) -> Converter:
    def convert_in(value: object, row: Row) -> object:
        from verifiers.unit_tests import StdioTests

        tests = _codecontests(value, row)
        assert isinstance(tests, StdioTests), "there is no function"
        return dataclasses.replace(tests, languages=(language,), prelude="")

    return convert_in


def _texts(row: Row, path: str) -> Sequence[str]:
    return row.texts(path) if row.values.get(path.partition(".")[0]) is not None else ()


_SECONDS = re.compile(r"(?:.*[^\d.])?(\d+(?:\.\d+)?)\s*(?:s|secs?|seconds?)\.?", re.IGNORECASE)


def seconds(limit: object) -> float | None:
    """Read the time limit of a problem.

    Args:
        limit: Text such as `"2.0 seconds"`, or a range such as `"1 - 3 seconds"`, of which the end counts; `{"seconds": 1,
            "nanos": 500000000}`, as in CodeContests; or a number. None, an empty text and 0 mean that there is no limit.

    Returns:
        The limit in seconds; None if there is no limit.

    Raises:
        InvalidArgumentError: If the limit is anything else.
    """
    if isinstance(limit, Mapping):
        parts = [limit.get("seconds") or 0, limit.get("nanos") or 0]
        limit = parts[0] + parts[1] / 1e9 if all(map(_is_number, parts)) else limit
    if isinstance(limit, str):
        match = _SECONDS.fullmatch(limit.strip())
        limit = float(match[1]) if match else None if limit.strip() in ("", "None") else limit
    if limit is None or limit == 0:
        return None
    if not _is_number(limit) or not 0 < limit < float("inf"):  # type: ignore[operator]  # a number
        raise InvalidArgumentError(f"expected a time limit such as '2 seconds', got {limit!r}")
    return float(limit)  # type: ignore[arg-type]  # a number


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _ifeval(value: object, row: Row) -> object:
    from verifiers.ifeval import read_instructions

    if isinstance(value, list) and value and all(isinstance(item, str) for item in value):
        return read_instructions({"instruction_id_list": value, "kwargs": row.value("kwargs")})
    return read_instructions(value)


CONVERTERS: Mapping[str, Converter] = MappingProxyType(
    {
        "json": _json,
        "json_first": _json_first,
        "input_output": _input_output,
        "livecodebench": _livecodebench,
        "test_list": _test_list,
        "codecontests": _codecontests,
        "codecontests_cpp": _codecontests_in("cpp"),
        "codecontests_java": _codecontests_in("java"),
        "ifeval": _ifeval,
    }
)
"""The converters by name. `json` reads the text as JSON, and `json_first` returns the first item of a JSON list. The following
converters make tests: `input_output` from an `input_output` column, as in APPS and TACO; `livecodebench` from a LiveCodeBench
row; `test_list` from a list in which each test states its kind, or from inputs and outputs, as in DeepCoder; `codecontests`
from a CodeContests row, and `codecontests_cpp` and `codecontests_java` likewise for programs in C++ and Java. `ifeval` makes
instructions from a column of ids and the row's `kwargs`, as in IFEval and IFBench, or from one object, or its JSON, with both.
If there is a column `time_limit`, it limits each case with standard input."""

_OF_PROGRAMS = ("input_output", "livecodebench", "test_list", "codecontests", "codecontests_cpp", "codecontests_java")
VERIFIERS: Mapping[str, str] = MappingProxyType(dict.fromkeys(_OF_PROGRAMS, "unit_tests") | {"ifeval": "ifeval"})
"""The only verifier that can read a converter's references, for each converter of which there is only one."""


def find_converter(name: str) -> Converter:
    """Find a converter by its name.

    Raises:
        UnknownNameError: If there is no such converter; the message suggests the nearest name.
    """
    if name not in tuple(CONVERTERS):
        raise unknown_name("converter", name, CONVERTERS)
    return CONVERTERS[name]


def convert(converter: Converter, row: Row, column: str) -> object:
    """Convert the value in a column of a row.

    Raises:
        DataError: If there is no such column, or the converter can't read its value; the message names the row and the column.
    """
    value = row.value(column)
    try:
        return converter(value, row)
    except InvalidArgumentError as error:
        raise row.error(f"column {column!r}: {error}") from error
