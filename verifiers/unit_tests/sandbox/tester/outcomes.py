"""How a test ends: the exceptions of the test API for unsupported, skipped and failed ones, and whether it ends at all."""

from __future__ import annotations

import inspect
import traceback

_JUDGING = frozenset({"unittest.case", "unittest.mock"})


class TestOutcome(BaseException):
    """How the test API ends a test: as in pytest, a handler of `Exception` around the call does not prevent it."""


class UnsupportedTestError(TestOutcome):
    """A test uses something unsupported."""


class Skipped(TestOutcome):
    """A test called `skip` or `xfail`."""


class Failed(TestOutcome):
    """A test called `fail`, or an expected exception was not raised."""


class UnexpectedExceptionError(AssertionError):
    """An exception of the expected class was raised, but its text or its content is not what the test expects."""


def raised_by_assertion(error: BaseException) -> bool:
    """Whether an `assert*` method of a test case or of a mock raised this, or `fail`, rather than the program."""
    innermost = [frame for frame, _ in traceback.walk_tb(error.__traceback__)][-1:]
    judged = any(frame.f_globals.get("__name__") in _JUDGING for frame in innermost)
    own = isinstance(error, TestOutcome | UnexpectedExceptionError)
    return own or (isinstance(error, AssertionError) and judged)


def runs_whole(function: object) -> bool:
    """Whether calling a function of the tests runs it: generators and coroutines would only be made."""
    made = (inspect.isgeneratorfunction, inspect.iscoroutinefunction, inspect.isasyncgenfunction)
    return not any(is_one(function) for is_one in made)
