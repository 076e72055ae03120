"""Functions, iterators and objects of the tests, as the program sees them: what it does with them is done by the tester."""

from __future__ import annotations

import functools
import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NoReturn, Protocol

from ..protocol.signatures import annotations_of_parts, signature_of_parts


class Caller(Protocol):
    """Who has the tester do something."""

    def call_back(self, operation: str, number: int, args: tuple[object, ...], kwargs: Mapping[str, object]) -> Any:
        """Do something with a thing of the tests, and return or raise what came of it."""
        ...


class UnsupportedUseError(TypeError, AttributeError):
    """The program does with a thing of the tests what is not done with it from here."""


class TesterProxy:
    """A thing of the tests, by its number."""

    _caller: Caller
    _number: int

    def __init__(self, caller: Caller, number: int) -> None:
        self.__dict__.update(_caller=caller, _number=number)

    def __mro_entries__(self, bases: tuple[object, ...]) -> NoReturn:
        raise UnsupportedUseError("a class derives from what the tests put in a class's place")

    def __instancecheck__(self, value: object) -> NoReturn:
        raise UnsupportedUseError("isinstance asks for what the tests put in a class's place")

    __subclasscheck__ = __instancecheck__


class TesterFunction(TesterProxy):
    """A function."""

    def __call__(self, /, *args: object, **kwargs: object) -> object:
        """Have the tester call it."""
        return self._caller.call_back("call", self._number, args, kwargs)

    def __get__(self, instance: object, owner: type | None = None) -> object:
        """Be a method, where a test has put it into a class."""
        return self if instance is None else types.MethodType(self, instance)


class TesterIterator(TesterProxy):
    """An iterator."""

    def __iter__(self) -> Iterator[object]:
        return self

    def __next__(self) -> object:
        return self._caller.call_back("next", self._number, (), {})


class TesterObject(TesterProxy):
    """An object of a class that the tests define: its public attributes can be read and set."""

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
    """Such an object that can be called."""

    def __get__(self, instance: object, owner: type | None = None) -> object:
        """Be no method: only functions are."""
        return self


_KINDS: dict[str, type[TesterProxy]] = {
    "function": TesterFunction,
    "iterator": TesterIterator,
    "object": TesterObject,
    "callable": TesterCallable,
}
PROTOCOLS = ("enter", "exit", "len", "iter", "next", "contains", "getitem", "setitem", "delitem")
"""Special methods, without their underscores, that objects of the tests have for the program too, and"""
OWN_PROTOCOLS = ("eq", "ne", "lt", "le", "gt", "ge", "hash", "str", "repr")
"""those that every object has, where the class defines its own."""


@functools.cache
def class_of(kind: str) -> type[TesterProxy]:
    """The class of a kind of thing: its name, and after a `+` each the special methods that it has."""
    name, *protocols = kind.split("+")
    base = _KINDS[name]
    return (
        type(base.__name__, (base,), {f"__{protocol}__": _special(protocol) for protocol in protocols})
        if protocols
        else base
    )


def _special(name: str) -> Callable[..., object]:
    def method(self: TesterProxy, *args: object) -> object:
        plain = tuple(arg for arg in args if not isinstance(arg, types.TracebackType))
        padding = (None,) * (len(args) - len(plain))
        return self._caller.call_back(name, self._number, plain + padding, {})

    return method


def function_of(caller: Caller, number: int, description: Sequence[Any]) -> Callable[..., object]:
    """Make a function that stands for one that a test file defines.

    Args:
        caller: Has the tester call it.
        number: Its number.
        description: Its name, its qualified name, its documentation, and the parts of its signature if they are plain data.
    """
    name, qualified_name, documentation, parts = description

    def given(*args: object, **kwargs: object) -> object:
        return caller.call_back("call", number, args, kwargs)

    given.__name__, given.__qualname__, given.__doc__, given.__module__ = name, qualified_name, documentation, "tests"
    if parts is not None:
        given.__signature__ = signature_of_parts(*parts)  # type: ignore[attr-defined]  # what `inspect` looks for
        given.__annotations__ = annotations_of_parts(*parts)
    return given
