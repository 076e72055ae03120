"""How a test ends: the exceptions of the test API for unsupported, skipped and failed ones, and whether it ends at all."""

from __future__ import annotations

import inspect
import traceback

_JUDGING = frozenset({"unittest.case", "unittest.mock"})


class UnsupportedTestError(Exception):
    """A test uses something unsupported."""


class Skipped(Exception):
    """A test called `skip` or `xfail`."""


class Failed(AssertionError):
    """A test called `fail`, or an expected exception was not raised."""


def raised_by_assertion(error: BaseException) -> bool:
    """Whether an `assert*` method of a test case or of a mock raised this, or `fail`, rather than the program."""
    innermost = [frame for frame, _ in traceback.walk_tb(error.__traceback__)][-1:]
    judged = any(frame.f_globals.get("__name__") in _JUDGING for frame in innermost)
    return isinstance(error, Failed) or (isinstance(error, AssertionError) and judged)


def runs_whole(function: object) -> bool:
    """Whether calling a function of the tests runs it: generators and coroutines would only be made."""
    made = (inspect.isgeneratorfunction, inspect.iscoroutinefunction, inspect.isasyncgenfunction)
    return not any(is_one(function) for is_one in made)
