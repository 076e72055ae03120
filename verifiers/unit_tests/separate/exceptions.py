"""Exceptions of the program: its process describes them, and the tests' process rebuilds them with class and content."""

from __future__ import annotations

import builtins
import contextlib
import sys
from collections.abc import Callable, Collection, Mapping
from typing import Any, NoReturn

from verifiers.sandbox.programs.exceptions import is_forbidden, location, message_of
from verifiers.sandbox.programs.source_files import SourceFiles

from . import packages
from .values import Wire

MAX_TEXT = 2000
"""Maximum number of characters of an exception's text that are sent."""


CHAINED = ("__cause__", "__context__", "__suppress_context__")
"""Attributes in which Python records the origin of an exception, in the order in which they must be set."""


class UnsupportedUseError(TypeError, AttributeError):
    """The program uses an object of the tests in a way that is not supported."""


def describe(error: BaseException, files: Collection[str]) -> dict[str, Any]:
    """Describe an exception for a report: its type, text, and the line of the program's file that raised it."""
    try:
        return _describe(error, files)
    except Exception as second:  # noqa: BLE001 - recorded: an exception that raises, or recurses, when it is inspected
        return _describe(RuntimeError(f"<its description raised {type(second).__name__}>"), files)


def _describe(error: BaseException, files: Collection[str]) -> dict[str, Any]:
    file, line = location(error, files)
    return {
        "type": type(error).__name__,
        "text": message_of(error)[:MAX_TEXT],
        "file": file,
        "line": line,
        "bases": [base.__name__ for base in type(error).__mro__ if is_builtin(base)],
        "errno": error.errno if isinstance(error, OSError) and type(error.errno) is int else None,
        "forbidden": is_forbidden(error),
        "unsupported": isinstance(error, UnsupportedUseError),
    }


def is_builtin(cls: type) -> bool:
    """Whether a class is one of Python's own exception classes."""
    return issubclass(cls, BaseException) and vars(builtins).get(cls.__name__) is cls


# This bypasses anything that a class defines to hide its arguments.
args_of: Callable[[BaseException], tuple[object, ...]] = BaseException.__dict__["args"].__get__


def describe_class(cls: type[BaseException], number_of: Callable[[object], int]) -> Wire:
    """Describe an exception class: a builtin class by its name, any other by its handle's number, name and bases."""
    if is_builtin(cls):
        return cls.__name__
    bases = [describe_class(base, number_of) for base in cls.__bases__ if issubclass(base, BaseException)]
    return ["xc", number_of(cls), cls.__name__, bases, [str(cls.__module__), cls.__qualname__]]


class Stopped(Exception):
    """Replaces a `StopIteration` that the program is not allowed to raise, since it would end a loop of the tests."""


class Exited(BaseException):
    """Replaces a `GeneratorExit` that the program is not allowed to raise, for the same reason as `Stopped`."""


_REPLACED: dict[type, type[BaseException]] = {
    StopIteration: Stopped,
    StopAsyncIteration: Stopped,
    GeneratorExit: Exited,
}


class _OfProgram(type):
    """The metaclass of stand-ins for the program's classes: only the program can make instances and knows their attributes."""

    def __getattr__(cls, name: str) -> NoReturn:
        if not name.startswith("__"):
            cls.__refuse__(f"the attribute {name!r} of the program's class {cls.__name__}")
        raise AttributeError(name)

    def __call__(cls, *args: object, **kwargs: object) -> NoReturn:
        cls.__refuse__(f"the tests make an exception of the program's class {cls.__name__}")


