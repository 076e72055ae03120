"""What the tests pass to the program besides plain data, and what the program may do with it.

The program may call functions and advance iterators. On mocks, and on objects whose class the test file or a supplied file
defines, it may also read and set public attributes, and use them in `with`, as containers and in loops if they support that.
Nothing else is allowed: an attribute such as `__globals__` would lead to the tester itself, and methods and the records of
mocks, on which tests rely, must not change.
"""

from __future__ import annotations

import importlib
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
    """The kind of proxy that the program gets for a value, for `tester_objects.class_of`; None if it can't be passed."""
    if is_of_the_tests(value):
        protocols = [name for name in PROTOCOLS if hasattr(type(value), f"__{name}__")]
        if not _is_mock(value):
            protocols += [name for name in OWN_PROTOCOLS if _has_own(type(value), f"__{name}__")]
        return "+".join(("callable" if callable(value) else "object", *protocols))
    if isinstance(value, types.CoroutineType):
        return "coroutine"
    if isinstance(value, types.GeneratorType):
        return "generator+iter+next"
    if isinstance(value, Iterator) and not isinstance(value, io.IOBase):
        return "iterator+iter+next"
    return "function" if callable(value) else None


def description_of(value: object) -> list[Wire]:
    """The description of a test file's function, for `tester_objects.function_of`, or the full name of an object's class."""
    if is_of_the_tests(value):
        return [f"{type(value).__module__}:{type(value).__qualname__}"]
    if not isinstance(value, types.FunctionType | types.MethodType):
        return []
    names: list[object] = [value.__name__, value.__qualname__, (value.__doc__ or "")[:_DOCUMENTATION] or None]
    code = getattr(value, "__code__", None)
    names.append(isinstance(code, types.CodeType) and bool(code.co_flags & inspect.CO_COROUTINE))
    try:
        return [_plain([*names, signature_parts(value)])]
    except Exception:  # noqa: BLE001 - a function without a signature, or tests that break `inspect`
        return [_plain([*names, None])]


def _plain(value: object) -> Wire:
    return Encoder(lambda _: None).encode(value)


def is_of_the_tests(value: object) -> bool:
    """Whether an object is a mock, or its class is defined by the test file or a supplied file."""
    module = type(value).__module__
    return module == "tests" or is_in_memory(module) or _is_mock(value)


def _has_own(cls: type, name: str) -> bool:
    method = getattr(cls, name)
    return method is not None and method is not getattr(object, name)


def _is_mock(value: object) -> bool:
    mock = sys.modules.get("unittest.mock")
    return mock is not None and isinstance(value, mock.NonCallableMock)


def operate(operation: str, value: object, args: list[Any], kwargs: dict[str, Any]) -> object:
    """Carry out an operation that the program requests on a value of the tests; UnsupportedUseError if it may not."""
    kind, *protocols = (kind_of(value) or "").split("+")
    if operation in protocols:
        return getattr(value, f"__{operation}__")(*args)
    if operation == "call" and kind in ("function", "callable"):
        return value(*args, **kwargs)  # type: ignore[operator]  # its kind says so
    if operation == "getattr" and kind in ("object", "callable"):
        return getattr(value, _public(value, args[0]))
    if operation in ("send", "throw", "close") and kind == "generator":
        return getattr(value, operation)(*args)
    if operation == "await" and kind == "coroutine":
        return _run_to_end(value)
    if operation == "vars" and kind in ("object", "callable"):
        return _held(value)
    if operation in ("setattr", "delattr") and kind in ("object", "callable"):
        _change(value, *args)
        return None
    raise TypeError(f"{operation!r} is not supported on a {kind}")


def _run_to_end(coroutine: Any) -> object:
    """Run a coroutine in an event loop of its own, within what may be a coroutine of the tests that has called the program."""
    asyncio: Any = importlib.import_module("asyncio")
    running = asyncio._get_running_loop()
    asyncio._set_running_loop(None)
    loop = asyncio.new_event_loop()
    try:
        return loop.run_until_complete(coroutine)
    finally:
        loop.close()
        asyncio._set_running_loop(running)


def _public(value: object, name: object) -> str:
    if type(name) is not str or name.startswith("_") or (_is_mock(value) and _checks(name)):
        raise UnsupportedUseError(f"the program can't have the attribute {name!r} of an object of the tests")
    return name


def _held(value: object) -> dict[str, object]:
    """What `vars` shows the program of an object."""
    if _is_mock(value) or not hasattr(value, "__dict__"):
        raise UnsupportedUseError(f"the program can't have the `__dict__` of a {type(value).__name__} of the tests")
    return {_public(value, name): content for name, content in vars(value).items()}


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
    """Whether an attribute is an object's own or new: not a function, and not one that the class holds for all instances."""
    if name in getattr(value, "__dict__", ()):
        return not callable(inspect.getattr_static(value, name))
    held = inspect.getattr_static(type(value), name, _ABSENT)
    return held is _ABSENT or hasattr(type(held), "__set__")


def _may_hold(value: object, new: object = None) -> bool:
    """Whether the program may set an attribute of an object of the tests: on a mock to plain data, on another callable never.

    In place of a mock's child mock the program could set an object that claims to have been called as expected.
    """
    return type(new) in _PLAIN if _is_mock(value) else not callable(value)


_ABSENT = object()
_PLAIN = frozenset(BUILTIN_TYPES.values())


def _checks(name: str) -> bool:
    """Whether an attribute of a mock is for the test only: what was called, and what it returns."""
    mocks = sys.modules["unittest.mock"].Mock, sys.modules["unittest.mock"].AsyncMock
    return name.startswith("assert") or any(hasattr(mock, name) for mock in mocks) or name in _MOCK_STATE


_MOCK_STATE = frozenset(
    ("called", "call_count", "call_args", "call_args_list", "mock_calls", "method_calls", "return_value", "side_effect")
)
