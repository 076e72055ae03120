"""Instances of classes that a problem's prefix defines; they are sent as the name of the class and the attributes.

The program's process and the tests' process both run the prefix, and each rebuilds instances with its own copy of the class. So
a program that redefines `ListNode` deceives only itself: the tests' helpers and comparisons see the tests' class.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping
from typing import Any

from . import values
from .values import Decoder, Encoder, Kind, Wire

OBJECT = "o"
"""The tag of such instances."""


class PrefixObjects:
    """Encodes and decodes instances of the prefix's classes in one of the two processes."""

    def __init__(self, class_of: Callable[[str], Any]) -> None:
        """Begin without classes; `class_of` gives this process's class with a name."""
        self.names: frozenset[str] = frozenset()
        """The names of the classes; both processes must know them before the first instance is sent."""
        self._class_of = class_of
        self._kind = Kind(OBJECT, _content, self._make, _fill, lambda value: type(value).__name__)
        values.add_objects(self._kind)

    def encode(self, encoder: Encoder, value: Any) -> Wire:
        """Encode an instance; None if its class does not come from the prefix, or derives from a class of the interpreter."""
        cls = type(value)
        if cls.__name__ not in self.names:
            return None
        return encoder.deferred(value, self._kind) if _is_plain(cls) else None

    def decode(self, decoder: Decoder, wire: Wire) -> Any:
        """Decode an instance; raises ValueError if the data does not describe one."""
        if wire[0] != OBJECT:
            raise ValueError(f"unknown tag {wire[0]!r}"[:100])
        return decoder.deferred(wire, self._kind)

    def _make(self, name: Wire) -> Any:
        return object.__new__(self._own_class(name))

    def _own_class(self, name: object) -> Any:
        if type(name) is not str or name not in self.names:
            raise ValueError(f"the prefix defines no class {name!r}"[:100])
        return self._class_of(name)


def classes_of(namespace: Mapping[str, object], module: str) -> frozenset[str]:
    """The names of the classes that code run in this namespace has defined."""
    return frozenset(
        name
        for name, value in namespace.items()
        if isinstance(value, type)
        and value.__module__ == module
        and value.__name__ == name
        and not issubclass(value, BaseException | enum.Enum)
    )


def _is_plain(cls: type) -> bool:
    """Whether instances of a class hold nothing but attributes, so that `object.__new__` can make them."""
    return all(base.__flags__ & _IS_HEAP_TYPE for base in cls.__mro__ if base is not object)


_IS_HEAP_TYPE = 1 << 9
"""Py_TPFLAGS_HEAPTYPE: set for classes that are not the interpreter's own."""


def _content(value: Any) -> list[object]:
    return values.flatten(_attributes(value).items())


def _attributes(value: Any) -> dict[str, object]:
    """The attributes that an instance itself holds, in its dict and in slots."""
    found = {name: object.__getattribute__(value, name) for name in _slots(type(value)) if _has(value, name)}
    return found | (object.__getattribute__(value, "__dict__") if _has(value, "__dict__") else {})


def _slots(cls: type) -> list[str]:
    slots = [vars(base).get("__slots__", ()) for base in cls.__mro__]
    names = [name for group in slots for name in ((group,) if isinstance(group, str) else group)]
    return [name for name in names if name not in ("__dict__", "__weakref__")]


def _has(value: Any, name: str) -> bool:
    try:
        object.__getattribute__(value, name)
    except AttributeError:
        return False
    return True


def _hides(cls: type, name: str) -> bool:
    """Whether an attribute of an instance would hide one that its class needs; slots and defaults of fields don't count."""
    owner = next((base for base in cls.__mro__ if name in vars(base)), None)
    if owner is None or name in vars(owner).get("__annotations__", {}):
        return False
    return not hasattr(type(vars(owner)[name]), "__set__")


def _fill(value: Any, content: list[Any]) -> None:
    attributes = dict(values.pairs(content))
    for name in attributes:
        if _hides(type(value), name):
            raise ValueError(f"an instance with an attribute {name!r} in place of its class's"[:200])
    for name in _attributes(value).keys() - attributes.keys():
        object.__delattr__(value, name)
    for name, item in attributes.items():  # a name that is not text raises a TypeError
        object.__setattr__(value, name, item)
