"""The exceptions by which the test API ends a test: unsupported, skipped or failed."""

from __future__ import annotations

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
