"""Test files in the style of pytest and unittest, without fixtures: how tests run, and the parts of both that they use."""

from __future__ import annotations

import builtins
import functools
import importlib
import re
import sys
import types
from collections.abc import Callable, Iterator
from importlib.machinery import ModuleSpec
from typing import Any, NoReturn

from . import imports, names
from .comparison import approx
from .handles import Handle
from .judging import Judge, runs_whole
from .report import UNSUPPORTED, Skipped, UnsupportedTestError, is_programs, missing


class TestFileJudge(Judge):
    """Runs a test file, as the only job of its process."""

    _skipped = _judged = False
    """Whether a test has been skipped, and whether a test has been run."""

    def _prepare_functions(self) -> types.CodeType:
        source = self._tests["test"]
        self._modules = [name for name in self._tests["modules"] if name]
        (code,) = self._compiled([source], self._modules)
        if "*" not in imports.imported(source):
            self._check_defined([source])
        return code

    def _run_functions(self, code: types.CodeType) -> None:
        self._resolve([])  # a program that can't be loaded fails, whatever the tests ask for
        sys.meta_path.insert(0, _ProgramModules(self))
        sys.modules[self._own["__name__"]] = module = types.ModuleType(self._own["__name__"])
        module.__dict__.update(self._own)
        self._own = module.__dict__
        try:
            exec(code, self._own)
        except ModuleNotFoundError as error:
            if self._is_below(error.name):
                raise missing(ModuleNotFoundError, str(error)) from None
            raise UnsupportedTestError(f"the tests import what is not there: {error}") from None
        try:
            tests = list(_collect(self._own))
        except UnsupportedTestError as error:
            self.report.end(failure=UNSUPPORTED, reason=str(error), broken=not self.program.has_answered)
        if not tests:
            self.report.end(failure=UNSUPPORTED, reason="there are no tests", broken=not self.program.has_answered)
        for name, run in tests:
            self._case(run, name=name)
        if self._skipped and not self._judged:
            self.report.end(
                failure="wrong_answer", reason="every test was skipped", broken=not self.program.has_resolved
            )

    def _case(self, run: Callable[[], object], **fields: object) -> None:
        try:
            super()._case(run, **fields)
            self._judged = True
        except Skipped:
            self._skipped = True

    def module(self, name: str) -> bool:
        """Whether a module that the tests import is a module of the program."""
        if name in self._modules or not self._is_below(name):
            return name in self._modules
        try:
            self._resolve([], name)
        except BaseException as error:
            if not is_programs(error):
                raise
            return False
        return True

    def _is_below(self, name: str | None) -> bool:
        return any(f"{name}.".startswith(f"{module}.") for module in self._modules)

    def attribute(self, module: str, name: str) -> Any:
        """The value of a global name in a module of the program; an ImportError or AttributeError counts as the program's."""
        wanted = None if module == self._modules[0] else module
        found = self._resolve([name], wanted)
        if name not in found:
            raise missing(AttributeError, f"module {module!r} has no attribute {name!r}")
        return found[name]

    def starred(self, module: str) -> list[str]:
        """The names that `import *` imports: those that the tests use and the program defines."""
        source = self._tests["test"]
        wanted = {name for name in names.free_names([source]) if not name.startswith("_")} - vars(builtins).keys()
        wanted -= {"isclose", "isfinite", "isinf", "isnan"}  # tests judge by these functions
        return sorted(self._resolve(wanted, None if module == self._modules[0] else module))


