"""Tests from the row formats of public data sets of programming problems.

* `from_input_output`: the `input_output` column of APPS and TACO, also found in collections made from them: a JSON object
  with `inputs`, `outputs` and, if a function is called, `fn_name`.
* `from_test_list`: a list of `{"input", "output", ...}` in which each test names its kind, as in LiveCodeBench and DeepCoder.
* `from_livecodebench`: a LiveCodeBench row. Its public and private tests are JSON of such lists, and most private tests are
  compressed; its metadata names the function.
* `from_json`: any kind of tests in the form of JSON, for references that come from files, commands and requests.

Tests that no program or every program would pass are an error: no tests at all, tests of two kinds, a call without a function.
"""

from __future__ import annotations

import base64
import binascii
import dataclasses
import io
import pickle
import zlib
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn, TypeVar, cast

from verifiers import _integers
from verifiers.errors import InvalidArgumentError, unknown_name
from verifiers.unit_tests.tests import (
    AssertTests,
    CallCase,
    CallTests,
    CheckTests,
    FunctionTests,
    StdioCase,
    StdioTests,
    Tests,
)

_FLOAT_TOLERANCE = 1e-6
_MODULES = """
string datetime re typing collections heapq bisect copy decimal fractions statistics itertools functools operator random math io
sys json
"""
_RECURSION = 50_000
# Later imports override equal names; the imports of the builtins and of the modules themselves come last.
IMPORTS = (
    "".join(f"from {name} import *\n" for name in [*_MODULES.split(), "builtins"])
    + f"import time, {', '.join(_MODULES.split())}\nsys.setrecursionlimit({_RECURSION})\nsys.set_int_max_str_digits(0)\n"
)
"""Imports that run before programs. On the sites where these problems come from, a solution may use `List`, `Counter` or `inf`
without importing them, recurse deeply, and read and print integers of any length. The imports include everything that the
harnesses of APPS and LiveCodeBench import from the standard library (`testing_util.py` of both).
"""
_MAX_TESTS_BYTES = 1 << 30
_Case = TypeVar("_Case")
_Made = TypeVar("_Made")
_STDIN, _FUNCTIONAL, _FUNCTION_CALL = "stdin", "functional", "function_call"
_KINDS = {
    None: _STDIN,
    "stdin": _STDIN,
    "stdin_stdout": _STDIN,
    "functional": _FUNCTIONAL,
    "function_call": _FUNCTION_CALL,
}
"""The kinds of test by name: standard input and output, a call in lines of JSON (LiveCodeBench), or a call with values
(PrimeIntellect).
"""


def from_input_output(
    spec: str | Mapping[str, Any], *, starter_code: str = "", timeout_s: float | None = None
) -> CallTests | StdioTests:
    """Make tests from `inputs` and `outputs`.

    The program runs with `IMPORTS`. With `fn_name`, each input is the list of arguments for a call of that function, or of
    that method of a class `Solution`. An output that is a list of one item means the list or the item, since these data sets
    contain both: the checker of APPS accepts either too. Without `fn_name`, inputs and outputs are standard input and
    output of the program, as a string or a list of lines.

    Args:
        spec: The column's JSON, or its decoded content.
        starter_code: The prompt's code. A completion continues this code, or is a whole program that defines what the code
            declares.
        timeout_s: CPU seconds for each case, as for `StdioTests`; calls have the verifier's limit.

    Raises:
        InvalidArgumentError: If a key is missing, the numbers of inputs and outputs differ, there are no tests, or an input is
            of the other kind.
    """
    content = _json(spec, "input_output") if isinstance(spec, str) else spec
    if not isinstance(content, Mapping) or not {"inputs", "outputs"} <= content.keys():
        raise InvalidArgumentError(f"input_output needs the keys 'inputs' and 'outputs', got {_shown(content)}")
    inputs, outputs = content["inputs"], content["outputs"]
    if not isinstance(inputs, list) or not isinstance(outputs, list):
        raise InvalidArgumentError(f"inputs and outputs of input_output must be lists, got {_shown(content)}")
    if len(inputs) != len(outputs):
        raise InvalidArgumentError(f"input_output has {len(inputs)} inputs and {len(outputs)} outputs")
    name = content.get("fn_name")
    if not name:
        pairs = zip(inputs, outputs, strict=True)
        return _stdio_tests([StdioCase(_text(stdin), _text(text)) for stdin, text in pairs], timeout_s)
    strange = next((args for args in inputs if not isinstance(args, list)), None)
    if strange is not None:
        raise InvalidArgumentError(
            f"input_output names the function {name!r}, so that each input is a list of arguments, but one is "
            f"{_shown(strange)}: standard input and calls are not mixed"
        )
    calls = [CallCase(tuple(args), value) for args, value in zip(inputs, outputs, strict=True)]
    return _call_tests(name, calls, starter_code, wrapped=True)


