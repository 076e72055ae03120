"""Instances of the classes that a problem's prefix defines; they are sent by value, as the class's name and the attributes.

Program and tests have each run the prefix, and each side rebuilds an instance with its own copy of the class. So a program that
redefines `ListNode` deceives only itself: helpers and comparisons of the tests see the tests' class.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping
from typing import Any

from . import values
from .values import Decoder, Encoder, Kind, Wire

OBJECT = "o"
"""The tag of these instances."""


class PrefixObjects:
    """Encodes and decodes instances of the prefix's classes on one side."""

    def __init__(self, class_of: Callable[[str], Any]) -> None:
        """Begin without classes; `class_of` gives this side's class of a name."""
        self.names: frozenset[str] = frozenset()
        """The names of the classes, which both sides have to know before the first instance."""
        self._class_of = class_of
        self._kind = Kind(OBJECT, _content, self._make, _fill, lambda value: type(value).__name__)
        values.add_objects(self._kind)

    def encode(self, encoder: Encoder, value: Any) -> Wire:
        """Encode an instance; None if its class is not one of the prefix's, or derives from a class of the interpreter."""
        cls = type(value)
        if cls.__name__ not in self.names:
            return None
        return encoder.deferred(value, self._kind) if _is_plain(cls) else None

    def decode(self, decoder: Decoder, wire: Wire) -> Any:
        """Decode an instance; ValueError if the wire does not describe one."""
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
"""Py_TPFLAGS_HEAPTYPE: the class is not one of the interpreter's own."""


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
    """Whether an instance's attribute would hide an attribute that its class needs; slots and defaults of fields are fine."""
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
