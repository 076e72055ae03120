"""Finding and running the tests of a test file in pytest's or unittest's style.

Functions `test_*`, methods `test_*` of classes `Test*`, and methods of `unittest.TestCase` classes, with fixtures,
parametrization and set-up functions. Unsupported features raise `UnsupportedTestError`.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import inspect
import itertools
import sys
import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..outcomes import Skipped, UnsupportedTestError
from .fixtures import OWN_FIXTURES
from .pytest_api import Fixture, Mark, Parameters

_LEFT_OUT = frozenset({"skip", "xfail"})


@dataclass(frozen=True, slots=True)
class CollectedTest:
    """One test with one set of parameters."""

    name: str
    run: Callable[[], None]
    """Raises what the test raises, or `Skipped`."""


@dataclass(frozen=True, slots=True)
class _Test:
    """A test function, or a method with its class, and one set of arguments for it."""

    name: str
    function: Callable[..., Any]
    cls: type[Any] | None
    arguments: Mapping[str, Any] = field(default_factory=dict)
    fixture_parameters: Mapping[str, Any] = field(default_factory=dict)
    used_fixtures: tuple[str, ...] = ()
    is_unit: bool = False
    """Whether it is a test of a `unittest.TestCase`, of which the function runs the whole."""


def collect(namespace: Mapping[str, Any]) -> list[CollectedTest]:
    """Find the tests in a test file's globals, in the order of their definition."""
    tests: list[_Test] = []
    unit_tests: list[_Test] = []
    for name, value in namespace.items():
        # By its type: the proxy of an object claims to be an instance of another class.
        cls = type(value)
        if name.startswith("test") and cls is types.FunctionType:
            tests += _expand(name, value, None, namespace)
        elif issubclass(cls, type) and _is_unit_test(value):
            unit_tests += _unit_tests(value)
        elif issubclass(cls, type) and name.startswith("Test") and value.__module__ == "tests":
            tests += _methods(value, namespace)
    runner = _Runner(namespace, [*tests, *unit_tests])
    return [CollectedTest(test.name, functools.partial(runner.run, number)) for number, test in enumerate(runner.tests)]


def _methods(cls: type[Any], namespace: Mapping[str, Any]) -> Iterator[_Test]:
    if "__init__" in vars(cls):
        raise UnsupportedTestError(
            f"test class {cls.__name__} has a constructor; use a fixture or setup_method instead"
        )
    for name in dir(cls):
        function = inspect.getattr_static(cls, name)
        if name.startswith("test") and isinstance(function, types.FunctionType):
            yield from _expand(f"{cls.__name__}::{name}", function, cls, namespace)


def _marks(target: object) -> list[Mark]:
    return list(getattr(target, "pytestmark", ()))


def _module_marks(namespace: Mapping[str, Any]) -> list[Mark]:
    marks = namespace.get("pytestmark", [])
    return [marks] if isinstance(marks, Mark) else list(marks)


def _left_out(marks: Sequence[Mark]) -> bool:
    for mark in marks:
        if mark.name in _LEFT_OUT:
            return True
        if mark.name == "skipif":
            condition = mark.args[0] if mark.args else mark.kwargs.get("condition")
            if isinstance(condition, str):
                raise TypeError("pytest.mark.skipif with a string: give it the condition itself")
            if condition:
                return True
    return False