def from_test_list(
    tests: Sequence[Any], *, metadata: object = None, timeout_s: float | None = None
) -> CallTests | StdioTests:
    """Make tests from a list in which each test names its kind. The program runs with `IMPORTS`.

    Args:
        tests: Mappings with `input` and `output`. `testtype` or `type` is `stdin` or `stdin_stdout` (the default); `functional`
            for a call whose arguments and value are lines of JSON; or `function_call` for a call with the list of its arguments
            and the function's name in `fn_name`.
        metadata: The metadata of the row, as a mapping or as JSON. Its `func_name` names the function for the `functional`
            tests whose own `metadata` names no function.
        timeout_s: CPU seconds for each case, as for `StdioTests`; calls have the verifier's limit.

    Raises:
        InvalidArgumentError: If there are no tests, or the tests are of several kinds, lack a key, or name no function.
    """
    for test in tests:
        if not (isinstance(test, Mapping) and {"input", "output"} <= test.keys()):
            raise InvalidArgumentError(
                f"a test has 'input', 'output' and 'testtype', got {_shown(test)}; tests of other kinds are given as a "
                "mapping, such as {'asserts': [...]}"
            )
    kinds = {_kind(test) for test in tests}
    if len(kinds) > 1:
        raise InvalidArgumentError(
            f"the tests are of several kinds, which no one program has: {', '.join(sorted(kinds))}"
        )
    if kinds == {_FUNCTIONAL}:
        # The starter code is a class whose method has no body: a completion rewrites it, so it is not a prefix.
        name = _mapping(metadata).get("func_name")
        function = _function({_mapping(test.get("metadata")).get("func_name") or name for test in tests}, "func_name")
        return _call_tests(function, [_json_call(test) for test in tests], "", wrapped=False)
    columns = {"inputs": [test["input"] for test in tests], "outputs": [test["output"] for test in tests]}
    if kinds == {_FUNCTION_CALL}:
        return from_input_output(columns | {"fn_name": _function({test.get("fn_name") for test in tests}, "fn_name")})
    return from_input_output(columns, timeout_s=timeout_s)


def from_json(value: object) -> Tests:
    """Make tests from their form as JSON.

    Args:
        value: A mapping with the fields of one kind of tests, with lists for tuples. The fields determine the kind: `asserts`
            of `AssertTests`, `entry_point` and `test` of `CheckTests`, `entry_point` and `cases` of `CallTests`, `cases` of
            `StdioTests`, `test` of `FunctionTests`. Or a mapping with `inputs` and `outputs`, as for `from_input_output`; or a
            list, as for `from_test_list`.

    Raises:
        InvalidArgumentError: If the value is none of these.
    """
    if isinstance(value, list):
        return from_test_list(value)
    keys = {*value} if isinstance(value, Mapping) else set()
    if {"inputs", "outputs"} <= keys:
        return from_input_output(cast("Mapping[str, Any]", value))
    for needed, cls in _KINDS_BY_FIELDS:
        if needed <= keys:
            return _of_fields(cls, cast("Mapping[str, Any]", value))
    raise InvalidArgumentError(
        "tests as JSON have the keys asserts; entry_point and test, or cases; cases; test; or inputs and outputs; "
        f"got {_shown(value)}"
    )


_KINDS_BY_FIELDS: tuple[tuple[frozenset[str], type[Tests]], ...] = (
    (frozenset({"asserts"}), AssertTests),
    (frozenset({"entry_point", "test"}), CheckTests),
    (frozenset({"entry_point", "cases"}), CallTests),
    (frozenset({"cases"}), StdioTests),
    (frozenset({"test"}), FunctionTests),
)


def _of_fields(cls: type[_Made], values: Mapping[str, Any]) -> _Made:
    """Make a dataclass from its fields; lists become tuples, and cases become the case class of that dataclass."""
    types = {field.name: str(field.type) for field in dataclasses.fields(cls)}  # type: ignore[arg-type]
    given: dict[str, Any] = {}
    for name, value in values.items():
        if name not in types:
            raise unknown_name(f"field of {cls.__name__}", name, types)
        kind = types[name].partition("[")[0]
        if kind == "tuple" and not isinstance(value, list):
            raise InvalidArgumentError(f"{name} of {cls.__name__} is a list, got {_shown(value)}")
        given[name] = tuple(value) if kind == "tuple" else value
    case = {CallTests: CallCase, StdioTests: StdioCase}.get(cls)
    if case is not None:
        if not all(isinstance(one, Mapping) for one in given["cases"]):
            fields = ", ".join(field.name for field in dataclasses.fields(case))
            got = _shown(values["cases"])
            raise InvalidArgumentError(f"cases of {cls.__name__} is a list of mappings with {fields}, got {got}")
        given["cases"] = tuple(_of_fields(case, one) for one in given["cases"])
    try:
        return cls(**given)
    except TypeError as error:
        raise InvalidArgumentError(f"{cls.__name__} as JSON: {error}; got {_shown(dict(values))}") from error


