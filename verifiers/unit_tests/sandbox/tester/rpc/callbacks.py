"""What the tests give to the program besides plain data, and what the program may have done with it.

It may call functions, advance iterators, and of objects whose class the test file or a given file defines, or that are mocks,
read and set public attributes, and use them in `with`, as containers and in loops, if they can be. Nothing else: by way of an
attribute such as `__globals__` a program would reach the tester itself, and what judges, a method or what a mock has recorded,
stays as it is.
"""

from __future__ import annotations

import inspect
import io
import sys
import types
from collections.abc import Iterator
from typing import Any

from ...candidate.tester_objects import OWN_PROTOCOLS, PROTOCOLS, UnsupportedUseError
from ...protocol.codec import BUILTIN_TYPES, Encoder, Wire
from ...protocol.signatures import signature_parts
from ...protocol.source_files import is_in_memory

_DOCUMENTATION = 8000
"""Characters of a function's documentation that the program sees."""


def kind_of(value: object) -> str | None:
    """What the program is to see a value as, for `tester_objects.class_of`; None if it can't be given."""
    if is_of_the_tests(value):
        protocols = [name for name in PROTOCOLS if hasattr(type(value), f"__{name}__")]
        if not _is_mock(value):
            protocols += [name for name in OWN_PROTOCOLS if _has_own(type(value), f"__{name}__")]
        return "+".join(("callable" if callable(value) else "object", *protocols))
    if isinstance(value, Iterator) and not isinstance(value, io.IOBase):
        return "iterator"
    return "function" if callable(value) else None


def description_of(value: object) -> list[Wire]:
    """What the program sees of a function that a test file defines, for `tester_objects.function_of`; else nothing."""
    if not isinstance(value, types.FunctionType | types.MethodType):
        return []
    names = [value.__name__, value.__qualname__, (value.__doc__ or "")[:_DOCUMENTATION] or None]
    try:
        return [_plain([*names, signature_parts(value)])]
    except Exception:  # noqa: BLE001 - a function that does not say what it takes, or tests that break `inspect`
        return [_plain([*names, None])]


def _plain(value: object) -> Wire:
    return Encoder(lambda _: None).encode(value)


def is_of_the_tests(value: object) -> bool:
    """Whether an object's class is one that the test file or a given file defines, or it is a mock."""
    module = type(value).__module__
    return module == "tests" or is_in_memory(module) or _is_mock(value)


def _has_own(cls: type, name: str) -> bool:
    method = getattr(cls, name)
    return method is not None and method is not getattr(object, name)


def _is_mock(value: object) -> bool:
    mock = sys.modules.get("unittest.mock")
    return mock is not None and isinstance(value, mock.NonCallableMock)


def operate(operation: str, value: object, args: list[Any], kwargs: dict[str, Any]) -> object:
    """Do what the program asks to be done with a value that it was given.

    Raises:
        UnsupportedUseError: If it asks for an attribute that it may not have, or set.
        TypeError: If it asks for something that is not done with such a value.
    """
    kind, *protocols = (kind_of(value) or "").split("+")
    if operation in protocols:
        return getattr(value, f"__{operation}__")(*args)
    if operation == "call" and kind in ("function", "callable"):
        return value(*args, **kwargs)  # type: ignore[operator]  # its kind says so
    if operation == "next" and kind == "iterator":
        return next(value)  # type: ignore[call-overload]  # its kind says so
    if operation == "getattr" and kind in ("object", "callable"):
        return getattr(value, _public(value, args[0]))
    if operation in ("setattr", "delattr") and kind in ("object", "callable"):
        _change(value, *args)
        return None
    raise TypeError(f"{operation!r} is not supported on a {kind}")


def _public(value: object, name: object) -> str:
    if type(name) is not str or name.startswith("_") or (_is_mock(value) and _checks(name)):
        raise UnsupportedUseError(f"the program can't have the attribute {name!r} of an object of the tests")
    return name


def _change(value: object, name: object, *new: object) -> None:
    """Set a public attribute, or delete it where there is no new value."""
    name = _public(value, name)
    if not (_is_state(value, name) and _may_hold(value, *new)):
        raise UnsupportedUseError(f"the program can't change {name!r} of an object of the tests")
    if new:
        setattr(value, name, new[0])
    else:
        delattr(value, name)


def _is_state(value: object, name: str) -> bool:
    """Whether an attribute is an object's own, or a new one: no function, and nothing that its class holds for all."""
    if name in getattr(value, "__dict__", ()):
        return not callable(inspect.getattr_static(value, name))
    held = inspect.getattr_static(type(value), name, _ABSENT)
    return held is _ABSENT or hasattr(type(held), "__set__")


def _may_hold(value: object, new: object = None) -> bool:
    """Whether an object of the tests takes an attribute from the program: none that counts calls does, and a mock plain data.

    In place of a mock's own mock the program could put what says that it was called as expected.
    """
    return type(new) in _PLAIN if _is_mock(value) else not callable(value)


_ABSENT = object()
_PLAIN = frozenset(BUILTIN_TYPES.values())


def _checks(name: str) -> bool:
    """Whether an attribute of a mock is the test's own business: what was called, and what it returns."""
    mocks = sys.modules["unittest.mock"].Mock, sys.modules["unittest.mock"].AsyncMock
    return name.startswith("assert") or any(hasattr(mock, name) for mock in mocks) or name in _MOCK_STATE


_MOCK_STATE = frozenset(
    ("called", "call_count", "call_args", "call_args_list", "mock_calls", "method_calls", "return_value", "side_effect")
)