def _expand(
    name: str, function: Callable[..., Any], cls: type[Any] | None, namespace: Mapping[str, Any]
) -> Iterator[_Test]:
    """Make a test for each combination of parameters of the function and of the fixtures it uses."""
    marks = _module_marks(namespace) + (_marks(cls) if cls else []) + _marks(function)
    if _left_out(marks):
        return
    used = tuple(itertools.chain.from_iterable(mark.args for mark in marks if mark.name == "usefixtures"))
    columns = [_parameter_sets(mark) for mark in marks if mark.name == "parametrize"]
    if not all(columns):
        return  # an empty set of parameters makes no tests
    known = {name for column in columns for name in column[0].arguments}
    fixtures = _fixtures_of(namespace, cls)
    wanted = [*used, *(name for name, fixture in fixtures.items() if fixture.autouse), *_parameters(function, cls)]
    columns += [_fixture_sets(fixture) for fixture in _closure(wanted, fixtures, known) if fixture.params is not None]
    for combination in itertools.product(*columns):
        if _left_out([mark for parameter_set in combination for mark in parameter_set.marks]):
            continue
        label = "-".join(parameter_set.label for parameter_set in combination)
        arguments = {name: value for parameter_set in combination for name, value in parameter_set.arguments.items()}
        parameters = {name: value for parameter_set in combination for name, value in parameter_set.fixture.items()}
        yield _Test(f"{name}[{label}]" if label else name, function, cls, arguments, parameters, used)


@dataclass(frozen=True, slots=True)
class _Set:
    """One set of arguments, or one parameter of a fixture."""

    label: str
    arguments: Mapping[str, Any] = field(default_factory=dict)
    fixture: Mapping[str, Any] = field(default_factory=dict)
    marks: tuple[Mark, ...] = ()


def _parameter_sets(mark: Mark) -> list[_Set]:
    names, values, ids = _parametrize_arguments(*mark.args, **mark.kwargs)
    sets = []
    for number, given in enumerate(values):
        if not isinstance(given, Parameters):
            given = Parameters(tuple(given) if len(names) > 1 else (given,), (), None)
        if len(given.values) != len(names):
            raise ValueError(f"parametrize: {len(given.values)} values for the names {', '.join(names)}")
        label = given.id or _label(ids, number, given.values)
        sets.append(_Set(label, dict(zip(names, given.values, strict=True)), marks=given.marks))
    return sets


def _parametrize_arguments(
    argnames: str | Sequence[str],
    argvalues: Sequence[Any],
    ids: Any = None,
    indirect: bool = False,
    scope: object = None,
) -> tuple[list[str], Sequence[Any], Any]:
    if indirect:
        raise UnsupportedTestError("parametrize(indirect=True) is not supported: give the fixture params instead")
    names = [name.strip() for name in argnames.split(",")] if isinstance(argnames, str) else list(argnames)
    return names, list(argvalues), ids


def _label(ids: Any, number: int, values: Sequence[Any]) -> str:
    if callable(ids):
        return "-".join(str(ids(value)) for value in values)
    if ids is not None:
        return str(list(ids)[number])
    simple = [value for value in values if isinstance(value, str | int | float | bool | None)]
    return "-".join(map(str, simple))[:60] if len(simple) == len(values) else str(number)


def _fixture_sets(fixture: Fixture) -> list[_Set]:
    values = [value.values[0] if isinstance(value, Parameters) else value for value in fixture.params or ()]
    return [_Set(_label(None, n, (value,)), fixture={_name(fixture): value}) for n, value in enumerate(values)]


def _name(fixture: Fixture) -> str:
    return fixture.name or fixture.function.__name__


def _fixtures_of(namespace: Mapping[str, Any], cls: type[Any] | None) -> dict[str, Fixture]:
    """Fixtures visible to a test: pytest's own, overridden by the file's and then by those of its class."""
    fixtures = dict(OWN_FIXTURES)
    own = {name: inspect.getattr_static(cls, name) for name in dir(cls)} if cls else {}
    for content in (namespace, own):
        fixtures |= {value.name or name: value for name, value in content.items() if type(value) is Fixture}
    return fixtures


def _parameters(function: Callable[..., Any], cls: type[Any] | None) -> list[str]:
    """Names of the parameters of a test or fixture that need a value."""
    parameters = list(inspect.signature(function).parameters.values())
    own = parameters[(cls is not None) + _patched(function) :]
    return [
        parameter.name
        for parameter in own
        if parameter.default is parameter.empty and parameter.kind is not parameter.VAR_KEYWORD
    ]


