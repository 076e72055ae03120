"""Whether an assertion of the tests failed, or the program raised an `AssertionError` of its own."""

from __future__ import annotations

import traceback

_JUDGING = frozenset({"unittest.case", "unittest.mock", "sandbox.tester.test_files.pytest_api"})


def raised_by_assertion(error: BaseException) -> bool:
    """Whether a function that judges raised this: a method `assert*` of a test case or of a mock, or `pytest.fail`."""
    innermost = [frame for frame, _ in traceback.walk_tb(error.__traceback__)][-1:]
    return isinstance(error, AssertionError) and any(frame.f_globals.get("__name__") in _JUDGING for frame in innermost)