def _kind(test: Mapping[str, Any]) -> str:
    kind = test.get("testtype") or test.get("type")
    if kind not in tuple(_KINDS):
        raise InvalidArgumentError(f"a test is of the kind {', '.join(filter(None, _KINDS))}, got {kind!r}")
    return _KINDS[kind]


def _function(names: set[Any], key: str) -> str:
    """The name of the function that all tests call."""
    if len(names) != 1 or not isinstance(name := next(iter(names)), str):
        raise InvalidArgumentError(
            f"functional tests need metadata with {key!r}, the same for all, got {', '.join(sorted(map(repr, names)))}"
        )
    return name


def _json_call(test: Mapping[str, Any]) -> CallCase:
    args = [_json(line, "input") for line in str(test["input"]).split("\n") if line.strip()]
    return CallCase(tuple(args), _json(test["output"], "output"))


def from_livecodebench(row: Mapping[str, Any], *, private: bool = True) -> CallTests | StdioTests:
    """Make tests from a LiveCodeBench row. The program runs with `IMPORTS`.

    Args:
        row: The row, with the columns `public_test_cases`, `private_test_cases` and `metadata`.
        private: Whether to add the private tests to the public ones.

    Raises:
        InvalidArgumentError: If a column is missing or unreadable, or a functional test names no function.
    """
    tests = _tests_of(row, "public_test_cases") + (_tests_of(row, "private_test_cases") if private else [])
    return from_test_list(tests, metadata=row.get("metadata"))


def _mapping(metadata: object) -> Mapping[str, Any]:
    """Metadata as a mapping; the argument may be JSON or missing."""
    content = _json(metadata, "metadata") if isinstance(metadata, str) and metadata else metadata or {}
    if not isinstance(content, Mapping):
        raise InvalidArgumentError(f"metadata must be an object, got {_shown(metadata)}")
    return content


def _call_tests(name: str, calls: Sequence[CallCase], prefix: str, *, wrapped: bool) -> CallTests:
    return CallTests(
        name,
        _some(calls),
        prefix,
        tolerance=_FLOAT_TOLERANCE,
        tuples_as_lists=True,
        wrapped_outputs=wrapped,
        prelude=IMPORTS,
    )


def _stdio_tests(cases: Sequence[StdioCase], timeout_s: float | None) -> StdioTests:
    return StdioTests(_some(cases), tolerance=_FLOAT_TOLERANCE, prelude=IMPORTS, timeout_s=timeout_s)


def _some(cases: Sequence[_Case]) -> tuple[_Case, ...]:
    if not cases:
        raise InvalidArgumentError("it has no tests: nothing would be judged")
    return tuple(cases)


def _text(content: object) -> str:
    """Standard input or output: text, or a list of its lines."""
    lines = content if isinstance(content, list) else [content]
    if not all(isinstance(line, str | int | float) for line in lines):
        raise InvalidArgumentError(
            f"without a function's name (fn_name) inputs and outputs are text or lists of lines, got {_shown(content)}"
        )
    return "\n".join(_integers.to_digits(line) if isinstance(line, int) else str(line) for line in lines)


def _tests_of(row: Mapping[str, Any], column: str) -> list[Any]:
    if column not in row:
        raise InvalidArgumentError(f"a LiveCodeBench row has a column {column!r}; this one has {', '.join(row)}")
    content = row[column]
    tests = _maybe_compressed(content, column) if isinstance(content, str) else content
    if not isinstance(tests, list):
        raise InvalidArgumentError(f"{column} holds a list of tests, got {_shown(tests)}")
    return tests


def _maybe_compressed(content: str, column: str) -> Any:
    if content.lstrip().startswith("["):
        return _json(content, column)
    try:
        packed = zlib.decompressobj().decompress(base64.b64decode(content, validate=True), _MAX_TESTS_BYTES)
    except (binascii.Error, zlib.error) as error:
        raise InvalidArgumentError(f"{column} is neither JSON nor base64 of compressed tests: {error}") from error
    return _json(_unpickled(packed, column) if packed[:1] == b"\x80" else packed, column)


def _unpickled(packed: bytes, column: str) -> Any:
    try:
        return _TextUnpickler(io.BytesIO(packed)).load()
    except InvalidArgumentError:
        raise
    except Exception as error:  # damaged pickles raise anything
        raise InvalidArgumentError(f"{column} holds damaged tests: {type(error).__name__}: {error}") from error


class _TextUnpickler(pickle.Unpickler):
    """An unpickler for text that refuses anything that could run code; the data set pickles JSON, then compresses it."""

    def find_class(self, module_name: str, global_name: str) -> NoReturn:
        raise InvalidArgumentError(f"the compressed tests hold {module_name}.{global_name}, where text was expected")


def _json(text: str | bytes, what: str) -> Any:
    try:
        return _integers.loads(text)
    except (ValueError, TypeError, RecursionError) as error:
        raise InvalidArgumentError(f"{what} is not JSON: {error}; got {_shown(text)}") from error


def _shown(value: object) -> str:
    text = _integers.shown(value)
    return text if len(text) <= 100 else text[:100] + "..."
