"""The module that test files import as `pytest`: the subset of it that needs neither files nor the program's process.

`raises`, `approx`, `fail`, `skip`, `xfail`, `fixture`, `param`, `importorskip` of standard modules, and the marks
`parametrize`, `skip`, `skipif`, `xfail`, `usefixtures` and `asyncio`; any other mark is only a label. Anything else raises
`UnsupportedTestError`; nothing is silently ignored.
"""

from __future__ import annotations

import contextlib
import dataclasses
import importlib
import io
import re
import sys
import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib.util import find_spec
from typing import Any, Generic, NamedTuple, NoReturn, TypeVar

from ..comparison import approx as approx
from ..outcomes import Failed, Skipped, UnexpectedExceptionError, UnsupportedTestError
from ..rpc.exceptions import STANDS_FOR

_Error = TypeVar("_Error", bound=BaseException)
_Text = TypeVar("_Text")


def fail(reason: str = "", pytrace: bool = True) -> NoReturn:
    """Fail the test."""
    raise Failed(reason)


fail.Exception = Failed  # type: ignore[attr-defined]  # as pytest names it


def skip(reason: str = "", *, allow_module_level: bool = False) -> NoReturn:
    """Skip the test."""
    raise Skipped(reason)


skip.Exception = Skipped  # type: ignore[attr-defined]


def xfail(reason: str = "") -> NoReturn:
    """Skip the test."""
    raise Skipped(reason)


def importorskip(modname: str, minversion: str | None = None, reason: str | None = None) -> types.ModuleType:
    """Import a module of the standard library or of the program, or a file supplied with the problem."""
    if find_spec(modname.partition(".")[0]) is None:
        raise UnsupportedTestError(f"pytest.importorskip({modname!r}): tests have only the standard library")
    return importlib.import_module(modname)


class ExceptionInfo(Generic[_Error]):
    """The exception that `raises` caught."""

    value: _Error
    """The exception itself."""

    @property
    def type(self) -> type[_Error]:
        """The exception's class."""
        return type(self.value)

    def __getattr__(self, name: str) -> NoReturn:
        if name == "value":
            raise AttributeError("the exception is there only after the block")
        raise UnsupportedTestError(f"ExceptionInfo.{name} is not supported")

    @property
    def typename(self) -> str:
        """The name of the exception's class."""
        return type(self.value).__name__

    def match(self, regexp: str | re.Pattern[str]) -> bool:
        """Raise UnexpectedExceptionError unless the exception's text, to which its notes belong, contains the pattern."""
        text = "\n".join([str(self.value), *getattr(self.value, "__notes__", ())])
        if not re.search(regexp, text):
            raise UnexpectedExceptionError(f"pattern {regexp!r} not found in {text!r}")
        return True

    def __repr__(self) -> str:
        return (
            f"<ExceptionInfo {self.value!r}>"
            if "value" in self.__dict__
            else "<ExceptionInfo for raises contextmanager>"
        )


def _require_exception_classes(expected: object) -> None:
    """Raise TypeError unless this is an exception class, or a tuple of them."""
    if isinstance(expected, tuple):
        for cls in expected:
            _require_exception_classes(cls)
    elif not (issubclass(type(expected), type) and issubclass(expected, BaseException)):  # type: ignore[arg-type]  # it is a class
        raise TypeError(f"expected an exception class, got {type(expected).__name__}")


class _Raises(Generic[_Error]):
    def __init__(
        self,
        expected: type[_Error] | tuple[type[_Error], ...],
        match: str | re.Pattern[str] | None = None,
        check: Callable[[_Error], object] | None = None,
    ) -> None:
        _require_exception_classes(expected)
        self._expected = expected
        self._match = match
        self._check = check
        self._info: ExceptionInfo[_Error] = ExceptionInfo()

    def __enter__(self) -> ExceptionInfo[_Error]:
        return self._info

    def __exit__(self, error_type: type[BaseException] | None, error: BaseException | None, trace: object) -> bool:
        if error is None:
            raise Failed(f"DID NOT RAISE {self._expected!r}")
        error = error.__dict__.get(STANDS_FOR, error)
        if not isinstance(error, self._expected):
            return False
        self._info.value = error
        if self._match is not None:
            self._info.match(self._match)
        if self._check is not None and not self._check(error):
            raise UnexpectedExceptionError(f"the check of pytest.raises did not return True for {error!r}")
        return True