class _ProgramModules:
    """An import finder that lets the tests import the program's modules."""

    def __init__(self, judge: TestFileJudge) -> None:
        self._judge = judge

    def find_spec(self, name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        """Find a module of the program."""
        is_programs = self._judge.module(name)
        return ModuleSpec(name, self, is_package=True) if is_programs else None  # type: ignore[arg-type]  # it is a loader

    def create_module(self, spec: ModuleSpec) -> types.ModuleType:
        """Make a module with the names of the program's module."""
        return _ProgramModule(spec.name, self._judge)

    def exec_module(self, module: types.ModuleType) -> None:
        """Do nothing, since the program has already run."""


_OF_IMPORTS = frozenset(
    f"__{name}__" for name in ("path", "spec", "loader", "file", "package", "wrapped", "cached", "test", "signature")
)
"""Attributes of modules that the import system uses."""


class _ProgramModule(types.ModuleType):
    def __init__(self, name: str, judge: TestFileJudge) -> None:
        super().__init__(name)
        object.__setattr__(self, "_judge", judge)

    @property
    def __doc__(self) -> Any:  # type: ignore[override]  # the program's own
        """The documentation of the program's module."""
        return self.__getattr__("__doc__")

    def __getattr__(self, name: str) -> Any:
        if name == "__all__":
            return self._judge.starred(self.__name__)
        if name in _OF_IMPORTS:
            raise AttributeError(name)
        return self._judge.attribute(self.__name__, name)

    def __setattr__(self, name: str, value: object) -> None:
        if not (name.startswith("__") or isinstance(value, _ProgramModule)):
            raise UnsupportedTestError(f"the tests set {name!r} in a module of the program")
        object.__setattr__(self, name, value)


def _collect(namespace: dict[str, Any]) -> Iterator[tuple[str, Callable[[], object]]]:
    """The tests of a file: the name of each, and a function that runs it."""
    for name, value in list(namespace.items()):
        if isinstance(value, type) and issubclass(value, _test_cases()):
            yield from _of_unittest(value)
        elif isinstance(value, type) and name.startswith("Test"):
            for method in _methods_of(value):
                yield _test(f"{name}::{method}", getattr(value, method), _in_class(value, method))
        elif name.startswith("test") and isinstance(value, types.FunctionType):
            yield _test(name, value, value)


def _of_unittest(cls: Any) -> Iterator[tuple[str, Callable[[], object]]]:
    """The test methods of a `TestCase`, each with its set-up."""
    unittest = importlib.import_module("unittest")
    set_up = functools.cache(cls.setUpClass)

    def run(method: str) -> None:
        try:
            set_up()
            cls(method).debug()
        except unittest.SkipTest:
            raise Skipped from None

    for method in unittest.defaultTestLoader.getTestCaseNames(cls):
        yield _test(f"{cls.__name__}::{method}", getattr(cls, method), functools.partial(run, method))


def _methods_of(cls: type) -> list[str]:
    """The tests of a class in order of definition, those of its bases first."""
    return list(dict.fromkeys(n for base in reversed(cls.__mro__) for n in vars(base) if n.startswith("test")))


def _in_class(cls: type, method: str) -> Callable[[], object]:
    def run() -> None:
        instance: Any = cls()
        getattr(instance, "setup_method", lambda *_: None)(*_one_argument(instance, method))
        try:
            getattr(instance, method)()
        finally:
            getattr(instance, "teardown_method", lambda *_: None)(*_one_argument(instance, method))

    return run


def _one_argument(instance: Any, method: str) -> list[object]:
    setup = getattr(type(instance), "setup_method", None)
    return [getattr(instance, method)] if setup is not None and setup.__code__.co_argcount > 1 else []


def _test(name: str, function: Any, run: Callable[[], object]) -> tuple[str, Callable[[], object]]:
    """The name of a test, and a function that runs it; raises UnsupportedTestError if it needs something only pytest has."""
    if not runs_whole(function):
        raise UnsupportedTestError(f"{name} is a generator or a coroutine")
    code = function.__code__
    required = code.co_argcount - len(function.__defaults__ or ())
    fixtures = [argument for argument in code.co_varnames[:required] if argument != "self"]
    if fixtures:
        raise UnsupportedTestError(
            f"{name} asks for fixtures: {', '.join(fixtures)}; FunctionTests(..., together=True) runs "
            "pytest itself, which has them"
        )
    return name, run


def _test_cases() -> Any:
    """`unittest.TestCase` if the tests use it, since few tests do and loading it takes time in each process."""
    return getattr(sys.modules.get("unittest"), "TestCase", ())


class _Raises:
    """The context manager of `pytest.raises`; it is also the value bound by `as`."""

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

    def __getattr__(self, name: str) -> NoReturn:
        raise UnsupportedTestError(f"the attribute {name!r} of what pytest.raises has caught")

    def match(self, pattern: str) -> bool:
        """Fail unless the exception's text matches."""
        assert re.search(pattern, str(self.value)), f"{pattern!r} does not match {str(self.value)!r}"
        return True


def _raises(expected: Any, *function: Any, match: str | None = None, **kwargs: Any) -> _Raises:
    classes = expected if isinstance(expected, tuple) else (expected,)
    if any(isinstance(one, Handle) for one in classes):
        raise UnsupportedTestError("a class of Python under a name that the program gives to it")
    if not all(isinstance(one, type) for one in classes):
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


class _Pytest(types.ModuleType):
    def __getattr__(self, name: str) -> NoReturn:
        raise UnsupportedTestError(f"pytest.{name}") if not name.startswith("__") else AttributeError(name)


def pytest_module() -> types.ModuleType:
    """A module with the part of pytest that tests can use."""
    module = _Pytest("pytest")
    module.__dict__.update(raises=_raises, approx=approx, skip=_skip, fail=_fail)
    return module
