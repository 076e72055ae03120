"""Functions, iterators and objects of the tests, as the program sees them: what it does with them is done by the tester."""

from __future__ import annotations

import functools
import types
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Protocol


class Caller(Protocol):
    """Who has the tester do something."""

    def call_back(self, operation: str, number: int, args: tuple[object, ...], kwargs: Mapping[str, object]) -> Any:
        """Do something with a thing of the tests, and return or raise what came of it."""
        ...


class Given:
    """A thing of the tests, by its number."""

    _caller: Caller
    _number: int

    def __init__(self, caller: Caller, number: int) -> None:
        self.__dict__.update(_caller=caller, _number=number)


class GivenFunction(Given):
    """A function."""

    def __call__(self, *args: object, **kwargs: object) -> object:
        """Have the tester call it."""
        return self._caller.call_back("call", self._number, args, kwargs)

    def __get__(self, instance: object, owner: type | None = None) -> object:
        """Be a method, where a test has put it into a class."""
        return self if instance is None else types.MethodType(self, instance)


class GivenIterator(Given):
    """An iterator."""

    def __iter__(self) -> Iterator[object]:
        return self

    def __next__(self) -> object:
        return self._caller.call_back("next", self._number, (), {})


class GivenObject(Given):
    """An object of a class that the tests define: its public attributes can be read."""

    def __getattr__(self, name: str) -> object:
        if name.startswith("_"):
            raise AttributeError(f"an object of the tests has no attribute {name!r} for the program")
        return self._caller.call_back("getattr", self._number, (name,), {})

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"can't set {name!r} of an object of the tests")


class GivenCallable(GivenFunction, GivenObject):
    """Such an object that can be called."""

    def __get__(self, instance: object, owner: type | None = None) -> object:
        """Be no method: only functions are."""
        return self


_KINDS: dict[str, type[Given]] = {
    "function": GivenFunction,
    "iterator": GivenIterator,
    "object": GivenObject,
    "callable": GivenCallable,
}
PROTOCOLS = ("enter", "exit", "len", "iter", "contains", "getitem", "setitem", "delitem")
"""Special methods, without their underscores, that objects of the tests have for the program too."""


@functools.cache
def class_of(kind: str) -> type[Given]:
    """The class of a kind of thing: its name, and after a `+` each the special methods that it has."""
    name, *protocols = kind.split("+")
    base = _KINDS[name]
    return type(base.__name__, (base,), {f"__{each}__": _special(each) for each in protocols}) if protocols else base


def _special(name: str) -> Callable[..., object]:
    def method(self: Given, *args: object) -> object:
        plain = tuple(arg for arg in args if not isinstance(arg, types.TracebackType))
        padding = (None,) * (len(args) - len(plain))
        return self._caller.call_back(name, self._number, plain + padding, {})

    return method
