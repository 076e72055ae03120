"""Compiled test code, and whether it leaves a trace in the process that runs it."""

from __future__ import annotations

import ast
import functools
import types
from collections.abc import Iterable, Mapping
from typing import Any

from ...protocol import packages
from ...protocol.source_files import compile_whole
from ..report import TEST_FILE
from .side_effects import leaves_no_trace

_CODE = frozenset({"check", "asserts"})
_CACHED = 64


def tidied(statement: str) -> str:
    """An assert statement or set-up code of a data set, without the white space around it."""
    return statement.replace("\r\n", "\n").strip()


# Cached because programs come in groups that answer the same problem.
@functools.lru_cache(_CACHED)
def compile_tests(source: str) -> types.CodeType:
    """Compile test code; SyntaxError if it is not valid Python."""
    return compile(source, TEST_FILE, "exec", dont_inherit=True)


@functools.lru_cache(_CACHED)
def can_fail(source: str) -> bool:
    """Whether test code has a statement that may fail: more than values that nothing is done with, and asserts of constants."""
    return not all(map(_does_nothing, ast.parse(source).body))


def _does_nothing(statement: ast.stmt) -> bool:
    if isinstance(statement, ast.Assert):
        # Of a tuple with a message in it: `assert (f(1) == 1, "wrong")`.
        return isinstance(statement.test, ast.Constant | ast.Tuple) and bool(getattr(statement.test, "value", True))
    unused = isinstance(statement, ast.Expr) and not isinstance(statement.value, ast.Call | ast.Await)
    return unused or isinstance(statement, ast.Pass)


@functools.lru_cache(_CACHED)
def compile_prefix(source: str) -> types.CodeType:
    """Compile a prompt's code, without a last statement that is incomplete."""
    return compile_whole(source, "prefix.py")


def leave_no_trace(tests: Mapping[str, Any]) -> bool:
    """Whether a process can run a job's tests and then other tests as if it had not."""
    if tests["kind"] == "calls":
        return True  # they are data
    if tests["kind"] not in _CODE or tests["files"] or packages.any_loaded():
        return False  # packages have state of their own, such as numpy.seterr
    try:
        harmless_prefix = leaves_no_trace(compile_prefix(tests["prefix"]))
        return harmless_prefix and all(map(leaves_no_trace, map(compile_tests, _own(tests))))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False  # the same error then ends a job that is reported


def _own(tests: Mapping[str, Any]) -> Iterable[str]:
    return [tests["test"]] if tests["kind"] == "check" else map(tidied, (tests["setup"], *tests["asserts"]))