def raises(
    expected_exception: type[_Error] | tuple[type[_Error], ...] | None = None,
    func: Callable[..., object] | None = None,
    *args: Any,
    **kwargs: Any,
) -> Any:
    """Expect an exception in a `with` block, or from calling a function with the given arguments."""
    if func is None and not args:
        if expected_exception is None and not {"match", "check"} & kwargs.keys():
            raise ValueError("pytest.raises needs the class of the exception, a pattern for its text, or a check")
        return _Raises(expected_exception or BaseException, **kwargs)
    if not callable(func):
        raise TypeError(f"pytest.raises got a {type(func).__name__} in place of a function")
    with _Raises(expected_exception or ()) as info:
        func(*args, **kwargs)
    return info


raises.Exception = Failed  # type: ignore[attr-defined]


@dataclasses.dataclass(frozen=True)
class Mark:
    """A mark with its arguments; applying it to a function or class stores it there."""

    name: str
    args: tuple[Any, ...] = ()
    kwargs: Mapping[str, Any] = dataclasses.field(default_factory=dict)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Apply the mark to a function or class, or add arguments to it."""
        target: Any = getattr(args[0], "__func__", args[0]) if len(args) == 1 and not kwargs else None
        if issubclass(type(target), types.FunctionType | type):
            target.pytestmark = [*target.__dict__.get("pytestmark", ()), self]
            return args[0]
        return Mark(self.name, self.args + args, {**self.kwargs, **kwargs})


class _Marks:
    def __getattr__(self, name: str) -> Mark:
        return Mark(name)


mark = _Marks()


@dataclasses.dataclass(frozen=True)
class Parameters:
    """One set of arguments of `parametrize`."""

    values: tuple[Any, ...]
    marks: tuple[Mark, ...]
    id: str | None


def param(*values: Any, marks: Mark | Sequence[Mark] = (), id: str | None = None) -> Parameters:
    """Name or mark one set of arguments of `parametrize`."""
    return Parameters(values, (marks,) if isinstance(marks, Mark) else tuple(marks), id)


@dataclasses.dataclass(frozen=True)
class Fixture:
    """A fixture's function and how it is used."""

    function: Callable[..., Any]
    scope: str = "function"
    params: tuple[Any, ...] | None = None
    autouse: bool = False
    name: str | None = None
    ids: Any = None

    def __call__(self, *args: object) -> NoReturn:
        """Refuse: fixtures are not functions to call."""
        raise UnsupportedTestError(f"fixture {self.function.__name__!r} called directly; ask for it as a parameter")


def fixture(
    function: Callable[..., Any] | None = None,
    *,
    scope: str = "function",
    params: Sequence[Any] | None = None,
    autouse: bool = False,
    ids: Any = None,
    name: str | None = None,
) -> Any:
    """Make a function a fixture."""

    def decorate(decorated: Callable[..., Any]) -> Fixture:
        return Fixture(decorated, scope, None if params is None else tuple(params), autouse, name, ids)

    return decorate if function is None else decorate(function)


class CaptureResult(NamedTuple):
    """Captured output."""

    out: str
    err: str


class CaptureFixture(Generic[_Text]):
    """The value of the fixture `capsys`."""

    def __init__(self, out: io.StringIO, err: io.StringIO) -> None:
        self._streams = out, err

    @contextlib.contextmanager
    def disabled(self) -> Iterator[None]:
        """Suspend capturing in the block."""
        with contextlib.redirect_stdout(sys.__stdout__), contextlib.redirect_stderr(sys.__stderr__):
            yield

    def readouterr(self) -> CaptureResult:
        """Return what was written to standard output and error since the last call."""
        texts = [stream.getvalue() for stream in self._streams]
        for stream in self._streams:
            stream.seek(0)
            stream.truncate()
        return CaptureResult(*texts)


class FixtureRequest:
    """The value of `request`: what a fixture, or a test, can ask about the test."""

    def __init__(self, *, parameter: object, **attributes: object) -> None:
        """`parameter` is this class if the fixture has none."""
        self.__dict__.update(attributes)
        if parameter is not FixtureRequest:
            self.param = parameter

    def __getattr__(self, name: str) -> Any:
        if name == "param":
            raise AttributeError("the fixture has no parameters")
        raise UnsupportedTestError(f"request.{name} is not supported")


def __getattr__(name: str) -> NoReturn:
    if name.startswith("__"):
        raise AttributeError(name)
    raise UnsupportedTestError(f"pytest.{name} is not supported; docs/sandbox_tests.md lists what is")
