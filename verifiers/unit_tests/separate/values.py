"""Plain data as tagged JSON: the values that the program's and the tests' processes can send each other by value.

Numbers, strings and None are sent unchanged; everything else is a list that begins with a tag. Decoding yields exact
builtins and standard classes such as `Decimal`, whatever the sender's object claimed to be. An instance of a class that derives
from one of these is not plain data. Any other value goes to the function `opaque`, which refuses it or replaces it with a
handle.
"""

from __future__ import annotations

import array
import collections
import datetime
import decimal
import fractions
import importlib
import itertools
import operator
import re
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from .known import Content, Known

Wire = Any
"""A JSON value."""
_ATOMS = frozenset({type(None), bool, float, str})
_BIG = 1 << 1024
_MAX_DEPTH = 1000
"""Maximum depth of nesting. Python's own JSON has limits that differ between versions (the lowest is 1500, in 3.12), but
verdicts must not differ.
"""
TYPES: dict[str, type] = {
    cls.__name__: cls
    for cls in (
        *(bool, int, float, complex, str, bytes, bytearray, list, tuple, set, frozenset, dict, range, type(None)),
        *(decimal.Decimal, fractions.Fraction, datetime.date, datetime.datetime, datetime.timedelta),
        *(collections.Counter, collections.OrderedDict, collections.defaultdict, collections.deque),
    )
}
"""Classes that are sent by name. `object` is not among them, since everything that a test catches is an instance of it."""
_TYPE_NAMES = {cls: name for name, cls in TYPES.items()}


_BY_TEXT = (
    {"UUID": "uuid", "ZoneInfo": "zoneinfo"}
    | dict.fromkeys(("PosixPath", "PurePosixPath", "PureWindowsPath"), "pathlib")
    | {f"IPv{version}{suffix}": "ipaddress" for version in (4, 6) for suffix in ("Address", "Network", "Interface")}
)
"""Classes in modules that few programs import, by the module's name; an equal instance can be made from an instance's text."""


class NotPlainError(Exception):
    """A value can't be sent."""


@dataclass(frozen=True, slots=True)
class Kind:
    """A class of mutable containers, and how its instances are taken apart and rebuilt."""

    tag: str
    content: Callable[[Any], Content]
    """Returns the content of an instance: a list, whose items are compared by identity to find changes, or another sequence."""
    make: Callable[[Wire], Any]
    """Makes an empty instance from the head of its encoding, which is the item before the content."""
    fill: Callable[[Any, list[Any]], object]
    """Replaces the content of an instance."""
    head: Callable[[Any], Wire] = lambda value: None


class Encoder:
    """Encodes the values of one message."""

    def __init__(self, known: Known, opaque: Callable[[Encoder, object], Wire]) -> None:
        """Begin a message; `opaque` encodes values that are not plain data, or raises NotPlainError."""
        self._known = known
        self._opaque = opaque
        self._depth = 0
        self._deferred: list[tuple[int, Any, Kind]] = []

    def encode(self, value: Any) -> Wire:
        """Encode one value; raises NotPlainError if it can't be sent, RecursionError if it is nested too deeply."""
        cls = type(value)
        if cls in _ATOMS:
            return value
        if cls is int:
            return value if -_BIG < value < _BIG else ["i", hex(value)]
        if cls in KINDS:
            return self.container(value, KINDS[cls])
        if cls in _ENCODERS:
            tag, parts = _ENCODERS[cls]
            return [tag, *self.items(parts(value))]
        if cls is type and value in _TYPE_NAMES:
            return ["type", _TYPE_NAMES[value]]
        module = _BY_TEXT.get(cls.__name__)
        if module is not None and getattr(sys.modules.get(module), cls.__name__, None) is cls:
            return ["v", cls.__name__, str(value)]
        return self._opaque(self, value)

    def container(self, value: object, kind: Kind) -> Wire:
        """Encode a container: its number if the other process has it, otherwise also its content."""
        number = self._known.number_of(value)
        if number is not None:
            return ["r", number]
        number = self._known.add(value)
        return [kind.tag, number, kind.head(value), *self.content(value, kind)]

    def deferred(self, value: object, kind: Kind) -> Wire:
        """Encode a container as `container` does, but leave its content to `rest`, so that chains of containers do not nest."""
        number = self._known.number_of(value)
        if number is not None:
            return ["r", number]
        number = self._known.add(value)
        self._deferred.append((number, value, kind))
        return [kind.tag, number, kind.head(value)]

    def rest(self) -> list[Wire]:
        """Encode the content of deferred containers, each after its number."""
        # The list grows in the loop.
        return [[number, *self.content(value, kind)] for number, value, kind in self._deferred]

    def content(self, value: object, kind: Kind) -> list[Wire]:
        """Encode the content of a container."""
        content = kind.content(value)
        return self.items(content) if type(content) is list else list(content)

    def items(self, values: Iterable[object]) -> list[Wire]:
        """Encode several values."""
        if self._depth == _MAX_DEPTH:
            raise RecursionError(f"data nested more than {_MAX_DEPTH} levels deep can't be sent")
        self._depth += 1
        try:
            return [self.encode(value) for value in values]
        finally:
            self._depth -= 1


