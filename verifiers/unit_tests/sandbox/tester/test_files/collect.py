"""Finding the tests of a test file in pytest's or unittest's style.

Functions `test_*`, methods `test_*` of classes `Test*`, and methods of `unittest.TestCase` classes, with fixtures,
parametrization and set-up functions. Unsupported features raise `UnsupportedTestError`.
"""

from __future__ import annotations

import functools
import importlib
import inspect
import itertools
import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..outcomes import UnsupportedTestError, runs_whole
from .fixtures import (
    KnownFixture,
    bound_to,
    closure,
    fixtures_of_class,
    fixtures_of_file,
    is_unit,
    members_of,
    parameters_of,
)
from .pytest_api import Fixture, Mark, Parameters
from .run import TestItem, TestRun, run_unit_test

_FUNCTIONS = (types.FunctionType, functools.partial, type(functools.cache(len)))
"""Types of a test."""
_METHODS = (types.FunctionType, _FUNCTIONS[-1], staticmethod, classmethod)
_SET_UP = frozenset({"setup_class", "teardown_class", "setup_method", "teardown_method"})


@dataclass(frozen=True, slots=True)
class CollectedTest:
    """One test with one set of parameters."""

    name: str
    run: Callable[[], None]
    """Raises what the test raises, or `Skipped`."""


def collect(namespace: Mapping[str, Any], conftest: Mapping[str, Any]) -> list[CollectedTest]:
    """Find the tests in a test file's globals, in the order of their definition; those of `conftest.py` have fixtures."""
    file = _File({None: fixtures_of_file(namespace, conftest)})
    runner = TestRun(list(file.tests_in(namespace, None, "", _listed(namespace.get("pytestmark", ())))))
    return [CollectedTest(test.name, functools.partial(runner.run, number)) for number, test in enumerate(runner.tests)]


