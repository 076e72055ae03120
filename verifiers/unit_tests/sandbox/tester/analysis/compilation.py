"""Compiled test code, with the results of static analysis."""

from __future__ import annotations

import functools
import types
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from ...protocol import packages
from ...protocol.source_files import compile_whole
from ..report import TEST_FILE
from . import side_effects

PREFIX_FILE = "prefix.py"
_CODE = frozenset({"check", "asserts"})
_CACHED = 64


@dataclass(frozen=True, slots=True)
class TestCode:
    """Compiled test code."""

    code: types.CodeType
    leaves_no_trace: bool
    """Whether the process can run other tests afterwards as if it had not run this code."""


def tidied(statement: str) -> str:
    """An assert statement or set-up code of a data set, without the white space around it."""
    return statement.replace("\r\n", "\n").strip()


# Cached because programs come in groups that answer the same problem.
@functools.lru_cache(_CACHED)
def compile_tests(source: str, filename: str) -> TestCode:
    """Compile test code; SyntaxError if it is not valid Python."""
    code = compile(source, filename, "exec", dont_inherit=True)
    return TestCode(code, side_effects.leaves_no_trace(code))


@functools.lru_cache(_CACHED)
def compile_prefix(source: str) -> TestCode:
    """Compile a prompt's code, without a last statement that is incomplete."""
    code = compile_whole(source, PREFIX_FILE)
    return TestCode(code, side_effects.leaves_no_trace(code))


def leave_no_trace(tests: Mapping[str, Any]) -> bool:
    """Whether a process can run a job's tests and then other tests as if it had not."""
    if tests["kind"] == "calls":
        return True  # they are data
    if tests["kind"] not in _CODE or tests["files"] or packages.any_loaded():
        return False  # packages have state of their own, such as numpy.seterr
    try:
        harmless_prefix = not tests["prefix"] or compile_prefix(tests["prefix"]).leaves_no_trace
        return harmless_prefix and all(compile_tests(source, TEST_FILE).leaves_no_trace for source in _own(tests))
    except SyntaxError:
        return False


def _own(tests: Mapping[str, Any]) -> Iterable[str]:
    return [tests["test"]] if tests["kind"] == "check" else map(tidied, (tests["setup"], *tests["asserts"]))