class Decoder:
    """Decodes the values of one message."""

    def __init__(self, known: Known, special: Callable[[Decoder, Wire], Any]) -> None:
        """Begin a message; `special` decodes what the other process's `opaque` has encoded."""
        self._known = known
        self._special = special

    def decode(self, wire: Wire) -> Any:
        """Decode one value; invalid data raises an unspecified exception, which the caller must catch."""
        if type(wire) is not list:
            return wire
        tag = wire[0]
        if tag == "r":
            return self._known[wire[1]]
        kind = KINDS_BY_TAG.get(tag)
        if kind is not None:
            return self.container(wire, kind)
        build = _DECODERS.get(tag)
        return self._special(self, wire) if build is None else build(*self.items(wire[1:]))

    def container(self, wire: Wire, kind: Kind) -> Any:
        """Decode a new container with its content."""
        value = self.deferred(wire, kind)  # before its content, which may hold the container itself
        self.fill(value, kind, wire[3:])
        return value

    def deferred(self, wire: Wire, kind: Kind) -> Any:
        """Decode a container whose content comes later in the message."""
        value = kind.make(wire[2])
        self._known.receive(wire[1], value)
        return value

    def fill(self, value: Any, kind: Kind, content: list[Wire]) -> None:
        """Fill a container with its content."""
        kind.fill(value, self.items(content))

    def items(self, wires: Iterable[Wire]) -> list[Any]:
        """Decode several values."""
        return [self.decode(wire) for wire in wires]


def content_of(container: Any) -> Content:
    """The content of a mutable container."""
    return kind_of(container).content(container)


def kind_of(container: object) -> Kind:
    """The kind of a mutable container: that of its class, or else the kind that `add_objects` has set."""
    return KINDS.get(type(container)) or _OBJECTS[0]


_OBJECTS: list[Kind] = []
"""The kind of instances of classes that a problem's prefix defines; empty or a single item."""


def add_objects(kind: Kind) -> None:
    """Set the kind of every container whose class has no kind of its own."""
    _OBJECTS[:] = [kind]


def flatten(pairs: Iterable[tuple[object, object]]) -> list[object]:
    """The keys and values of a mapping in one list."""
    return list(itertools.chain.from_iterable(pairs))


def pairs(content: Sequence[Any]) -> Iterable[tuple[Any, Any]]:
    """The pairs of keys and values in a list from `flatten`; raises ValueError if the length is odd."""
    return zip(content[::2], content[1::2], strict=True)


def _fill_set(value: set[object], content: list[Any]) -> None:
    value.clear()
    value.update(content)


def _fill_mapping(value: dict[object, object], content: list[Any]) -> None:
    given = [*pairs(content)]
    # If the keys stay the same, iterators go on, as they do when items are assigned.
    if len(given) != len(value) or not all(map(operator.is_, value, (key for key, _ in given))):
        value.clear()
    for key, item in given:
        value[key] = item


def _fill_default(value: collections.defaultdict[object, object], content: list[Any]) -> None:
    value.default_factory = content[0]
    _fill_mapping(value, content[1:])


def _fill_bytes(value: bytearray, content: list[Any]) -> None:
    value[:] = content[0].encode("latin-1")


def _fill_deque(value: collections.deque[object], content: list[Any]) -> None:
    value.clear()
    value.extend(content)


def _mapping(cls: Callable[[], Any], tag: str) -> Kind:
    return Kind(tag, lambda value: flatten(value.items()), lambda _: cls(), _fill_mapping)


KINDS: dict[type, Kind] = {
    list: Kind("l", list.copy, lambda _: [], lambda value, content: list.__setitem__(value, slice(None), content)),
    set: Kind("s", list, lambda _: set(), _fill_set),
    dict: _mapping(dict, "d"),
    collections.OrderedDict: _mapping(collections.OrderedDict, "od"),
    collections.Counter: Kind("ct", lambda v: flatten(dict.items(v)), lambda _: collections.Counter(), _fill_mapping),
    collections.defaultdict: Kind(
        "dd", lambda v: [v.default_factory, *flatten(v.items())], lambda _: collections.defaultdict(), _fill_default
    ),
    collections.deque: Kind(
        "q", list, lambda most: collections.deque(maxlen=most), _fill_deque, operator.attrgetter("maxlen")
    ),
    bytearray: Kind("ba", lambda value: (value.decode("latin-1"),), lambda _: bytearray(), _fill_bytes),
    array.array: Kind(
        "ar",
        list,
        array.array,
        lambda value, content: operator.setitem(value, slice(None), array.array(value.typecode, content)),
        operator.attrgetter("typecode"),
    ),
}
KINDS_BY_TAG = {kind.tag: kind for kind in KINDS.values()}


