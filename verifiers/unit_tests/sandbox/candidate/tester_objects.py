"""Functions, iterators and objects of the tests, as the program sees them: operations on them run in the tester."""

from __future__ import annotations

import functools
import types
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn, Protocol

from ..protocol.signatures import annotations_of_parts, signature_of_parts


class Caller(Protocol):
    """Sends operations to the tester."""

    def call_back(self, operation: str, number: int, args: tuple[object, ...], kwargs: Mapping[str, object]) -> Any:
        """Run an operation on an object of the tests, and return its result or raise its exception."""
        ...


class UnsupportedUseError(TypeError, AttributeError):
    """The program uses an object of the tests in an unsupported way."""


class TesterProxy:
    """An object of the tests, by its number."""

    _caller: Caller
    _number: int

    def __init__(self, caller: Caller, number: int) -> None:
        object.__setattr__(self, "_caller", caller)
        object.__setattr__(self, "_number", number)

    def __copy__(self) -> TesterProxy:
        return type(self)(self._caller, self._number)

    def __deepcopy__(self, memo: object) -> NoReturn:
        raise UnsupportedUseError("deepcopy is called with an object of the tests")

    def __mro_entries__(self, bases: tuple[object, ...]) -> NoReturn:
        raise UnsupportedUseError("a class derives from an object that the tests put in place of a class")

    def __instancecheck__(self, value: object) -> NoReturn:
        raise UnsupportedUseError("isinstance is called with an object that the tests put in place of a class")

    __subclasscheck__ = __instancecheck__


class TesterFunction(TesterProxy):
    """A function of the tests."""

    def __call__(self, /, *args: object, **kwargs: object) -> object:
        """Have the tester call it."""
        return self._caller.call_back("call", self._number, args, kwargs)

    def __get__(self, instance: object, owner: type | None = None) -> object:
        """Bind as a method, where a test has put the function into a class."""
        return self if instance is None else types.MethodType(self, instance)


class TesterGenerator(TesterProxy):
    """A generator of the tests."""

    def send(self, value: object) -> object:
        """Resume it with a value."""
        return self._caller.call_back("send", self._number, (value,), {})

    def throw(self, error: object, *args: object) -> object:
        """Resume it with an exception."""
        return self._caller.call_back("throw", self._number, (error,), {})

    def close(self) -> object:
        """End it."""
        return self._caller.call_back("close", self._number, (), {})


class TesterObject(TesterProxy):
    """An object of a class that the tests define: its public attributes can be read and set."""

    @property
    def __dict__(self) -> object:  # type: ignore[override]  # what `vars` reads
        """The public attributes that the object holds, each time in a new dict."""
        return self._caller.call_back("vars", self._number, (), {})

    def __getattr__(self, name: str) -> object:
        return self._ask("getattr", name)

    def __setattr__(self, name: str, value: object) -> None:
        self._ask("setattr", name, value)

    def __delattr__(self, name: str) -> None:
        self._ask("delattr", name)

    def _ask(self, operation: str, name: str, *args: object) -> object:
        if name.startswith("_"):
            raise UnsupportedUseError(f"an object of the tests has no attribute {name!r} for the program")
        return self._caller.call_back(operation, self._number, (name, *args), {})


class TesterCallable(TesterFunction, TesterObject):
    """A callable object of a class that the tests define."""

    def __get__(self, instance: object, owner: type | None = None) -> object:
        """Don't bind: only functions are methods."""
        return self


_KINDS: dict[str, type[TesterProxy]] = {
    "function": TesterFunction,
    "iterator": TesterProxy,
    "generator": TesterGenerator,
    "object": TesterObject,
    "callable": TesterCallable,
}
PROTOCOLS = ("enter", "exit", "bool", "len", "iter", "next", "contains", "getitem", "setitem", "delitem")
"""Special methods, without underscores, of objects of the tests that the program may use."""
OWN_PROTOCOLS = ("eq", "ne", "lt", "le", "gt", "ge", "hash", "str", "repr")
"""Special methods that every object has, and that the program may use where the object's class defines its own."""


@functools.cache
def class_of(kind: str, full_name: str) -> type[TesterProxy]:
    """The class for a kind, which consists of a name and the special methods, each after a `+`.

    `full_name` is that of the object's class: its module, a colon, and its qualified name; empty for the name of the kind.
    """
    name, *protocols = kind.split("+")
    base = _KINDS[name]
    content: dict[str, object] = {f"__{protocol}__": _special(protocol) for protocol in protocols}
    module, _, qualified_name = full_name.rpartition(":")
    if module:
        content |= {"__module__": module, "__qualname__": qualified_name}
    return type(qualified_name.rpartition(".")[2] or base.__name__, (base,), content)


def _special(name: str) -> Callable[..., object]:
    def method(self: TesterProxy, *args: object) -> object:
        plain = tuple(arg for arg in args if not isinstance(arg, types.TracebackType))
        padding = (None,) * (len(args) - len(plain))
        return self._caller.call_back(name, self._number, plain + padding, {})

    return method


def function_of(caller: Caller, number: int, description: Sequence[Any]) -> Callable[..., object]:
    """Make a stand-in for a function of the tests, which `caller` calls there by its number.

    The description is its name, its qualified name, its documentation, whether it makes coroutines, and the parts of its
    signature if they are plain data.
    """
    name, qualified_name, documentation, is_async, parts = description

    def call(*args: object, **kwargs: object) -> object:
        return caller.call_back("call", number, args, kwargs)

    async def call_async(*args: object, **kwargs: object) -> object:
        return await caller.call_back("call", number, args, kwargs)

    proxy: Any = call_async if is_async else call
    proxy.__name__, proxy.__qualname__, proxy.__doc__ = name, qualified_name, documentation
    proxy.__module__ = "tests"
    if parts is not None:
        proxy.__signature__ = signature_of_parts(*parts)
        proxy.__annotations__ = annotations_of_parts(*parts)
    made: Callable[..., object] = proxy
    return made


async def coroutine_of(caller: Caller, number: int) -> object:
    """Make a stand-in for a coroutine of the tests, which runs there to its end when it is awaited."""
    return caller.call_back("await", number, (), {})


def exception_class_of(name: str, number: int, bases: Sequence[type[BaseException]]) -> type[BaseException]:
    """Make a stand-in for the exception class of the tests with this number."""
    return type(name, tuple(dict.fromkeys(bases)), {"__module__": "tests", "__str__": _text, CLASS_NUMBER: number})


def _text(error: BaseException) -> str:
    return error.__dict__.get(_TEXT) or BaseException.__str__(error)


CLASS_NUMBER = "__number_of_tests__"
"""The attribute for the number of a stand-in for an exception class of the tests."""
_TEXT = "_text"
"""The attribute for the text of a copied exception, if its class defines another than that of its arguments."""


def copied_exception(cls: type[BaseException], text: str, args: tuple[object, ...]) -> BaseException:
    """Make an exception with these arguments and this text; its class may have a constructor that takes others."""
    try:
        copy = cls(*args)
    except TypeError:
        copy = cls.__new__(cls)
        copy.args = args
    if cls.__str__ is _text and str(copy) != text:
        copy.__dict__[_TEXT] = text
    return copy
