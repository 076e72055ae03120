"""Inspects a test file without the program: whether it is broken, and which tests are skipped or expected to fail."""

from __future__ import annotations

import dis
import importlib
import importlib.util
import inspect
import sys
from collections.abc import Callable, Iterator, Mapping
from typing import Any

LEFT_OUT, FAILS, RAISES = "left out", "fails", "raises"
"""Expected outcomes of a test: it does not run, it fails in any way, or it raises an exception that a mark names."""


class Inspector:
    """A pytest plugin that reports faults of a test file, and the outcomes that the file expects of its tests."""

    def __init__(self, report: Callable[[Mapping[str, object]], None], modules: list[str]) -> None:
        """Make an inspector; `modules` are the modules of the program and of the problem's files."""
        self._report = report
        self._below = tuple(f"{name}." for name in modules)

    def pytest_exception_interact(self, call: Any) -> None:
        """Report an error of the collection, which may be due to the missing program."""
        pytest = importlib.import_module("pytest")
        error = call.excinfo.value.__cause__ or call.excinfo.value
        kinds = SyntaxError, ImportError, pytest.Collector.CollectError, pytest.fail.Exception
        needs_program = not isinstance(error, kinds) or (getattr(error, "name", None) or "").startswith(self._below)
        self._report({"needed": True} if needs_program else {"broken": f"{type(error).__name__}: {error}"})

    def pytest_collection_finish(self, session: Any) -> None:
        """Report broken tests, tests with an expected outcome, and the number of all tests."""
        for item in session.items:
            expected = _expected(item)
            problem = None if expected == LEFT_OUT else next(_problems(item), None)
            if problem:
                self._report({"broken": f"{item.nodeid}: {problem}"})
            elif expected:
                self._report({"test": item.nodeid, "expected": expected})
        self._report({"total": len(session.items)})


def _expected(item: Any) -> str | None:
    skipping = importlib.import_module("_pytest.skipping")
    if _has(item, "__unittest_skip__") or skipping.evaluate_skip_marks(item):
        return LEFT_OUT
    mark = skipping.evaluate_xfail_marks(item)
    if mark is None:
        return FAILS if _has(item, "__unittest_expecting_failure__") else None
    return LEFT_OUT if not mark.run else FAILS if mark.raises is None else RAISES


def _has(item: Any, attribute: str) -> bool:
    return any(getattr(owner, attribute, False) for owner in (item.obj, item.cls))


def _problems(item: Any) -> Iterator[str]:
    """The reasons why no program can pass a test, if there are any."""
    known = {"request", *item._fixtureinfo.name2fixturedefs}
    yield from (f"fixture {name!r} not found" for name in item._fixtureinfo.names_closure if name not in known)
    if inspect.iscoroutinefunction(item.obj) and type(item) is importlib.import_module("pytest").Function:
        yield "coroutines need a plugin of pytest"
    code = inspect.unwrap(item.function).__code__
    steps = () if code.co_exceptiontable else dis.get_instructions(code)  # only code without `try` and `with`
    used = (step.argval.partition(".")[0] for step in steps if step.opname == "IMPORT_NAME")
    missing = (name for name in used if name and name not in sys.modules and not importlib.util.find_spec(name))
    yield from (f"No module named {name!r}" for name in missing)