def _patched(function: Callable[..., Any]) -> int:
    """The number of leading parameters that `mock.patch` decorators fill."""
    patches = getattr(function, "patchings", ())
    return sum(not patch.attribute_name and patch.new is sys.modules["unittest.mock"].DEFAULT for patch in patches)


def _fixture_parameters(fixture: Fixture) -> list[str]:
    return [name for name in _parameters(fixture.function, None) if name != "self"]


def _closure(names: Sequence[str], fixtures: Mapping[str, Fixture], known: set[str]) -> list[Fixture]:
    """The fixtures of these names and those that they use."""
    closure: dict[str, Fixture] = {}
    waiting = list(names)
    while waiting:
        name = waiting.pop()
        if name in closure or name in known or name == "request":
            continue
        if name not in fixtures:
            raise UnsupportedTestError(f"the fixture {name!r} is neither defined in the test file nor supported")
        closure[name] = fixtures[name]
        wanted = _fixture_parameters(fixtures[name])
        if name in wanted:
            raise UnsupportedTestError(f"the fixture {name!r} requests the one of the same name that it overrides")
        waiting += wanted
    return list(closure.values())


class _Runner:
    """Runs tests in order, with fixtures and set-up functions of every scope."""

    def __init__(self, namespace: Mapping[str, Any], tests: Sequence[_Test]) -> None:
        self.tests = tests
        self._namespace = namespace
        self._set_up_for: dict[str, object] = {"module": None, "class": None}
        """What these scopes are set up for: the namespace, and a class."""
        self._stacks = {scope: contextlib.ExitStack() for scope in ("function", "class", "module")}
        self._values: dict[str, dict[tuple[str, int, int], Any]] = {scope: {} for scope in self._stacks}

    def run(self, number: int) -> None:
        """Run a test, with the set-up of the scopes that begin with it and the clean-up of those that end with it."""
        test, following = self.tests[number], self.tests[number + 1] if number + 1 < len(self.tests) else None
        try:
            self._enter("module", self._namespace, self._namespace.get, of_unittest=True)
            self._enter("class", test.cls, lambda name: getattr(test.cls, name, None), of_unittest=test.is_unit)
            if test.is_unit:
                test.function()
            else:
                self._run_one(test)
        finally:
            self._leave("function")
            if following is None or following.cls is not test.cls:
                self._leave("class")
            if following is None:
                self._leave("module")

    def _enter(self, scope: str, owner: object, find: Callable[[str], Any], *, of_unittest: bool) -> None:
        """Set up a scope for an owner, unless it is already."""
        if owner is not None and self._set_up_for[scope] is not owner:
            self._set_up(scope, find, scope, owner, of_unittest=of_unittest)
        self._set_up_for[scope] = owner

    def _set_up(
        self, scope: str, find: Callable[[str], Any], suffix: str, argument: object, *, of_unittest: bool = False
    ) -> None:
        """Call the set-up function of pytest's or also unittest's name, if there is one, and plan what ends the scope."""
        setup, teardown = find(f"setup_{suffix}"), find(f"teardown_{suffix}")
        if of_unittest:
            name = suffix.title()
            setup, teardown = find(f"setUp{name}") or setup, find(f"tearDown{name}") or teardown
            self._stacks[scope].callback(_clean_up, argument)
        if setup is not None:
            _call_with(setup, argument)
        if teardown is not None:
            self._stacks[scope].callback(_call_with, teardown, argument)

    def _leave(self, scope: str) -> None:
        stack, self._stacks[scope] = self._stacks[scope], contextlib.ExitStack()
        self._values[scope] = {}
        stack.close()

    def _run_one(self, test: _Test) -> None:
        instance = test.cls() if test.cls is not None else None
        fixtures = _fixtures_of(self._namespace, test.cls)
        automatic = [name for name, fixture in fixtures.items() if fixture.autouse]
        for name in (*automatic, *test.used_fixtures):
            self._value(name, test, instance, fixtures)
        if instance is None:
            self._set_up("function", self._namespace.get, "function", test.function)
        else:
            self._set_up("function", lambda name: getattr(instance, name, None), "method", test.function)
        wanted = _parameters(test.function, test.cls)
        arguments = {
            name: test.arguments[name] if name in test.arguments else self._value(name, test, instance, fixtures)
            for name in wanted
        }
        # A parameter with a default can be parametrized too.
        arguments |= {name: value for name, value in test.arguments.items() if name not in arguments}
        _finish(test.function(*([] if instance is None else [instance]), **arguments))

    def _value(self, name: str, test: _Test, instance: object, fixtures: Mapping[str, Fixture]) -> Any:
        fixture = fixtures[name]
        scope = fixture.scope if fixture.scope in ("function", "class") else "module"
        key = name, id(fixture.function), id(test.fixture_parameters.get(name))
        if key not in self._values[scope]:
            stack = self._stacks[scope]
            arguments: dict[str, Any] = {}
            for argument in _fixture_parameters(fixture):
                if argument == "request":
                    parameter = test.fixture_parameters.get(name)
                    arguments[argument] = types.SimpleNamespace(
                        param=parameter, addfinalizer=stack.callback, cls=test.cls
                    )
                else:
                    arguments[argument] = self._value(argument, test, instance, fixtures)
            if "self" in inspect.signature(fixture.function).parameters:
                arguments["self"] = instance
            self._values[scope][key] = _start(fixture, arguments, stack)
        return self._values[scope][key]


