"""Replaces functions of `unittest` and `warnings` that inspect their own process, or let a result judge itself."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any, NoReturn

from ..outcomes import UnsupportedTestError
from ..rpc.exceptions import STANDS_FOR
from ..rpc.proxy import Proxy

_UNSEEN = ("assertWarns", "assertWarnsRegex", "assertLogs", "assertNoLogs")
"""Assertions about warnings and logs of this process, in which the program does not run."""


def prepare() -> None:
    """Replace functions of `unittest`; to be called before test code that uses it runs."""
    case: Any = importlib.import_module("unittest").TestCase
    for name in _UNSEEN:
        setattr(case, name, _refuse(name))
    compare = case.assertSetEqual

    def assert_set_equal(self: Any, first: Any, second: Any, msg: object = None) -> None:
        # The original passes the second, the expected value, to a method of the first, which must therefore be a real set.
        compare(self, _real_set(first), _real_set(second), msg)

    case.assertSetEqual = assert_set_equal
    context: Any = importlib.import_module("unittest.case")._AssertRaisesContext
    leave = context.__exit__

    def leave_original(self: Any, cls: object, error: BaseException | None, trace: object) -> object:
        stood_for = error and error.__dict__.get(STANDS_FOR)
        return leave(self, type(stood_for), stood_for, trace) if stood_for else leave(self, cls, error, trace)

    context.__exit__ = leave_original


def refuse_recorded_warnings() -> None:
    """Make `catch_warnings(record=True)` raise; to be called before test code that uses it runs."""
    warnings: Any = importlib.import_module("warnings")
    catch = warnings.catch_warnings

    def catch_warnings(*, record: bool = False, **kwargs: object) -> object:
        return (_refuse("catch_warnings(record=True)") if record else catch)(**kwargs)

    warnings.catch_warnings = catch_warnings


def _real_set(value: Any) -> Any:
    return set(value) if isinstance(value, Proxy) else value  # type: ignore[call-overload]  # else it raises


def _refuse(name: str) -> Callable[..., NoReturn]:
    def refuse(*_: object, **__: object) -> NoReturn:
        reason = "warnings and logs of the program stay in its own process"
        raise UnsupportedTestError(f"{name} is not supported: {reason}")

    return refuse
