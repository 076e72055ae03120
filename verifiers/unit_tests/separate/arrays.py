"""NumPy arrays and scalars as plain data: they are sent as type, shape and bytes, and rebuilt by the receiver.

Nothing else of the program is sent with an array: no class, no buffer, no pickle. An array of objects is sent item by item, and
each item is encoded like a separate value. Arrays of records, and instances of subclasses of `ndarray`, are not plain data.

This module is imported only if NumPy is loaded.
"""

from __future__ import annotations

import binascii
import math
import re
from collections.abc import Callable, Iterable
from typing import Any

import numpy
from numpy import dtype, empty, frombuffer, generic, ndarray

from .values import Encoder, Kind, NotPlainError, Wire, add_kind, add_value, refuse

_NUMERIC = re.compile(
    r"\|b1|[<>|][iu][1248]|[<>]f(2|4|8|16)|[<>]c(8|16|32)|[<>][mM]8(\[\d{0,9}(Y|M|W|D|h|m|s|ms|us|ns|ps|fs|as)\])?"
)
_TEXT = re.compile(r"[<>|]U\d{1,9}|\|S\d{1,9}")
_OBJECT = "|O"
_SCALARS: tuple[type[generic], ...] = tuple({*numpy.sctypeDict.values()} - {numpy.void, numpy.object_})
_Array = ndarray[Any, Any]


def is_array(value: object) -> bool:
    """Whether a value is an array of any class."""
    return issubclass(type(value), ndarray)


def _content(value: _Array) -> list[object] | tuple[str, ...]:
    """The items of an array of objects or texts; for an array of numbers, its bytes."""
    dtype_code = value.dtype.str
    if _NUMERIC.fullmatch(dtype_code):
        return (binascii.b2a_base64(value.tobytes(), newline=False).decode(),)
    if _TEXT.fullmatch(dtype_code):
        return tuple(item if isinstance(item, str) else item.decode("latin-1") for item in value.ravel().tolist())
    items: list[object] = value.ravel().tolist()
    if dtype_code != _OBJECT or any(map(_is_nested, items)):
        raise NotPlainError(f"an array of {value.dtype} can't be sent")
    return items


def _is_nested(item: object) -> bool:
    """Whether an item of an array of objects is such an array too; NumPy would recurse into it, endlessly if it is a cycle."""
    return type(item) is ndarray and item.dtype.hasobject


def _head(value: _Array) -> Wire:
    return [value.dtype.str, list(value.shape)]


def _make(head: Wire) -> _Array:
    dtype_code, shape = head
    if not (_NUMERIC.fullmatch(dtype_code) or _TEXT.fullmatch(dtype_code) or dtype_code == _OBJECT):
        raise ValueError(f"not a type of arrays: {dtype_code!r}"[:200])
    if not (type(shape) is list and all(type(size) is int and size >= 0 for size in shape)):
        raise ValueError("a shape must be a list of whole numbers")
    return empty(shape if math.prod(shape) <= _MOST_ITEMS else 0, dtype(dtype_code))


_MOST_ITEMS = 1 << 26
"""Maximum number of items of an array; a message has no room for more."""


def _fill(value: _Array, content: list[Any]) -> None:
    flat, kind = value.reshape(-1), value.dtype.kind
    if kind in "US":
        _check_texts(value.dtype, content)
        flat[:] = content if kind == "U" else [text.encode("latin-1") for text in content]
    elif value.dtype.hasobject:
        if len(content) != len(flat) or any(map(_is_nested, content)):
            raise ValueError("an array of objects has an item for each place, none of which is such an array")
        for position, item in enumerate(content):
            flat[position] = item
    else:
        flat[:] = _numbers(value.dtype, content[0])


def _check_texts(element_type: dtype[Any], content: Iterable[Any]) -> None:
    width = int(element_type.str[2:])
    if not all(type(text) is str and len(text) <= width for text in content):
        raise ValueError("an item is not text, or is too long for the array's type")


def _numbers(element_type: dtype[Any], text: str) -> _Array:
    data = binascii.a2b_base64(text)
    # A byte other than 0 and 1 would give an invalid bool.
    return frombuffer(data, "u1") != 0 if element_type.kind == "b" else frombuffer(data, element_type)


def _scalar_parts(value: Any) -> tuple[object, ...]:
    return value.dtype.str, _content(value.reshape(1))[0]


def _scalar(dtype_code: str, content: str) -> object:
    value = _make([dtype_code, [1]])
    _fill(value, [content])
    return value[0]


def same(result: object, expected: object, equal: Callable[[object, object], bool]) -> bool:
    """Whether values that may be or contain arrays are equal; `equal` compares values without arrays.

    An expected array only equals arrays of the same shape with the same items.
    """
    if is_array(result) or is_array(expected):
        return _same_arrays(result, expected, equal)
    cls = type(expected)
    if cls in (list, tuple) and type(result) is cls and _holds_array(expected) | _holds_array(result):
        pairs: Iterable[tuple[Any, Any]] = zip(result, expected, strict=False)  # type: ignore[call-overload]  # lists or tuples
        return len(result) == len(expected) and all(same(*pair, equal) for pair in pairs)  # type: ignore[arg-type]  # likewise
    if cls is dict and type(result) is dict:
        return result.keys() == expected.keys() and all(same(result[key], expected[key], equal) for key in expected)  # type: ignore[attr-defined, index]  # dicts
    # Comparing a scalar with a list gives an array, which is true if its only item is.
    unlike = isinstance(result, generic) != isinstance(expected, generic) and {type(result), cls} & {list, tuple}
    return not unlike and equal(result, expected)


def _same_arrays(result: object, expected: object, equal: Callable[[object, object], bool]) -> bool:
    if type(result) is not ndarray or type(expected) is not ndarray or result.shape != expected.shape:
        return False
    kinds = {result.dtype.kind, expected.dtype.kind}
    comparable = len(kinds) == 1 or kinds <= set("biufc")
    if kinds & set("mM"):
        return comparable and bool((result == expected).all())
    return comparable and same(result.tolist(), expected.tolist(), equal)


def _holds_array(value: object) -> bool:
    if type(value) in (list, tuple):
        return any(map(_holds_array, value))  # type: ignore[call-overload]  # its type was just checked
    return isinstance(value, ndarray | generic) or (type(value) is dict and any(map(_holds_array, value.values())))


_ARRAY = Kind("nd", _content, _make, _fill, _head)


def encode(encoder: Encoder, value: object) -> Wire:
    """Encode an array or a scalar even without `install`; raises NotPlainError for any other value."""
    if type(value) is ndarray:
        return encoder.container(value, _ARRAY)
    return ["ns", *_scalar_parts(value)] if type(value) in _SCALARS else refuse(encoder, value)


def install() -> None:
    """Let arrays and scalars be sent; arrays are treated as mutable containers."""
    array: type = ndarray
    add_kind(array, _ARRAY)
    for cls in _SCALARS:
        add_value(cls, "ns", _scalar_parts, _scalar)