def _start(fixture: Fixture, arguments: Mapping[str, Any], stack: contextlib.ExitStack) -> Any:
    """Run a fixture, up to its `yield` if it has one; what follows runs when its scope ends."""
    made = fixture.function(**arguments)
    if not isinstance(made, types.GeneratorType):
        return _finish(made)
    value = next(made)
    stack.callback(lambda: next(made, None))
    return value


def _finish(result: object) -> object:
    """Run a coroutine to completion; return any other result unchanged."""
    return importlib.import_module("asyncio").run(result) if inspect.iscoroutine(result) else result


def _clean_up(owner: Any) -> None:
    """Run the clean-up functions that a `TestCase` class, or the module, has added; raise their first error."""
    unittest = sys.modules.get("unittest")
    if isinstance(owner, type):
        owner.doClassCleanups()  # type: ignore[attr-defined]  # a class of unittest's
        for _, error, _ in owner.tearDown_exceptions:  # type: ignore[attr-defined]
            raise error
    elif unittest is not None:
        unittest.case.doModuleCleanups()


def _call_with(function: Callable[..., object], argument: object) -> None:
    """Call a set-up function, with the argument if it takes one."""
    takes = [
        parameter
        for parameter in inspect.signature(function).parameters.values()
        if parameter.default is parameter.empty
    ]
    function(*([argument] if takes else []))


def _is_unit_test(value: type[Any]) -> bool:
    unittest = sys.modules.get("unittest")
    return unittest is not None and issubclass(value, unittest.TestCase) and value.__module__ == "tests"


def _unit_tests(cls: type[Any]) -> Iterator[_Test]:
    names = importlib.import_module("unittest").TestLoader().getTestCaseNames(cls)
    return (
        _Test(f"{cls.__name__}::{name}", functools.partial(_run_unit_test, cls, name), cls, is_unit=True)
        for name in names
    )


def _run_unit_test(cls: type[Any], name: str) -> None:
    """Run one test of a `TestCase` with its set-up and clean-up, and raise its first error."""
    unittest = importlib.import_module("unittest")
    problems: list[BaseException] = []
    skipped: list[str] = []
    result = unittest.TestResult()
    result.addError = result.addFailure = lambda _, error: problems.append(error[1])
    result.addSubTest = lambda _, __, error: problems.extend([error[1]] if error else [])
    result.addUnexpectedSuccess = lambda _: problems.append(AssertionError("an expected failure did not happen"))
    result.addSkip = lambda _, reason: skipped.append(reason)
    result.addExpectedFailure = lambda *_: skipped.append("an expected failure")
    cls(name).run(result)
    if problems:
        raise problems[0]
    if skipped:
        raise Skipped(skipped[0])
