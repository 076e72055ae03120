"""Compiles test code. Results are cached, since several programs answer the same problem."""

from __future__ import annotations

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
    return compile_whole(source)
