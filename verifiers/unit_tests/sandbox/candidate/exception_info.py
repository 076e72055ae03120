"""Descriptions of the candidate's exceptions in plain data."""

from __future__ import annotations

import builtins
from collections.abc import Callable, Collection
from typing import Any

from verifiers.sandbox.programs.exceptions import cause, context, is_forbidden, location, message_of

from ..protocol.codec import SPECIAL, Wire
from ..protocol.object_types import FORWARDED
from .tester_objects import CLASS_NUMBER, UnsupportedUseError

_TEXT = 2000
"""Characters of an exception's text that are sent."""


def describe(error: BaseException, files: Collection[str]) -> dict[str, Any]:
    """Describe an exception in plain data: its type, its builtin bases, its message, and the program's file that raised it."""
    try:
        return _describe(error, files)
    except Exception as second:  # noqa: BLE001 - recorded: an exception that raises, or recurses, when it is inspected
        return _describe(RuntimeError(f"<its description raised {type(second).__name__}>"), files)


def _describe(error: BaseException, files: Collection[str]) -> dict[str, Any]:
    message = message_of(error)
    file, line = location(error, files)
    return {
        "type": type(error).__name__,
        "class": describe_class(type(error)),
        "bases": [cls.__name__ for cls in type(error).__mro__ if _is_builtin(cls)],
        "message": message[:_TEXT],
        "errno": error.errno if isinstance(error, OSError) and type(error.errno) is int else None,
        "forbidden": is_forbidden(error),
        "unsupported": isinstance(error, UnsupportedUseError | BaseExceptionGroup),
        "file": file,
        "line": line,
    }


def describe_class(cls: type[BaseException]) -> Wire:
    """Describe an exception class: a builtin by its name, one of the tests by its number.

    Others are described by name, bases, path, and those of their special methods that tests can use.
    """
    if CLASS_NUMBER in vars(cls):
        return vars(cls)[CLASS_NUMBER]
    if _is_builtin(cls):
        return cls.__name__
    bases = [describe_class(base) for base in cls.__bases__ if issubclass(base, BaseException)]
    special = [name for name in FORWARDED if vars(cls).get(name) is not None]
    return [cls.__name__, bases, f"{cls.__module__}.{cls.__qualname__}", special]


def has_members(cls: type[BaseException]) -> bool:
    """Whether a class of exceptions has attributes besides those of the builtin classes that it derives from."""
    own = [base for base in cls.__mro__ if not _is_builtin(base)]
    special = ("__getattr__", *FORWARDED)
    return any(name in special or not name.startswith("__") for base in own for name in vars(base))


def is_plain_exception(cls: type) -> bool:
    """Whether a class is one of exceptions, not of groups, without special methods other than those that are forwarded."""
    if not issubclass(cls, BaseException) or issubclass(cls, BaseExceptionGroup):
        return False
    own = {name for base in cls.__mro__ if not _is_builtin(base) for name in vars(base)}
    return own.isdisjoint(SPECIAL.difference(FORWARDED, ("__getattr__", "__setattr__")))


_FIELDS = {
    OSError: ("errno", "strerror", "filename", "filename2"),
    ImportError: ("name", "path"),
    NameError: ("name",),
    AttributeError: ("name",),
}


def fields_of(error: BaseException) -> dict[str, object]:
    """What a builtin class keeps beside the attributes in `__dict__`, by name."""
    # By the builtin class, past properties by which another may hide them.
    own = [(cls, name) for cls, names in _FIELDS.items() if isinstance(error, cls) for name in names]
    return {name: value for cls, name in own if isinstance(value := vars(cls)[name].__get__(error), str | int)}


def _is_builtin(cls: type) -> bool:
    # Not by its module, which a class can set to any text.
    return getattr(builtins, cls.__name__, None) is cls


_suppresses: Callable[[BaseException], bool] = BaseException.__dict__["__suppress_context__"].__get__


def links(error: BaseException) -> tuple[BaseException | None, BaseException | None, bool]:
    """The cause of an exception, its context unless that is the cause, and whether it hides the context."""
    first, second = cause(error), context(error)
    return first, None if second is first else second, _suppresses(error)
