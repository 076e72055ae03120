"""Bounds and uses of settings, declared at the field: `Annotated[int, AtLeast(1), UsedIf("kl_target", "...")]`.

`check_types` reads the bounds and `check_uses` the uses; `checked` reads the bounds of a function's parameters. A subclass that
gives a field another default keeps its bounds and uses. None is within every bound. A bound of a tuple applies to each item.
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
import math
from collections.abc import Iterator
from typing import Annotated, Any, get_type_hints
from urllib.parse import urlsplit

from verifiers.errors import InvalidArgumentError


class Bound:
    """An interval of numbers.

    Args:
        low: The lower end.
        high: The upper end.
        open_low: Whether the lower end itself is outside.
        open_high: Whether the upper end itself is outside.
        infinite: Whether infinity is within an interval that has no end.
    """

    def __init__(
        self,
        low: float = -math.inf,
        high: float = math.inf,
        *,
        open_low: bool = False,
        open_high: bool = False,
        infinite: bool = False,
    ) -> None:
        self.low, self.high = low, high
        self.open_low, self.open_high, self.infinite = open_low, open_high, infinite

    def admits(self, value: float | str) -> bool:
        """Whether a number lies within the bound; a word, which some settings allow instead of a number, always does."""
        if isinstance(value, str):
            return True
        above = value > self.low if self.open_low else value >= self.low
        below = value < self.high if self.open_high else value <= self.high
        return above and below and (self.infinite or math.isfinite(value))

    def __str__(self) -> str:
        """The bound in words, such as "at least 1"."""
        if self.high == math.inf:
            if self.low == -math.inf:
                return "finite"
            return f"{'greater than' if self.open_low else 'at least'} {_plain(self.low)}"
        if self.open_low:
            return f"greater than {_plain(self.low)} and {'less than' if self.open_high else 'at most'} {_plain(self.high)}"
        return f"from {_plain(self.low)} to {'below ' if self.open_high else ''}{_plain(self.high)}"

    def __repr__(self) -> str:
        """The representation that documentation pages and type checkers show."""
        return f"<{self}>"


def _plain(number: float) -> str:
    return f"{number:.0f}" if number == int(number) else f"{number:g}"


class AtLeast(Bound):
    """Numbers of at least `least`."""

    def __init__(self, least: float, *, infinite: bool = False) -> None:
        super().__init__(low=least, infinite=infinite)


class Above(Bound):
    """Numbers greater than `low`."""

    def __init__(self, low: float, *, infinite: bool = False) -> None:
        super().__init__(low=low, open_low=True, infinite=infinite)


class Between(Bound):
    """Numbers from `low` to `high`."""

    def __init__(self, low: float, high: float, *, open_low: bool = False, open_high: bool = False) -> None:
        super().__init__(low=low, high=high, open_low=open_low, open_high=open_high)


class HTTPAddress(Bound):
    """Addresses of servers.

    Args:
        such_as: An example.
    """

    def __init__(self, such_as: str = "http://localhost:8000") -> None:
        super().__init__()
        self.such_as = such_as

    def admits(self, value: float | str) -> bool:
        """Whether a text is an HTTP address."""
        try:
            parts = urlsplit(str(value))
        except ValueError:
            return False
        return parts.scheme in ("http", "https") and bool(parts.netloc)

    def __str__(self) -> str:
        """The bound in words, with the example."""
        return f"an address that begins with http:// or https://, such as {self.such_as}"


FINITE = Bound()
"""All numbers but infinity."""
Count = Annotated[int, AtLeast(1)]
"""A whole number of at least 1."""
Seconds = Annotated[float, Above(0)]
"""A positive and finite number of seconds."""
Address = Annotated[str, HTTPAddress()]
"""The address of a server."""


class UsedIf:
    """The condition under which a setting has an effect.

    Args:
        condition: Name of an attribute of the settings that is true if the setting has an effect.
        otherwise: Why the setting has no effect otherwise, and what to set so that it has an effect.
    """

    def __init__(self, condition: str, otherwise: str) -> None:
        self.condition, self.otherwise = condition, otherwise

    def __repr__(self) -> str:
        """The representation that documentation pages and type checkers show."""
        return f"<used if {self.condition}>"


def check_bounds(settings: Any) -> None:
    """Check that the numbers of a dataclass lie within the bounds of their fields.

    Raises:
        InvalidArgumentError: If a number lies outside its bound; the message names the field, the bound and the value.
    """
    cls: type = type(settings)
    for name, bound in bounds_of(cls):
        check_bound(name, getattr(settings, name), bound, optional=_takes_none(cls, name))


def check_bound(name: str, value: Any, bound: Bound, *, optional: bool) -> None:
    """Check that a number, or each number of a tuple, lies within a bound.

    Args:
        name: Name of the setting.
        value: The number, the tuple, or None, which lies within every bound.
        bound: The bound.
        optional: Whether the message offers None as a value.

    Raises:
        InvalidArgumentError: If a number lies outside its bound; the message names the setting, the bound and the value.
    """
    for number in value if isinstance(value, tuple) else (value,):
        if number is None or bound.admits(number):
            continue
        text = isinstance(number, str)
        finite = "finite and " if not text and str(bound) != "finite" and math.isinf(number) else ""
        shown = repr(number) if text else number
        raise InvalidArgumentError(f"{name} must be {finite}{bound}{', or None' if optional else ''}, got {shown}")


def check_uses(settings: Any, own: frozenset[str] = frozenset()) -> None:
    """Check that every setting that has no effect is left at its default.

    Args:
        settings: The dataclass.
        own: Fields that have an effect whatever the other fields are.

    Raises:
        InvalidArgumentError: If such a setting differs; the message says why it has no effect.
    """
    defaults = {field.name: field.default for field in dataclasses.fields(settings)}
    cls: type = type(settings)
    for name, use in _marks(cls):
        value = getattr(settings, name)
        if (
            isinstance(use, UsedIf)
            and value != defaults[name]
            and name not in own
            and not getattr(settings, use.condition)
        ):
            raise InvalidArgumentError(f"{name}={value} has no effect, since {use.otherwise}, or leave it out")


def bounds_of(cls: type) -> Iterator[tuple[str, Bound]]:
    """The bounds of a dataclass's fields, each with the field's name."""
    return ((name, mark) for name, mark in _marks(cls) if isinstance(mark, Bound))


@functools.cache
def _marks(cls: type) -> tuple[tuple[str, object], ...]:
    """The metadata of the annotations of a class and its bases, each with the field's name."""
    found: dict[tuple[str, object], None] = {}
    for base in reversed(cls.__mro__):
        own = inspect.get_annotations(base)
        hints = get_type_hints(base, include_extras=True) if own else {}
        found |= {(name, mark): None for name in own for mark in getattr(hints[name], "__metadata__", ())}
    return tuple(found)


@functools.cache
def _takes_none(cls: type, name: str) -> bool:
    return type(None) in getattr(get_type_hints(cls)[name], "__args__", ())