@dataclass(frozen=True, slots=True)
class _File:
    """A test file, by the fixtures that its functions see, under None, and those that its classes see."""

    fixtures: dict[type[Any] | None, dict[str, KnownFixture]]

    def tests_in(
        self, members: Mapping[str, Any], cls: type[Any] | None, prefix: str, marks: list[Mark]
    ) -> Iterator[TestItem]:
        """The tests among the members of the file, or of a class of pytest's style, whose marks are given."""
        for name, value in members.items():
            # By its type: the proxy of an object claims to be an instance of another class.
            kind = type(value)
            if kind in (_METHODS if cls else _FUNCTIONS):
                if name.startswith("test") and getattr(value, "__test__", True):
                    yield from self._expand(prefix + name, value, cls, marks)
            elif issubclass(kind, type) and (is_unit(value) or name.startswith("Test")):
                if cls and any(known in _SET_UP or type(member) is Fixture for known, member in members.items()):
                    reason = "is defined in a class with fixtures or set-up methods, which would run for it too"
                    raise UnsupportedTestError(f"test class {value.__name__} {reason}")
                yield from self._tests_of_class(value, f"{prefix}{name}::", marks)

    def _tests_of_class(self, cls: type[Any], prefix: str, marks: list[Mark]) -> Iterator[TestItem]:
        members = members_of(cls)
        marks = [mark for base in reversed(cls.__mro__) for mark in _listed(vars(base).get("pytestmark", ()))] + marks
        if not members.get("__test__", True) or cls.__module__ == "unittest.case":
            return
        if is_unit(cls):
            names = importlib.import_module("unittest").TestLoader().getTestCaseNames(cls)
            for name in names or (["runTest"] if hasattr(cls, "runTest") else []):
                method = getattr(cls, name)
                _require_run(prefix + name, method, awaited=hasattr(cls, "asyncSetUp"))
                own = _listed(getattr(method, "pytestmark", ()))
                yield from self._expand(prefix + name, run_unit_test, cls, own + marks, unit=name)
            return
        tests = self.tests_in(members, cls, prefix, marks)
        if members["__init__"] is object.__init__ and members["__new__"] is object.__new__:
            yield from tests
        elif any(name.startswith("test") and type(value) in _METHODS for name, value in members.items()):
            hint = "use a fixture or setup_method instead"
            raise UnsupportedTestError(f"test class {cls.__name__} has a constructor; {hint}")

    def _expand(
        self, name: str, function: Any, cls: type[Any] | None, marks: list[Mark], unit: str = ""
    ) -> Iterator[TestItem]:
        """Make a test for each combination of parameters of the function and of the fixtures it uses."""
        bound = bound_to(function, cls)
        _require_run(name, bound, awaited=True)
        marks = _listed(getattr(bound, "pytestmark", ())) + marks
        if _left_out(marks):
            return
        columns = [_parameter_sets(mark) for mark in marks if mark.name == "parametrize"]
        if not all(columns):
            return  # an empty set of parameters makes no tests
        if cls is not None and cls not in self.fixtures:
            self.fixtures[cls] = fixtures_of_class(self.fixtures[None], cls)
        fixtures = self.fixtures[cls]
        wanted = [name for name, fixture in fixtures.items() if fixture.fixture.autouse]
        wanted += [name for mark in marks if mark.name == "usefixtures" for name in mark.args]
        direct = {name for column in columns for name in column[0].arguments}
        used = closure([*wanted, *parameters_of(bound)], fixtures, direct)
        takers = [bound, *(fixtures[name].function() for name in used)]
        unknown = direct.difference(*(inspect.signature(taker).parameters for taker in takers))
        if unknown:
            raise ValueError(f"{name} has no parameter {', '.join(sorted(unknown))}")
        parametrized = [name for name in used if fixtures[name].fixture.params is not None]
        columns = [_fixture_sets(name, fixtures[name]) for name in parametrized] + columns
        for combination in itertools.product(*columns):
            if _left_out([mark for parameter_set in combination for mark in parameter_set.marks]):
                continue
            label = "-".join(parameter_set.label for parameter_set in combination)
            arguments = {key: value for one in combination for key, value in one.arguments.items()}
            parameters = {key: value for one in combination for key, value in one.fixture.items()}
            label = f"{name}[{label}]" if label else name
            yield TestItem(label, function, cls, fixtures, used, arguments, parameters, unit)


def _listed(marks: Any) -> list[Mark]:
    return [marks] if isinstance(marks, Mark) else list(marks)


def _left_out(marks: Sequence[Mark]) -> bool:
    """Whether a test is to be skipped, or is expected to fail."""
    for mark in marks:
        conditions = mark.args if mark.name in ("skipif", "xfail") else ()
        conditions += (mark.kwargs["condition"],) if "condition" in mark.kwargs else ()
        if any(isinstance(condition, str) for condition in conditions):
            raise UnsupportedTestError(f"pytest.mark.{mark.name} with a string: give it the condition itself")
        always = mark.name == "skip" or (mark.name == "xfail" and not conditions)
        if always or (mark.name in ("skipif", "xfail") and any(conditions)):
            return True
    return False


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
    names = [name for name in names if name]
    return names, list(argvalues), ids if callable(ids) or ids is None else list(ids)


def _label(ids: Any, number: int, values: Sequence[Any]) -> str:
    if callable(ids):
        return "-".join(str(ids(value)) for value in values)
    if ids is not None:
        return str(ids[number])
    simple = [value for value in values if isinstance(value, str | int | float | bool | None)]
    return "-".join(map(str, simple))[:60] if len(simple) == len(values) else str(number)


def _fixture_sets(name: str, known: KnownFixture) -> list[_Set]:
    sets = []
    for number, given in enumerate(known.fixture.params or ()):
        parameters = given if isinstance(given, Parameters) else Parameters((given,), (), None)
        label = parameters.id or _label(known.fixture.ids, number, parameters.values)
        sets.append(_Set(label, fixture={name: parameters.values[0]}, marks=parameters.marks))
    return sets
