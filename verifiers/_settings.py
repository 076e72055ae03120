"""Checks that settings and arguments match their annotations."""

from __future__ import annotations

import dataclasses
import functools
import inspect
import math
import numbers
import os
import types
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, Literal, ParamSpec, TypeVar, Union, get_args, get_origin, get_type_hints

from verifiers.bounds import Bound, check_bound, check_bounds
from verifiers.errors import InvalidArgumentError, unknown_name, with_article

P = ParamSpec("P")
T = TypeVar("T")
_LONGEST = 300
"""Maximum number of characters of a value that a message shows."""
_IN_WORDS: dict[object, str] = {
    bool: "True or False",
    int: "a whole number",
    float: "a number",
    str: "text",
    os.PathLike: "a path",
    type(None): "None",
    Mapping: "a mapping",
    Sequence: "a sequence",
    Callable: "a function",
    type: "a class",
}


def check_types(settings: Any) -> None:
    """Check that every field of a dataclass holds what its annotation says, within its bounds (`verifiers.bounds`).

    A whole number counts as a number. A bool counts as neither, and NaN is not a number. A member of an enumeration may be
    given as text. The annotations that are checked are numbers, bools, enumerations, `None`, choices of literals, text, paths,
    mappings, sequences, functions, other dataclasses, and unions of these; any other annotation accepts every value. A callable
    protocol accepts every callable that takes as many arguments as the protocol's method.

    Raises:
        InvalidArgumentError: If a field holds something else; the message names the field, what it may hold, and the value.
        UnknownNameError: If a field holds text that is not among its choices; the message offers the nearest.
    """
    cls: type = type(settings)
    for name, annotation in _annotations(cls).items():
        check_arguments(annotation, **{name: getattr(settings, name)})
    check_bounds(settings)


def check_arguments(annotation: Any, /, **values: object) -> None:
    """Check that every value matches one annotation, by the rules of `check_types`: `check_arguments(bool, strict=strict)`.

    Raises:
        InvalidArgumentError: If a value does not match; the message gives its name, what it may be, and the value.
        UnknownNameError: If a value is text that is not among the choices; the message offers the nearest.
    """
    plain, *marks = get_args(annotation) if get_origin(annotation) is Annotated else (annotation,)
    options = get_args(plain) if get_origin(plain) in (Union, types.UnionType) else (plain,)
    only_named = all(get_origin(option) is Literal or option is type(None) for option in options)
    for name, value in values.items():
        if not _fits(value, plain):
            if only_named and isinstance(value, str):
                raise unknown_name(name, value, [choice for option in options for choice in get_args(option)])
            raise InvalidArgumentError(f"{name} must be {_in_words(plain)}, got {_shown(value)}")
        for mark in marks:
            if isinstance(mark, Bound):
                check_bound(name, value, mark, optional=type(None) in options)


def checked(function: Callable[P, T]) -> Callable[P, T]:
    """Have a function check its arguments: each must match its annotation and lie within its bounds, as in `check_types`.

    Raises:
        InvalidArgumentError: In a call, if an argument does not match; see `check_arguments`.
        UnknownNameError: In a call, if an argument is text that is not among the choices.
    """
    signature = inspect.signature(function)
    hints = functools.cache(lambda: get_type_hints(function, include_extras=True))

    @functools.wraps(function)
    def checking(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            given = signature.bind(*args, **kwargs).arguments
        except TypeError:
            return function(*args, **kwargs)  # raises the same error, with the function's name
        for name, value in given.items():
            if name in hints():
                check_arguments(hints()[name], **{name: value})
        return function(*args, **kwargs)

    return checking


def is_whole_number(value: object) -> bool:
    """Whether a value is an integer but not a bool."""
    return not isinstance(value, bool) and isinstance(value, numbers.Integral)


def is_number(value: object) -> bool:
    """Whether a value is a number that a float can hold, and neither NaN nor a bool."""
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        return False
    try:
        return not math.isnan(value)
    except OverflowError:
        return False


def takes(function: Callable[..., object], *arguments: object) -> bool:
    """Whether a function can be called with these positional arguments, as far as its signature is known."""
    try:
        inspect.signature(function).bind(*arguments)
    except TypeError:
        return False
    except ValueError:  # some functions written in C have no signature
        return True
    return True


@functools.cache
def _annotations(cls: type) -> dict[str, Any]:
    hints = get_type_hints(cls)
    return {field.name: hints[field.name] for field in dataclasses.fields(cls)}


def _fits(value: object, annotation: Any) -> bool:
    origin = get_origin(annotation)
    if origin in (Union, types.UnionType):
        return any(_fits(value, option) for option in get_args(annotation))
    if origin is Literal:
        return value in get_args(annotation)
    plain: Any = origin or annotation
    if plain in (None, type(None)):
        return value is None
    if plain is Callable:
        return callable(value)
    if _is_called(plain):
        return callable(value) and takes(value, *_parameters(plain))
    if plain in (int, float):
        return is_whole_number(value) if plain is int else is_number(value)
    if plain in (Mapping, Sequence, tuple, list, dict):
        return isinstance(value, plain) and not isinstance(value, str) and _items_fit(value, get_args(annotation))
    if plain in (bool, str, type, os.PathLike) or dataclasses.is_dataclass(plain):
        return isinstance(value, plain)
    return True


def _items_fit(values: Any, annotations: tuple[Any, ...]) -> bool:
    """Whether all items of a collection fit; a tuple with a separate annotation for each item is not examined."""
    if isinstance(values, Mapping):
        return all(_fits(item, of) for pair in values.items() for item, of in zip(pair, annotations, strict=False))
    if isinstance(values, tuple) and annotations[1:] != (Ellipsis,):
        return True
    return all(_fits(value, of) for of in annotations[:1] for value in values)


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."


def _is_called(annotation: Any) -> bool:
    """Whether an annotation is a protocol for functions."""
    return bool(getattr(annotation, "_is_protocol", False)) and "__call__" in vars(annotation)


def _parameters(protocol: Any) -> list[str]:
    return list(inspect.signature(protocol.__call__).parameters)[1:]


def _in_words(annotation: Any) -> str:
    origin = get_origin(annotation)
    if origin in (Union, types.UnionType):
        return " or ".join(dict.fromkeys(map(_in_words, get_args(annotation))))
    if origin is Literal:
        return f"one of {', '.join(map(repr, get_args(annotation)))}"
    of = get_args(annotation) if origin in (tuple, Mapping) else ()
    items = [_in_words(item) for item in of if item not in (Any, object, Ellipsis)]
    if origin is tuple and items and get_args(annotation)[1:] == (Ellipsis,):
        return f"a tuple, of which each item is {items[0]}"
    if origin is Mapping and len(items) == 2:
        return f"a mapping from {items[0]} to {items[1]}"
    if _is_called(annotation):
        return f"a function ({', '.join(_parameters(annotation))})"
    name = getattr(annotation, "__name__", str(annotation))
    return _IN_WORDS.get(origin or annotation) or with_article(name)
