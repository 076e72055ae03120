"""Running the tests of a test file, with fixtures of every scope."""

from __future__ import annotations

import contextlib
import functools
import importlib
import inspect
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..outcomes import Failed, Skipped, UnsupportedTestError
from .fixtures import SCOPES, KnownFixture, bound_to, parameters_of
from .pytest_api import FixtureRequest


@dataclass(frozen=True, slots=True)
class TestItem:
    """A test function, or a method with its class, and one set of arguments for it."""

    name: str
    function: Any
    cls: type[Any] | None
    fixtures: Mapping[str, KnownFixture]
    """Those visible to it."""
    used: Sequence[str]
    """Names of those that it uses, in the order in which they are to be started."""
    arguments: Mapping[str, Any]
    fixture_parameters: Mapping[str, Any]
    unit: str = ""
    """The method's name if the class is a `unittest.TestCase`, of which the function runs the whole."""


@dataclass(slots=True)
class _Running:
    """A fixture that has been started: what came of it, and what ends it."""

    sources: tuple[int, ...]
    """Identities of its parameter and of what it was made from."""
    end: contextlib.ExitStack = field(default_factory=contextlib.ExitStack)
    value: object = None
    error: BaseException | None = None
    """Raised by it, and so by every test that uses it."""


class TestRun:
    """Runs tests in order."""

    def __init__(self, tests: Sequence[TestItem]) -> None:
        self.tests = tests
        self._running: dict[int, _Running] = {}
        """By the ids of the fixtures' functions."""
        self._scopes = {scope: contextlib.ExitStack() for scope in SCOPES}
        """What ends with each scope."""

    def run(self, number: int) -> None:
        """Run a test, with the fixtures that begin with it, and end those that end with it."""
        test, following = self.tests[number], self.tests[number + 1] if number + 1 < len(self.tests) else None
        with contextlib.ExitStack() as ends:
            for scope in SCOPES if following is None else SCOPES[3 + (following.cls is test.cls) :]:
                ends.callback(self._leave, scope)
            try:
                self._run(test)
            except Exception as error:
                # What the program raises is never of unittest's own classes.
                unittest = sys.modules.get("unittest")
                if unittest is not None and isinstance(error, unittest.SkipTest):
                    raise Skipped(str(error)) from None
                raise

    def _leave(self, scope: str) -> None:
        stack, self._scopes[scope] = self._scopes[scope], contextlib.ExitStack()
        stack.close()

    def _run(self, test: TestItem) -> None:
        instance = test.cls(*([test.unit] if test.unit else [])) if test.cls is not None else None
        value = functools.partial(self._value, test, instance)
        for name in test.used:
            value(name, "function")
        function = bound_to(test.function, test.cls, instance)
        arguments = {name: value(name, "function") for name in parameters_of(function)}
        # A parameter with a default can be parametrized too; one that only fixtures use is no argument.
        takes = inspect.signature(function).parameters
        arguments |= {name: given for name, given in test.arguments.items() if name in takes}
        _finish(function(**arguments))

    def _value(self, test: TestItem, instance: object, name: str, scope: str) -> Any:
        """The value of a fixture, or of an argument in its place, for what has this scope."""
        if name in test.arguments:
            return test.arguments[name]
        if name == "request":
            return self._request(test, instance, name, scope, self._scopes[scope])
        known = test.fixtures[name]
        key = id(known.fixture.function)
        function = known.function(instance)
        names = [other for other in parameters_of(function) if other != "request"]
        values = {other: self._value(test, instance, other, known.fixture.scope) for other in names}
        used = [
            self._running.get(id(test.fixtures[other].fixture.function)) for other in names if other in test.fixtures
        ]
        sources = id(test.fixture_parameters.get(name)), *map(id, used), *map(id, values.values())
        running = self._running.get(key)
        if running is None or running.sources != sources:
            if running is not None:
                running.end.close()
            running = self._running[key] = _Running(sources)
            end = functools.partial(self._end, key, running)
            for stack in (self._scopes[known.fixture.scope], *(other.end for other in used if other)):
                stack.callback(end)
            if "request" in parameters_of(function):
                values["request"] = self._request(test, instance, name, known.fixture.scope, running.end)
            try:
                running.value = _start(function, values, running.end)
            except BaseException as error:  # noqa: BLE001 - raised below
                running.error = error
        if running.error is not None:
            raise running.error
        return running.value

    def _end(self, key: int, running: _Running) -> None:
        if self._running.get(key) is running:
            del self._running[key]
        running.end.close()

    def _request(
        self, test: TestItem, instance: object, name: str, scope: str, end: contextlib.ExitStack
    ) -> FixtureRequest:
        return FixtureRequest(
            function=bound_to(test.function, test.cls, instance),
            instance=instance,
            cls=test.cls,
            module=sys.modules.get("tests"),
            node=FixtureRequest(parameter=FixtureRequest, name=test.name.rpartition("::")[2], cls=test.cls),
            scope=scope,
            fixturename=name,
            fixturenames=list(test.used),
            addfinalizer=end.callback,
            getfixturevalue=lambda other: self._value(test, instance, other, scope),
            parameter=test.fixture_parameters.get(name, FixtureRequest),
        )


def _start(function: Callable[..., Any], arguments: Mapping[str, Any], end: contextlib.ExitStack) -> Any:
    """Run a fixture, up to its `yield` if it has one; what follows runs when it ends."""
    if inspect.isasyncgenfunction(function):
        raise UnsupportedTestError("fixtures that are asynchronous generators are not supported")
    if not inspect.isgeneratorfunction(function):
        return _finish(function(**arguments))
    made = function(**arguments)

    def finish() -> None:
        for _ in made:
            raise Failed("a fixture yields more than once")

    try:
        value = next(made)
    except StopIteration:
        raise Failed("a fixture does not yield") from None
    end.callback(finish)
    return value


def _finish(result: object) -> object:
    """Run a coroutine to completion; return any other result unchanged."""
    return importlib.import_module("asyncio").run(result) if inspect.iscoroutine(result) else result


def run_unit_test(test: Any) -> None:
    """Run a test of a `TestCase` with its set-up and clean-up, and raise its first error."""
    unittest = importlib.import_module("unittest")
    problems: list[BaseException] = []
    skipped: list[str] = []
    result = unittest.TestResult()
    result.addError = result.addFailure = lambda _, error: problems.append(error[1])
    result.addSubTest = lambda _, __, error: problems.extend([error[1]] if error else [])
    result.addUnexpectedSuccess = lambda _: problems.append(AssertionError("an expected failure did not happen"))
    # A part of a test may be skipped by itself.
    result.addSkip = lambda part, reason: skipped.extend([reason] if part is test else [])
    result.addExpectedFailure = lambda *_: skipped.append("an expected failure")
    test.run(result)
    if problems:
        raise problems[0]
    if skipped:
        raise Skipped(skipped[0])
