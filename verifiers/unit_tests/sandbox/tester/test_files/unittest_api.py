"""What of `unittest` and `warnings` is replaced in the tester: what looks at its own process, or asks a result about itself."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any, NoReturn

from ..outcomes import UnsupportedTestError
from ..rpc.proxy import Proxy

_UNSEEN = ("assertWarns", "assertWarnsRegex", "assertLogs", "assertNoLogs")
"""What looks at warnings and at the log of its own process, in which the program is not."""


def prepare() -> None:
    """Replace it, before test code that uses `unittest` runs."""
    case: Any = importlib.import_module("unittest").TestCase
    for name in _UNSEEN:
        setattr(case, name, _refuse(name))
    compare = case.assertSetEqual

    def assert_set_equal(self: Any, first: Any, second: Any, msg: object = None) -> None:
        # It calls a method of the first with the second, which is what was expected; of a real set it is a real one.
        compare(self, _real_set(first), _real_set(second), msg)

    case.assertSetEqual = assert_set_equal


def refuse_recorded_warnings() -> None:
    """Have `catch_warnings(record=True)` refused, before test code that uses it runs."""
    warnings: Any = importlib.import_module("warnings")
    catch = warnings.catch_warnings

    def catch_warnings(*, record: bool = False, **kwargs: object) -> object:
        return (_refuse("catch_warnings(record=True)") if record else catch)(**kwargs)

    warnings.catch_warnings = catch_warnings


def _real_set(value: Any) -> Any:
    return set(value) if isinstance(value, Proxy) else value  # type: ignore[call-overload]  # else it says that it can't be iterated


def _refuse(name: str) -> Callable[..., NoReturn]:
    def refuse(*_: object, **__: object) -> NoReturn:
        reason = "what the program warns of or logs stays in its own process"
        raise UnsupportedTestError(f"{name} is not supported: {reason}")

    return refuse
