"""Test files in the style of pytest and unittest, without fixtures: what tests import of both, and how they run."""

from __future__ import annotations

import builtins
import functools
import importlib
import itertools
import re
import sys
import types
from collections.abc import Callable, Iterable, Iterator, Sequence
from importlib.machinery import ModuleSpec
from typing import Any, NoReturn

from . import imports, names
from .comparison import approx
from .judging import Judge, runs_whole
from .report import Skipped, UnsupportedTestError, missing


class TestFileJudge(Judge):
    """Runs a test file; it is the only job of its process."""

    _skipped = _judged = False
    """Whether a test has been skipped, and whether one has been run."""

    def _prepare_functions(self) -> types.CodeType:
        source = self._tests["test"]
        self._modules = [name for name in self._tests["modules"] if name]
        (code,) = self._compiled([source], ("pytest", *self._modules))
        if "*" not in imports.imported(source):
            self._check_defined([source])
        return code

    def _run_functions(self, code: types.CodeType) -> None:
        sys.meta_path.insert(0, _ProgramModules(self))
        sys.modules["pytest"] = _pytest()
        sys.modules[self._own["__name__"]] = module = types.ModuleType(self._own["__name__"])
        module.__dict__.update(self._own)
        self._own = module.__dict__
        try:
            exec(code, self._own)
        except ModuleNotFoundError as error:
            raise UnsupportedTestError(f"the tests import what is not there: {error}") from None
        for name, run in _collect(self._own):
            self._case(run, name=name)
        if self._skipped and not self._judged:
            self.report.end(
                failure="wrong_answer", reason="every test was skipped", broken=not self.program.has_answered
            )

    def _case(self, run: Callable[[], object], **fields: object) -> None:
        try:
            super()._case(run, **fields)
            self._judged = True
        except Skipped:
            self._skipped = True

    def module(self, name: str) -> bool:
        """Whether a module is the program's, under a name by which the tests import it."""
        return name in self._modules

    def attribute(self, module: str, name: str) -> Any:
        """A global name of one of the program's modules; ImportError or AttributeError that counts as the program's."""
        wanted = None if module == self._modules[0] else module
        found = self._resolve([name], wanted)
        if name not in found:
            raise missing(AttributeError, f"module {module!r} has no attribute {name!r}")
        return found[name]

    def starred(self, module: str) -> list[str]:
        """The names that `import *` takes: those that the tests use and the program defines."""
        wanted = names.free_names([self._tests["test"]]) - vars(builtins).keys()
        return sorted(self._resolve(wanted, None if module == self._modules[0] else module))


