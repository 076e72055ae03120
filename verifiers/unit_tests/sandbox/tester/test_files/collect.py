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

from ..outcomes import Skipped, UnsupportedTestError, runs_whole
from .fixtures import OWN_FIXTURES
from .pytest_api import Fixture, Mark, Parameters

_LEFT_OUT = frozenset({"skip", "xfail"})
_FUNCTIONS = (types.FunctionType, staticmethod, classmethod)
"""Types of a test; in a file the first alone."""
_SET_UP = frozenset({"setup_class", "teardown_class", "setup_method", "teardown_method"})


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
    unit: str = ""
    """The method's name if the class is a `unittest.TestCase`, of which the function runs the whole."""


def collect(namespace: Mapping[str, Any]) -> list[CollectedTest]:
    """Find the tests in a test file's globals, in the order of their definition."""
    marks = _listed(namespace.get("pytestmark", ()))
    runner = _Runner(namespace, list(_tests_in(namespace, None, "", marks, namespace)))
    return [CollectedTest(test.name, functools.partial(runner.run, number)) for number, test in enumerate(runner.tests)]


def _tests_in(
    members: Mapping[str, Any], cls: type[Any] | None, prefix: str, marks: list[Mark], namespace: Mapping[str, Any]
) -> Iterator[_Test]:
    """The tests among the members of the file, or of a class of pytest's style, whose marks are given."""
    for name, value in members.items():
        # By its type: the proxy of an object claims to be an instance of another class.
        kind = type(value)
        if name.startswith("test") and kind in (_FUNCTIONS if cls else _FUNCTIONS[:1]):
            yield from _expand(prefix + name, value, cls, marks, namespace)
        elif issubclass(kind, type) and value.__module__ == "tests" and (_is_unit(value) or name.startswith("Test")):
            if cls and any(known in _SET_UP or type(value) is Fixture for known, value in members.items()):
                reason = "is defined in a class with fixtures or set-up methods, which would run for it too"
                raise UnsupportedTestError(f"test class {value.__name__} {reason}")
            yield from _tests_of_class(value, f"{prefix}{value.__name__}::", marks, namespace)


def _tests_of_class(cls: type[Any], prefix: str, marks: list[Mark], namespace: Mapping[str, Any]) -> Iterator[_Test]:
    members = _members(cls)
    marks = marks + [mark for base in reversed(cls.__mro__) for mark in _listed(vars(base).get("pytestmark", ()))]
    if not members.get("__test__", True):
        return
    if _is_unit(cls):
        for name in importlib.import_module("unittest").TestLoader().getTestCaseNames(cls):
            method = getattr(cls, name)
            _require_run(prefix + name, method, awaited=hasattr(cls, "asyncSetUp"))
            own = _listed(getattr(method, "pytestmark", ()))
            yield from _expand(prefix + name, _run_unit_test, cls, marks + own, namespace, unit=name)
        return
    if members["__init__"] is not object.__init__:
        raise UnsupportedTestError(
            f"test class {cls.__name__} has a constructor; use a fixture or setup_method instead"
        )
    yield from _tests_in(members, cls, prefix, marks, namespace)


def _members(cls: type[Any]) -> dict[str, Any]:
    """Attributes of a class in pytest's order: those of its bases first, then its own as they are defined."""
    members: dict[str, Any] = {}
    for base in cls.__mro__:
        members = {**{name: value for name, value in vars(base).items() if name not in members}, **members}
    return members


def _listed(marks: Any) -> list[Mark]:
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
    name: str, function: Any, cls: type[Any] | None, marks: list[Mark], namespace: Mapping[str, Any], unit: str = ""
) -> Iterator[_Test]:
    """Make a test for each combination of parameters of the function and of the fixtures it uses."""
    bound = _bound(function, cls)
    _require_run(name, bound, awaited=True)
    marks = marks + _listed(getattr(bound, "pytestmark", ()))
    if _left_out(marks):
        return
    used = tuple(itertools.chain.from_iterable(mark.args for mark in marks if mark.name == "usefixtures"))
    columns = [_parameter_sets(mark) for mark in marks if mark.name == "parametrize"]
    if not all(columns):
        return  # an empty set of parameters makes no tests
    known = {name for column in columns for name in column[0].arguments}
    fixtures = _fixtures_of(namespace, cls)
    wanted = [*used, *(name for name, fixture in fixtures.items() if fixture.autouse), *_parameters(bound)]
    columns += [_fixture_sets(fixture) for fixture in _closure(wanted, fixtures, known) if fixture.params is not None]
    for combination in itertools.product(*columns):
        if _left_out([mark for parameter_set in combination for mark in parameter_set.marks]):
            continue
        label = "-".join(parameter_set.label for parameter_set in combination)
        arguments = {name: value for parameter_set in combination for name, value in parameter_set.arguments.items()}
        parameters = {name: value for parameter_set in combination for name, value in parameter_set.fixture.items()}
        yield _Test(f"{name}[{label}]" if label else name, function, cls, arguments, parameters, used, unit)


