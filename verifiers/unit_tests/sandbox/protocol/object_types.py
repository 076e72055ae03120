"""Descriptions, for the tester, of the types of the candidate's objects.

A proxy has the special methods of the object's type, so that `callable`, `hasattr` and `isinstance` with a protocol such as
`Iterable` give the same result for both, and it passes for an instance of the standard classes that the type derives from.
Nothing here decides a comparison: none of these classes holds plain data.
"""

from __future__ import annotations

import builtins
import collections.abc
import dataclasses
import types

_ARITHMETIC = ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul")
_BITWISE = ("and_", "or_", "xor", "lshift", "rshift")
_COMPUTING = _ARITHMETIC + _BITWISE
BINARY_OPERATORS = ("lt", "le", "gt", "ge", "eq", "ne", "contains", *_COMPUTING)
"""Names in `operator`; the first operand is the object."""
REFLECTED_OPERATORS = {f"r{name.rstrip('_')}": name for name in _COMPUTING}
"""Operators with the object as second operand: `radd` is `add`."""
IN_PLACE_OPERATORS = tuple(f"i{name.rstrip('_')}" for name in _COMPUTING)
"""Names in `operator` of the augmented assignments."""
OPERATORS = {
    name.rstrip("_"): name
    for name in (*BINARY_OPERATORS, *REFLECTED_OPERATORS, *IN_PLACE_OPERATORS, "divmod")
    if name not in ("eq", "ne", "lt", "le", "gt", "ge")
}
"""Special methods, without underscores, that take another value, with the names of the operations, except those that every
object has."""
_ALONE = """
call hash bool len iter next reversed getitem setitem delitem enter exit await aiter anext aenter aexit abs neg pos invert int
float complex bytes index round trunc floor ceil fspath
"""
PROTOCOLS = frozenset((*OPERATORS, *_ALONE.split()))
"""Special methods, without underscores, that only some types have."""
STANDARD_CLASSES: dict[str, type] = {
    cls.__name__: cls
    for cls in (
        *(types.FunctionType, types.BuiltinFunctionType, types.MethodType, type, map, filter, zip, enumerate),
        *(types.GeneratorType, types.AsyncGeneratorType),
        *(getattr(collections.abc, name) for name in collections.abc.__all__),
        *(cls for cls in vars(builtins).values() if isinstance(cls, type) and issubclass(cls, BaseException)),
    )
}
"""Classes, by name, whose instances proxies can pass for."""
FORWARDED = ("__repr__", "__eq__", "__hash__", "__len__", "__bool__", "__iter__", "__getitem__")
"""Special methods of exceptions of the program that tests can use."""
_SPECIAL = frozenset(f"__{name}__" for name in (*PROTOCOLS, "eq", "ne"))
_FIELDS = "__dataclass_fields__"

TypeInfo = tuple[str, str, str, str]
"""A type's name, its protocols, its standard classes in the order of its bases, and its fields if it is a dataclass; the last
three are names separated by spaces."""

_described: dict[int, tuple[type, TypeInfo]] = {}
"""Keyed by id, with the type to keep the id unique: a metaclass may make its classes equal or unhashable."""


def describe_type_of(value: object) -> TypeInfo:
    """Describe the type of an object."""
    name, protocols, classes, fields = _describe(type(value))
    if issubclass(type(value), type) and any("__class_getitem__" in vars(base) for base in value.__mro__):  # type: ignore[attr-defined]  # it is a class
        protocols += " getitem"
    return name, protocols, classes, fields


def _describe(cls: type) -> TypeInfo:
    known = _described.get(id(cls))
    if known is None:
        info = cls.__name__, _protocols(cls), _standard_classes(cls), _fields(cls)
        known = _described[id(cls)] = cls, info
    return known[1]


def _protocols(cls: type) -> str:
    has = {"__hash__": True}  # from `object`, whose `==` only tests identity
    for base in reversed(cls.__mro__[:-1]):
        content = vars(base)
        # None means that a class lacks what its base has.
        has.update({name: content[name] is not None for name in _SPECIAL & content.keys()})
        # A dataclass's `==` accepts only its own class.
        has["__eq__"] = has.get("__eq__", False) and not _is_generated(content.get("__eq__"))
    return " ".join(sorted(name.strip("_") for name, present in has.items() if present))


def _is_generated(method: object) -> bool:
    """Whether `dataclasses` has made a method."""
    return getattr(getattr(method, "__code__", None), "co_filename", "") == "<string>"


def _standard_classes(cls: type) -> str:
    return " ".join(base.__name__ for base in cls.__mro__ if STANDARD_CLASSES.get(base.__name__) is base)


def _fields(cls: type) -> str:
    if not any(_FIELDS in vars(base) for base in cls.__mro__):
        return ""
    return " ".join(field.name for field in dataclasses.fields(cls))


_describe(types.FunctionType)
_describe(type)