class _ProgramModules:
    """Finds the program's modules for the import statements of the tests."""

    def __init__(self, judge: TestFileJudge) -> None:
        self._judge = judge

    def find_spec(self, name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        """Find a module of the program."""
        return ModuleSpec(name, self) if self._judge.module(name) else None  # type: ignore[arg-type]  # it is a loader

    def create_module(self, spec: ModuleSpec) -> types.ModuleType:
        """Make a module whose names are the program's."""
        return _ProgramModule(spec.name, self._judge)

    def exec_module(self, module: types.ModuleType) -> None:
        """Do nothing: the program has run."""


class _ProgramModule(types.ModuleType):
    def __init__(self, name: str, judge: TestFileJudge) -> None:
        super().__init__(name)
        object.__setattr__(self, "_judge", judge)

    def __getattr__(self, name: str) -> Any:
        if name == "__all__":
            return self._judge.starred(self.__name__)
        if name.startswith("__"):
            raise AttributeError(name)
        return self._judge.attribute(self.__name__, name)

    def __setattr__(self, name: str, value: object) -> None:
        if not name.startswith("__"):
            raise UnsupportedTestError(f"the tests set {name!r} in a module of the program")
        object.__setattr__(self, name, value)


def _collect(namespace: dict[str, Any]) -> Iterator[tuple[str, Callable[[], object]]]:
    """The tests of a file by name, each to be called."""
    for name, value in list(namespace.items()):
        if isinstance(value, type) and issubclass(value, _test_cases()):
            for method in sorted(name for name in dir(value) if name.startswith("test")):
                yield f"{name}::{method}", _UnittestCase(value, method)
        elif isinstance(value, type) and name.startswith("Test"):
            for method in [key for key in dir(value) if key.startswith("test")]:
                yield from _parametrized(f"{name}::{method}", getattr(value, method), _in_class(value, method))
        elif name.startswith("test") and isinstance(value, types.FunctionType):
            yield from _parametrized(name, value, value)


def _in_class(cls: type, method: str) -> Callable[..., object]:
    def run(**kwargs: object) -> None:
        instance: Any = cls()
        getattr(instance, "setup_method", lambda *_: None)(*_one_argument(instance, method))
        try:
            getattr(instance, method)(**kwargs)
        finally:
            getattr(instance, "teardown_method", lambda *_: None)(*_one_argument(instance, method))

    return run


def _one_argument(instance: Any, method: str) -> list[object]:
    setup = getattr(type(instance), "setup_method", None)
    return [getattr(instance, method)] if setup is not None and setup.__code__.co_argcount > 1 else []


def _parametrized(name: str, function: Any, run: Callable[..., object]) -> Iterator[tuple[str, Callable[[], object]]]:
    """A test with each set of its parameters."""
    if not runs_whole(function):
        raise UnsupportedTestError(f"{name} is a generator or a coroutine")
    sets: list[list[dict[str, object]]] = getattr(function, "parameters", [])
    wanted = {*function.__code__.co_varnames[: function.__code__.co_argcount]} - {"self"}
    given = {key for group in sets for one in group for key in one}
    if wanted - given - {*_defaults(function)}:
        raise UnsupportedTestError(f"{name} asks for fixtures: {', '.join(sorted(wanted - given))}")
    for number, parts in enumerate(itertools.product(*reversed(sets))):
        arguments = {key: value for part in parts for key, value in part.items()}
        yield name + (f"[{number}]" if sets else ""), functools.partial(run, **arguments)


def _defaults(function: Any) -> tuple[str, ...]:
    code, defaults = function.__code__, function.__defaults__ or ()
    return code.co_varnames[code.co_argcount - len(defaults) : code.co_argcount]  # type: ignore[no-any-return]  # names


class _UnittestCase:
    """A method of a `TestCase`, whose first problem is raised."""

    def __init__(self, cls: Any, method: str) -> None:
        self._cls = cls
        self._method = method
        self._problem: BaseException | None = None

    def __call__(self) -> None:
        """Run it, with its class's set-up."""
        unittest = importlib.import_module("unittest")
        result = unittest.TestResult()
        result.addError = result.addFailure = lambda test, error: self._keep(error[1])
        result.addSubTest = lambda test, subtest, error: None if error is None else self._keep(error[1])
        result.addSkip = lambda test, reason: self._keep(Skipped(reason))
        result.addExpectedFailure = lambda test, error: self._keep(Skipped("it is expected to fail"))
        result.addUnexpectedSuccess = lambda test: self._keep(AssertionError("unexpected success"))
        unittest.TestSuite([self._cls(self._method)]).run(result)
        if self._problem is not None:
            raise self._problem

    def _keep(self, problem: BaseException) -> None:
        self._problem = self._problem or problem


def _test_cases() -> Any:
    """`unittest.TestCase`, if the tests use it: few do, and each process would pay for the module."""
    return getattr(sys.modules.get("unittest"), "TestCase", ())


class _Raises:
    """The context manager of `pytest.raises`, which is also the name after `as`."""

    def __init__(self, expected: Any, match: str | None) -> None:
        self.type = expected
        self.value: Any = None
        self._match = match

    def __enter__(self) -> _Raises:
        return self

    def __exit__(self, cls: Any, error: BaseException | None, trace: object) -> bool:
        if error is None:
            raise AssertionError(f"did not raise {self.type!r}")
        if not issubclass(cls, self.type):
            return False
        if self._match is not None and not re.search(self._match, str(error)):
            raise AssertionError(f"the text of {cls.__name__} does not match {self._match!r}: {str(error)!r}")
        self.type, self.value = cls, error
        return True

    def match(self, pattern: str) -> bool:
        """Fail unless the exception's text matches."""
        assert re.search(pattern, str(self.value)), f"{pattern!r} does not match {str(self.value)!r}"
        return True


def _raises(expected: Any, *function: Any, match: str | None = None, **kwargs: Any) -> _Raises:
    if not all(isinstance(one, type) for one in (expected if isinstance(expected, tuple) else [expected])):
        raise TypeError(f"expected exception classes, got {expected!r}")
    context = _Raises(expected, match)
    if function:
        with context:
            function[0](*function[1:], **kwargs)
    return context


def _fail(reason: str = "", pytrace: bool = True) -> NoReturn:
    raise AssertionError(reason)


def _skip(reason: str = "", **_: object) -> NoReturn:
    raise Skipped(reason)


def _parametrize(arguments: str | Sequence[str], values: Iterable[Any], ids: object = None) -> Callable[[Any], Any]:
    names_ = [part.strip() for part in arguments.split(",")] if isinstance(arguments, str) else [*arguments]
    rows = [dict(zip(names_, [value] if len(names_) == 1 else value, strict=True)) for value in values]

    def decorate(function: Any) -> Any:
        function.parameters = [*getattr(function, "parameters", []), rows]
        return function

    return decorate


def _skipped(*conditions: object, reason: str = "") -> Callable[[Any], Any]:
    def decorate(function: Any) -> Any:
        return (lambda: _skip(reason)) if all(conditions) else function

    return decorate


class _Marks:
    parametrize = staticmethod(_parametrize)
    skip = skipif = staticmethod(_skipped)

    def __getattr__(self, name: str) -> Any:
        if name in ("xfail", "usefixtures", "asyncio"):
            raise UnsupportedTestError(f"pytest.mark.{name}")
        return _marked


def _marked(*args: Any, **kwargs: object) -> Any:
    """A mark that says nothing of how a test runs, with arguments or without."""
    return args[0] if args and isinstance(args[0], types.FunctionType | type) else lambda function: function


class _Pytest(types.ModuleType):
    def __getattr__(self, name: str) -> NoReturn:
        raise UnsupportedTestError(f"pytest.{name}") if not name.startswith("__") else AttributeError(name)


def _pytest() -> types.ModuleType:
    """The part of pytest that tests can use."""
    module = _Pytest("pytest")
    module.__dict__.update(raises=_raises, approx=approx, skip=_skip, fail=_fail, mark=_Marks())
    return module
