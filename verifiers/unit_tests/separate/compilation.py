"""Compiled test code. It is cached, since programs come in groups that answer the same problem."""

from __future__ import annotations

import ast
import functools
import types

from .report import TEST_FILE
from .source import compile_whole

_CACHED = 64


def tidied(statement: str) -> str:
    """An assert statement or set-up code of a data set, without the white space around it."""
    return statement.replace("\r\n", "\n").strip()


@functools.lru_cache(_CACHED)
def compile_tests(source: str) -> types.CodeType:
    """Compile test code; SyntaxError if it is not valid Python."""
    return compile(source, TEST_FILE, "exec", dont_inherit=True)


@functools.lru_cache(_CACHED)
def compile_prefix(source: str) -> types.CodeType:
    """Compile a prompt's code, without a last statement that is incomplete."""
    return compile_whole(source, "prefix.py")


@functools.lru_cache(_CACHED)
def can_fail(source: str) -> bool:
    """Whether test code has a statement that may fail: more than values that nothing is done with, and asserts of constants."""
    return not all(map(_does_nothing, ast.parse(source).body))


def _does_nothing(statement: ast.stmt) -> bool:
    if isinstance(statement, ast.Assert):
        # An assert of a tuple that holds the message: `assert (f(1) == 1, "wrong")`.
        return isinstance(statement.test, ast.Constant | ast.Tuple) and bool(getattr(statement.test, "value", True))
    unused = isinstance(statement, ast.Expr) and not isinstance(statement.value, ast.Call | ast.Await)
    return unused or isinstance(statement, ast.Pass)