class ExceptionClasses:
    """The exception classes that stand in for the program's classes in the tests."""

    def __init__(
        self, attribute_of: Callable[[int, str], Any], refuse: Callable[[str], NoReturn], own: Mapping[str, Any]
    ) -> None:
        """Begin without classes; `attribute_of` asks the program for an attribute, and `own` holds the tests' names."""
        self._attribute_of = attribute_of
        self._refuse = refuse
        self._own = own
        self._made: dict[int, type[BaseException]] = {}
        self._numbers: dict[type, int] = {}

    def number_of(self, cls: object) -> int | None:
        """The number of the handle for which a class was made here; None for any other class."""
        return self._numbers.get(cls) if isinstance(cls, type) else None

    def named(self, wire: Wire) -> type[BaseException]:
        """The class that the program gives; raises ValueError for a builtin class, which would catch the tests' exceptions."""
        if is_builtin(cls := self.class_of(wire)):
            raise ValueError(f"{cls.__name__} is sent as an object of the program")
        return cls

    def class_of(self, wire: Wire) -> type[BaseException]:
        """The class that a description describes; an invalid description raises an unspecified exception."""
        if type(wire) is str:
            cls = vars(builtins).get(wire)
            if not (isinstance(cls, type) and issubclass(cls, BaseException)):
                raise ValueError(f"not an exception class: {wire!r}"[:100])
            return cls
        _, number, name, bases, place = wire
        if type(number) is not int or type(name) is not str or len(name) > MAX_TEXT:
            raise TypeError("a class is described by a number and a name")
        known = self._made.get(number) or _loaded(place) or self._of_prefix(name)
        if known is None:
            known = self._made[number] = self._make(number, name, [self.class_of(base) for base in bases])
            self._numbers[known] = number
        return known

    def _of_prefix(self, name: str) -> type[BaseException] | None:
        """The tests' own copy of an exception class that the prefix defines."""
        found = self._own.get(name)
        is_own = isinstance(found, type) and issubclass(found, BaseException) and found.__module__ == "tests"
        return found if is_own else None

    def _make(self, number: int, name: str, bases: list[type[BaseException]]) -> type[BaseException]:
        harmless = dict.fromkeys(_REPLACED.get(base, base) for base in bases)

        def attribute(error: BaseException, name: str) -> Any:
            return self._ask(number_of_exception(error), name)

        content = {"__module__": "solution", "__str__": _text, "__getattr__": attribute, "__refuse__": self._refuse}
        return _OfProgram(name, tuple(harmless) or (Exception,), content)  # type: ignore[return-value]  # its bases are

    def _ask(self, number: int | None, name: str) -> Any:
        if number is None or name.startswith("__"):
            raise AttributeError(f"no attribute {name!r}")
        return self._attribute_of(number, name)

    def rebuild(self, wire: list[Wire], content: Any, *, stops: bool = False) -> BaseException:
        """Rebuild an exception of the program.

        Args:
            wire: The exception's class, the number of its handle (or None), and its text.
            content: The exception's arguments, and its attributes by name.
            stops: Whether a `StopIteration` is allowed here.
        """
        described, number, text = wire
        args, attributes = content
        cls = self.class_of(described)
        is_pythons = is_builtin(cls)
        if not stops:
            cls = _REPLACED.get(cls, cls)
        try:
            error = cls.__new__(cls, *args)
        except Exception:  # noqa: BLE001 - the program has changed its arguments
            error = cls.__new__(cls)
        if is_pythons:
            # A builtin exception may keep what its constructor is given, unless the program has changed its arguments.
            with contextlib.suppress(Exception):
                error = cls(*args)
        error.args = args
        error.__dict__ |= {name: value for name, value in attributes.items() if not name.startswith("__")}
        _chain(error, attributes)
        error.__dict__ |= {_TEXT: str(text), _NUMBER: number if type(number) is int else None}
        return error


_JUDGING = {"unittest", "doctest"}
"""Modules that handle their own exceptions, such as those that skip a test."""
_TEXT, _NUMBER = "__text__", "__number__"


def _chain(error: BaseException, attributes: Mapping[str, Any]) -> None:
    """Give an exception its cause, its context and its notes."""
    for name in CHAINED:
        if name in attributes:
            setattr(error, name, attributes[name])  # a TypeError if the value is not an exception
    if "__notes__" in attributes:
        error.__dict__["__notes__"] = attributes["__notes__"]


def number_of_exception(error: BaseException) -> int | None:
    """The number of the handle of one of the program's exceptions; None if it has no handle."""
    number: int | None = error.__dict__.get(_NUMBER)
    return number


def _text(error: BaseException) -> str:
    text: str | None = error.__dict__.get(_TEXT)
    return BaseException.__str__(error) if text is None else text


def _loaded(place: Wire) -> type[BaseException] | None:
    """An exception class of the standard library or of the problem's files, if this process has loaded it too."""
    module, name = place
    root, loaded = module.partition(".")[0], sys.modules.get(module)
    is_file = isinstance(getattr(getattr(loaded, "__spec__", None), "loader", None), SourceFiles)
    if (
        not (is_file or packages.is_package(root) or root in sys.stdlib_module_names - _JUDGING)
        or name.startswith("_")
        or "._" in name
    ):
        return None
    found: Any = loaded
    for part in name.split("."):
        found = getattr(found, part, None)
    if not (isinstance(found, type) and issubclass(found, Exception)):
        return None
    return None if any(_root_of(base) in _JUDGING for base in found.__mro__) else found


def _root_of(cls: type) -> str:
    """The top-level package of a class's module."""
    return packages.root_of(cls.__module__)
