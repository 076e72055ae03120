"""NumPy arrays and scalars as plain data: they are sent as type, shape and bytes, and rebuilt on the other side.

Nothing else of the program's is sent with them: no class, no buffer, no pickle. An array of objects is sent item by item,
each encoded like a value by itself. Arrays of records, and instances of subclasses of `ndarray`, cannot be sent.

Imported only where NumPy is loaded.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable
from typing import Any

import numpy
from numpy import dtype, empty, frombuffer, generic, ndarray

from . import codec
from .codec import Decoder, Encoder, Kind, NotPlainError, Wire, packed, unpacked_size

ARRAY, SCALAR = "nd", "ns"
"""Tags."""
_NUMERIC = re.compile(
    r"\|b1|[<>|][iu][1248]|[<>]f(2|4|8|16)|[<>]c(8|16|32)|[<>][mM]8(\[\d{0,9}(Y|M|W|D|h|m|s|ms|us|ns|ps|fs|as)\])?"
)
_TEXT = re.compile(r"[<>|]U\d{1,9}|\|S\d{1,9}")
_OBJECT = "|O"
_SCALARS: tuple[type[generic], ...] = tuple({*numpy.sctypeDict.values()} - {numpy.void, numpy.object_})
_Array = ndarray[Any, Any]
_ndarray: type = ndarray
"""The key of arrays in tables of containers."""
compared: list[type] = [ndarray, generic]
"""Classes whose `==` compares item by item, without a single truth value."""


def is_array(value: object) -> bool:
    """Whether a value is an array of any class."""
    return issubclass(type(value), ndarray)


def encode(encoder: Encoder, value: _Array) -> Wire:
    """Encode an array; NotPlainError if it is of a type that cannot be sent."""
    dtype_code = value.dtype.str
    if _NUMERIC.fullmatch(dtype_code):
        return [ARRAY, dtype_code, list(value.shape), packed(value.tobytes())]
    if _TEXT.fullmatch(dtype_code):
        return [ARRAY, dtype_code, list(value.shape), *map(_text, value.ravel().tolist())]
    if dtype_code != _OBJECT:
        raise NotPlainError(f"an array of {value.dtype} cannot be sent")
    items = _items(value)
    if any(map(_is_nested, items)):
        raise NotPlainError("an array of objects that contains another cannot be sent")
    return [ARRAY, dtype_code, list(value.shape), *encoder.items(items)]


def _items(value: _Array) -> list[object]:
    items: list[object] = value.ravel().tolist()
    return items


def _is_nested(item: object) -> bool:
    """Whether an item of an array of objects is such an array: NumPy recurses into those, endlessly if one holds itself."""
    return type(item) is ndarray and item.dtype.hasobject


def _text(item: str | bytes) -> str:
    return item if isinstance(item, str) else item.decode("latin-1")


def _encode_scalar(_: Encoder, value: generic) -> Wire:
    dtype_code = value.dtype.str
    if _NUMERIC.fullmatch(dtype_code):
        return [SCALAR, dtype_code, packed(value.tobytes())]
    return [SCALAR, dtype_code, _text(value.item())]


def encode_or_none(encoder: Encoder, value: object) -> Wire:
    """Encode a value for a codec that does not know arrays; None if it is neither an array nor a scalar."""
    if type(value) is ndarray:
        return encoder.reference(value) or encode(encoder, value)
    return _encode_scalar(encoder, value) if type(value) in _SCALARS else None  # type: ignore[arg-type]  # its type was just checked


def _create(wire: Wire) -> _Array:
    """Create the array that a wire describes, without its items; ValueError if it describes none, or their number is wrong."""
    _, dtype_code, shape, *content = wire
    if not (type(shape) is list and all(type(size) is int and size >= 0 for size in shape)):
        raise ValueError("a shape must be a list of whole numbers")
    if _NUMERIC.fullmatch(dtype_code):
        size = math.prod(shape) * dtype(dtype_code).itemsize
        fits = len(content) == 1 and unpacked_size(content[0]) == size
    else:
        fits = len(content) == math.prod(shape) and (dtype_code == _OBJECT or _is_text(dtype_code, content))
    if not fits:
        raise ValueError(f"wrong number of items for an array of {dtype_code[:40]} and shape {shape!r}"[:200])
    return empty(shape, dtype(dtype_code))


def _is_text(dtype_code: str, content: list[Wire]) -> bool:
    """Whether this is the content of an array of strings."""
    if not _TEXT.fullmatch(dtype_code) or not all(type(text) is str for text in content):
        return False
    width = int(dtype_code[2:])
    return not content or max(map(len, content)) <= width


def _fill(value: _Array, content: list[Any]) -> None:
    flat = value.reshape(-1)
    if value.dtype.hasobject:
        for position, item in enumerate(content):
            if _is_nested(item):
                raise ValueError("an array of objects contains another")
            flat[position] = item
    elif value.dtype.kind in "US":
        flat[:] = content if value.dtype.kind == "U" else [text.encode("latin-1") for text in content]
    else:
        flat[:] = _numbers(value.dtype, content[0])


def _numbers(element_type: dtype[Any], data: bytes) -> _Array:
    # A byte other than 0 and 1 would give an invalid bool.
    return frombuffer(data, "u1") != 0 if element_type.kind == "b" else frombuffer(data, element_type)


def _decode_scalar(decoder: Decoder, wire: Wire) -> object:
    _, dtype_code, content = wire
    if _NUMERIC.fullmatch(dtype_code):
        return _numbers(dtype(dtype_code), decoder.decode(content))[0]
    if not _is_text(dtype_code, [content]):
        raise ValueError(f"not a numpy scalar: {dtype_code[:40]!r}")
    return numpy.str_(content) if dtype_code[1] == "U" else numpy.bytes_(content.encode("latin-1"))


def _snapshot(value: _Array) -> bytes | list[object]:
    """The content of an array, in the form that `shared_containers` compares."""
    return _items(value) if value.dtype.hasobject else f"{value.dtype.str}{value.shape}".encode() + value.tobytes()


def _fits(value: _Array, wire: Wire) -> bool:
    """Whether an array has this shape and type: memory that others may view can't be resized."""
    _, dtype_code, shape, *_ = wire
    return bool(value.dtype.str == dtype_code and list(value.shape) == shape)


def same(result: object, expected: object, equal: Callable[[object, object], bool]) -> bool:
    """Whether values that may be or contain arrays are equal; `equal` compares values without arrays.

    An expected array equals only arrays of its shape with the same items.
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
    return isinstance(value, tuple(compared)) or (type(value) is dict and any(map(_holds_array, value.values())))


def install() -> None:
    """Let arrays and scalars be sent, and arrays be shared like other containers."""
    codec.add_kind(_ndarray, Kind(ARRAY, _snapshot, _create, _fill, encoded=encode, skipped=3, fits=_fits))
    for cls in _SCALARS:
        codec.add_value(cls, SCALAR, _encode_scalar, _decode_scalar)