def add_kind(cls: type, kind: Kind) -> None:
    """Let instances of a further class be sent as mutable containers."""
    KINDS[cls] = KINDS_BY_TAG[kind.tag] = kind


def add_value(
    cls: type, tag: str, parts: Callable[[Any], Iterable[object]], build: Callable[..., object] | None = None
) -> None:
    """Let instances of a further class be sent as values, as the parts from which they are rebuilt."""
    _ENCODERS[cls] = tag, parts
    if build is not None:
        _DECODERS[tag] = build


def _time_parts(value: datetime.datetime | datetime.time) -> tuple[object, ...]:
    """The text of a time without its zone, the zone, and the fold; a zone defined by the program becomes its offset."""
    zone, offset = value.tzinfo, value.utcoffset()
    if offset is not None and type(zone).__name__ not in ("timezone", "ZoneInfo"):
        zone = datetime.timezone(offset)
    return value.replace(tzinfo=None).isoformat(), zone, value.fold


def _from_text(name: str, text: str) -> object:
    """Make a value of a class in `_BY_TEXT` from its text; raises KeyError for other classes."""
    return getattr(importlib.import_module(_BY_TEXT[name]), name)(text)


def _time(cls: Any) -> Callable[..., object]:
    return lambda text, zone, fold: cls.fromisoformat(text).replace(tzinfo=zone, fold=fold)


_VALUES: tuple[tuple[type, str, Callable[[Any], Iterable[object]], Callable[..., object]], ...] = (
    (tuple, "t", lambda value: value, lambda *items: items),
    (frozenset, "f", lambda value: value, lambda *items: frozenset(items)),
    (int, "i", lambda value: (hex(value),), lambda text: int(text, 16)),
    (bytes, "b", lambda value: (value.decode("latin-1"),), lambda text: text.encode("latin-1")),
    (complex, "c", lambda value: (value.real, value.imag), complex),
    (range, "rg", operator.attrgetter("start", "stop", "step"), range),
    (slice, "sl", operator.attrgetter("start", "stop", "step"), slice),
    (type(...), "e", lambda _: (), lambda: ...),
    (type(NotImplemented), "ni", lambda _: (), lambda: NotImplemented),
    (decimal.Decimal, "dec", lambda value: (str(value),), decimal.Decimal),
    (fractions.Fraction, "fr", operator.attrgetter("numerator", "denominator"), fractions.Fraction),
    (datetime.date, "date", lambda value: (value.isoformat(),), datetime.date.fromisoformat),
    (datetime.datetime, "dt", _time_parts, _time(datetime.datetime)),
    (datetime.time, "tm", _time_parts, _time(datetime.time)),
    (datetime.timedelta, "td", operator.attrgetter("days", "seconds", "microseconds"), datetime.timedelta),
    (datetime.timezone, "tz", lambda value: value.__getinitargs__(), datetime.timezone),
    (
        re.Pattern,
        "re",
        operator.attrgetter("pattern", "flags"),
        lambda text, flags: re.compile(text, flags & ~re.DEBUG),
    ),
    (type({}.keys()), "dk", list, lambda *keys: dict.fromkeys(keys).keys()),
    (type({}.values()), "dv", list, lambda *items: dict(enumerate(items)).values()),
    (type({}.items()), "di", flatten, lambda *content: dict(pairs(content)).items()),
)
"""Classes of values: for each, its tag, a function that takes an instance apart, and a function that builds one."""
_ENCODERS: dict[type, tuple[str, Callable[[Any], Iterable[object]]]] = {}
_DECODERS: dict[str, Callable[..., object]] = {"type": TYPES.__getitem__, "v": _from_text}
for _value in _VALUES:
    add_value(*_value)


def to_wire(value: object, opaque: Callable[[Encoder, object], Wire] | None = None) -> Wire:
    """Encode one value by itself; `opaque` encodes values that are not plain data.

    Raises:
        NotPlainError: If the value can't be sent.
    """
    return Encoder(Known(content_of, 0), opaque or refuse).encode(value)


def from_wire(wire: Wire) -> Any:
    """Decode a value that `to_wire` has encoded."""
    return Decoder(Known(content_of, 1), refuse).decode(wire)


def refuse(_: object, value: object) -> Wire:
    """Raise a NotPlainError, for values that can't be sent."""
    raise NotPlainError(f"a value of type {type(value).__name__!r} is not plain data")