def _require_run(name: str, function: object, *, awaited: bool) -> None:
    """Raise UnsupportedTestError if a test's call would run none of it, nor what then awaits its coroutine."""
    if not (runs_whole(function) or (awaited and inspect.iscoroutinefunction(function))):
        raise UnsupportedTestError(f"{name} would not run, since it is a generator, or a coroutine that nothing awaits")


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


def _bound(function: Any, cls: type[Any] | None, instance: object = object) -> Callable[..., Any]:
    """A test as its class's instance has it: what is written as a method takes the instance."""
    bound: Callable[..., Any] = function if cls is None else function.__get__(instance, cls)
    return bound


def _parameters(function: Callable[..., Any]) -> list[str]:
    """Names of the parameters of a test or fixture that need a value."""
    parameters = list(inspect.signature(function).parameters.values())
    return [
        parameter.name
        for parameter in parameters[_patched(function) :]
        if parameter.default is parameter.empty and parameter.kind is not parameter.VAR_KEYWORD
    ]


def _patched(function: Callable[..., Any]) -> int:
    """The number of leading parameters that `mock.patch` decorators fill."""
    patches = getattr(function, "patchings", ())
    return sum(not patch.attribute_name and patch.new is sys.modules["unittest.mock"].DEFAULT for patch in patches)


def _fixture_parameters(fixture: Fixture) -> list[str]:
    return [name for name in _parameters(fixture.function) if name != "self"]


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
        self._set_up_errors: dict[str, BaseException | None] = dict.fromkeys(self._set_up_for)
        """What their set-up has raised, by which each of their tests fails."""
        self._stacks = {scope: contextlib.ExitStack() for scope in ("function", "class", "module")}
        self._values: dict[str, dict[tuple[str, int, int], Any]] = {scope: {} for scope in self._stacks}

    def run(self, number: int) -> None:
        """Run a test, with the set-up of the scopes that begin with it and the clean-up of those that end with it."""
        test, following = self.tests[number], self.tests[number + 1] if number + 1 < len(self.tests) else None
        try:
            self._enter("module", self._namespace, self._namespace.get, of_unittest=True)
            if getattr(test.cls, "__unittest_skip__", False):
                raise Skipped("its class is skipped")
            self._enter("class", test.cls, lambda name: getattr(test.cls, name, None), of_unittest=bool(test.unit))
            self._run_one(test)
        except Exception as error:
            # What the program raises is never of unittest's own classes.
            if _is_skip(error):
                raise Skipped(str(error)) from None
            raise
        finally:
            self._leave("function")
            if following is None or following.cls is not test.cls:
                self._leave("class")
            if following is None:
                self._leave("module")

    def _enter(self, scope: str, owner: object, find: Callable[[str], Any], *, of_unittest: bool) -> None:
        """Set up a scope for an owner, unless it is already."""
        if self._set_up_for[scope] is not owner:
            self._set_up_for[scope], self._set_up_errors[scope] = owner, None
            try:
                if owner is not None:
                    self._set_up(scope, find, scope, owner, of_unittest=of_unittest)
            except BaseException as error:  # noqa: BLE001 - raised below
                self._set_up_errors[scope] = error
        if (failed := self._set_up_errors[scope]) is not None:
            raise failed

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
        instance = test.cls(*([test.unit] if test.unit else [])) if test.cls is not None else None
        function = _bound(test.function, test.cls, instance)
        fixtures = _fixtures_of(self._namespace, test.cls)
        automatic = [name for name, fixture in fixtures.items() if fixture.autouse]
        for name in (*automatic, *test.used_fixtures):
            self._value(name, test, instance, fixtures)
        if instance is None:
            self._set_up("function", self._namespace.get, "function", function)
        else:
            self._set_up("function", lambda name: getattr(instance, name, None), "method", function)
        wanted = _parameters(function)
        arguments = {
            name: test.arguments[name] if name in test.arguments else self._value(name, test, instance, fixtures)
            for name in wanted
        }
        # A parameter with a default can be parametrized too.
        arguments |= {name: value for name, value in test.arguments.items() if name not in arguments}
        _finish(function(**arguments))

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


def _is_unit(cls: type[Any]) -> bool:
    unittest = sys.modules.get("unittest")
    return unittest is not None and issubclass(cls, unittest.TestCase)


def _is_skip(error: BaseException) -> bool:
    unittest = sys.modules.get("unittest")
    return unittest is not None and isinstance(error, unittest.SkipTest)


def _run_unit_test(test: Any) -> None:
    """Run a test of a `TestCase` with its set-up and clean-up, and raise its first error."""
    unittest = importlib.import_module("unittest")
    problems: list[BaseException] = []
    skipped: list[str] = []
    result = unittest.TestResult()
    result.addError = result.addFailure = lambda _, error: problems.append(error[1])
    result.addSubTest = lambda _, __, error: problems.extend([error[1]] if error else [])
    result.addUnexpectedSuccess = lambda _: problems.append(AssertionError("an expected failure did not happen"))
    result.addSkip = lambda _, reason: skipped.append(reason)
    result.addExpectedFailure = lambda *_: skipped.append("an expected failure")
    test.run(result)
    if problems:
        raise problems[0]
    if skipped:
        raise Skipped(skipped[0])
