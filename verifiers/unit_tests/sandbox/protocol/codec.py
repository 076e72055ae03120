"""Plain data as tagged JSON: what candidate and tester may send each other.

Numbers, strings and None represent themselves; everything else is a list that begins with a tag. Decoding always yields a
real builtin (or a standard value class such as `Decimal`), whatever the sender's object claimed to be. Both sides number
mutable containers in order of first occurrence, so that a message can refer back to one: aliases and cycles survive within
a message. For aliases between messages see `shared_containers`.

Values that are not plain data go to the encoder's `opaque` function, which replaces them with a handle or refuses.
"""

from __future__ import annotations

import array
import binascii
import collections
import datetime
import decimal
import fractions
import functools
import importlib
import io
import itertools
import keyword
import operator
import re
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from .object_types import PROTOCOLS

Wire = Any
"""A JSON value."""

_ATOMS = frozenset({type(None), bool, float, str})
_BIG = 1 << 1024
_MAX_DEPTH = 1000
"""Maximum depth of nesting. The limit of Python's own JSON differs between its versions, and verdicts must not: the lowest is
1500 (3.12)."""
_MAX_NESTING = 20_000
"""Maximum number of containers of `_FREED_BY_RECURSION` that hold another such: through references they could nest so deeply
that freeing them overflows the stack and ends the process. A level takes about 100 bytes, of 8 MiB."""
_BY_TEXT = (
    {"UUID": "uuid", "ZoneInfo": "zoneinfo"}
    | dict.fromkeys(("PosixPath", "WindowsPath", "PurePosixPath", "PureWindowsPath"), "pathlib")
    | {f"IPv{version}{suffix}": "ipaddress" for version in (4, 6) for suffix in ("Address", "Network", "Interface")}
)
"""Value classes, from modules that few programs import, that rebuild an equal value from its text, each with its public module.
`__module__` does not serve for that: it names a private module in some versions of Python."""
BUILTIN_TYPES: dict[str, type] = {
    cls.__name__: cls
    for cls in (
        *(bool, int, float, complex, str, bytes, bytearray, list, tuple, set, frozenset, dict, range, type(None)),
        *(decimal.Decimal, fractions.Fraction, datetime.date, datetime.datetime, datetime.timedelta),
        *(collections.Counter, collections.OrderedDict, collections.defaultdict, collections.deque),
    )
}
"""Classes that are sent by name. Not `object`: whatever a test has caught is an instance of it."""


class NotPlainError(Exception):
    """A value can't be sent because it is not plain data."""


class Encoder:
    """Encodes the values of one message."""

    def __init__(self, opaque: Callable[[object], Wire]) -> None:
        """Begin a message; `opaque` encodes a value that is not plain data, returns None, or raises NotPlainError."""
        self._objects: list[object] = []
        self._opaque = opaque
        self._numbers: dict[int, int] = {}
        self._depth = 0

    def encode(self, value: object) -> Wire:
        """Encode one value; NotPlainError if it is not plain data and `opaque` refuses it, RecursionError if it is too deep."""
        cls = type(value)
        if cls in _ATOMS:
            return value
        if cls is int:
            return _encode_int(value)  # type: ignore[arg-type]  # its type was just checked
        if cls in KINDS:
            return self.encode_container(value, cls)
        encoder = _ENCODERS.get(cls)
        return self._encode_other(value) if encoder is None else encoder(self, value)

    def encode_container(self, value: object, cls: type) -> Wire:
        """Encode a mutable container: its content, or a reference if the message contains it already."""
        return self.reference(value) or KINDS[cls].encode(self, value)

    def reference(self, value: object) -> Wire:
        """A reference to a container if the message contains it already; otherwise None, and it gets the next number."""
        number = self._numbers.get(id(value))
        if number is not None:
            return ["r", number]
        self._numbers[id(value)] = len(self._objects)
        self._objects.append(value)  # kept alive, so that its id stays unique
        return None

    def encode_derived(self, value: object, base: type, unwrap: Callable[[Any], object], derived: list[Wire]) -> Wire:
        """Encode an instance of a class that derives from `base`, converted by `unwrap`, after what says how it differs."""
        content = self.encode(unwrap(value))
        return [*derived, content] if derived else content

    def items(self, values: Iterable[object]) -> list[Wire]:
        """Encode each value."""
        if self._depth == _MAX_DEPTH:
            raise RecursionError(f"data nested more than {_MAX_DEPTH} levels deep cannot be sent")
        self._depth += 1
        try:
            return [self.encode(value) for value in values]
        finally:
            self._depth -= 1

    def _encode_other(self, value: object) -> Wire:
        if issubclass(type(value), type):
            name = value.__name__  # type: ignore[attr-defined]  # it is a class
            return ["type", name] if BUILTIN_TYPES.get(name) is value else self._opaque(value)
        name = _name_by_text(type(value))
        if name is not None:
            return ["v", name, str(value)]
        wire = self._opaque(value)
        if wire is not None and wire[0] != DERIVED:
            return wire
        cls: Any = type(value)  # `isinstance` would consult the value too
        if issubclass(cls, tuple) and _has_field_names(value):  # type: ignore[arg-type]  # it is a tuple
            content = ["nt", cls.__name__, list(cls._fields), *self.items(tuple.__iter__(value))]  # type: ignore[arg-type]  # it is a tuple
            return [*wire, content] if wire else content
        for base, unwrap in _BASES:
            if issubclass(cls, base):
                return self.encode_derived(value, base, unwrap, wire or [])
        raise NotPlainError(f"a value of type {cls.__name__!r} is not plain data")


def packed(data: bytes) -> Wire:
    """Encode binary data."""
    return ["b64", binascii.b2a_base64(data, newline=False).decode()]


def unpacked(wire: Wire) -> bytes:
    """Decode the result of `packed`."""
    return binascii.a2b_base64(wire[1], strict_mode=True)


def unpacked_size(wire: Wire) -> int:
    """The number of bytes that `unpacked` would return, without decoding; -1 if `packed` did not make this."""
    if not (type(wire) is list and len(wire) == 2 and wire[0] == "b64" and type(wire[1]) is str):
        return -1
    return len(wire[1]) // 4 * 3 - wire[1][-2:].count("=")


def _name_by_text(cls: type) -> str | None:
    """The name of a class whose values are sent as text, None for any other class."""
    name = cls.__qualname__
    known = type(name) is str and name in _BY_TEXT and getattr(sys.modules.get(_BY_TEXT[name]), name, None) is cls
    return name if known else None


def _from_text(name: str, text: str) -> object:
    if name not in _BY_TEXT:
        raise ValueError(f"not a class of plain values: {name!r}")
    return getattr(importlib.import_module(_BY_TEXT[name]), name)(text)


def own_names(value: object) -> list[str] | None:
    """The special methods, and attributes of its base, that a value's class defines; None if it is like any of its base.

    Its further attributes are not listed. `value` derives from one of the classes of plain data.
    """
    cls: Any = type(value)
    base = next(base for base, _ in _BASES if issubclass(cls, base))
    fields = getattr(cls, "_fields", ()) if base is tuple else ()
    own = {}
    for each in reversed(cls.__mro__[: cls.__mro__.index(base)]):
        own.update(vars(each))
    named = bool(fields) and _has_field_names(value)  # type: ignore[arg-type]  # it is a tuple
    if getattr(own.get("__repr__"), "__code__", None) is _TEXT_OF_NAMED_TUPLES:
        del own["__repr__"]
    # Operators of the standard library's enumerations do to numbers what those of their base do.
    listed = [
        name for name in own if name in _TEXTS or (name in SPECIAL and getattr(own[name], "__module__", None) != "enum")
    ]
    listed += [name for name in own if not name.startswith("_") and hasattr(base, name) and name not in fields]
    has_more = not named and (getattr(value, "__dict__", None) or any(not name.startswith("_") for name in own))
    return listed if listed or has_more else None


def _has_field_names(value: tuple[object, ...]) -> bool:
    """Whether a tuple is a named tuple that the other side can rebuild."""
    cls = type(value)
    names = [cls.__name__, *getattr(cls, "_fields", ())]
    fields = set(names[1:])
    usable = all(type(name) is str and name.isidentifier() and not keyword.iskeyword(name) for name in names)
    whole = usable and 0 < len(fields) == tuple.__len__(value) and not any(name.startswith("_") for name in fields)
    return whole and all(_is_field(cls, name) for name in fields)


def _is_field(cls: type, name: str) -> bool:
    """Whether an attribute of a class is a field as named tuples have them, and not one that can be set."""
    found = next((vars(base)[name] for base in cls.__mro__ if name in vars(base)), None)
    return type(found) is _FIELD


@functools.lru_cache(maxsize=64)
def named_tuple(name: str, fields: tuple[str, ...]) -> type[Any]:
    """Make a named tuple class; names that are not identifiers raise ValueError, since the program chooses them."""
    return collections.namedtuple(name, fields)


DERIVED = "derived"
"""The tag of a value of a class that derives from one of plain data: a number, the class's name, `own_names`, the content."""
_FIELD: type = type(vars(named_tuple("Any", ("one",)))["one"])
_TEXT_OF_NAMED_TUPLES = named_tuple("Any", ("one",)).__repr__.__code__
_TEXTS = frozenset({"__str__", "__repr__", "__format__"})
_OF_ANY = ("eq", "ne", "lt", "le", "gt", "ge", "getattr", "setattr", "missing")
SPECIAL = frozenset(f"__{name}__" for name in (*PROTOCOLS, *_OF_ANY))
"""Special methods that decide what a value's operators do."""


def _encode_int(value: int) -> Wire:
    return value if -_BIG < value < _BIG else ["i", hex(value)]


def _flatten(pairs: Iterable[tuple[object, object]]) -> list[object]:
    return list(itertools.chain.from_iterable(pairs))


def _zoned(encoder: Encoder, tag: str, value: Any) -> Wire:
    """Encode a time with its zone; of a zone of the program's own with its offset alone."""
    zone = value.tzinfo
    is_known = zone is None or type(zone) is datetime.timezone or _name_by_text(type(zone)) is not None
    if not is_known:
        offset = value.utcoffset()
        zone = None if offset is None else datetime.timezone(offset)
    naive = value.replace(tzinfo=None).isoformat()
    wire = [tag, naive, None if zone is None else encoder.encode(zone), value.fold]
    return wire if is_known else ["more", wire]


def _in_zone(decoder: Decoder, value: Any, wire: Wire) -> Any:
    return value.replace(tzinfo=decoder.decode(wire[2]), fold=wire[3])


def stream_content(stream: Any) -> tuple[Wire, int]:
    """Text and position of an in-memory stream; the text is None if it is closed."""
    if stream.closed:
        return None, 0
    text = stream.getvalue()
    return text if isinstance(text, str) else text.decode("latin-1"), stream.tell()


_VALUES: tuple[tuple[type, str, Callable[[Any], Iterable[object]], Callable[..., object]], ...] = (
    (tuple, "t", lambda value: value, lambda *items: items),
    (frozenset, "f", lambda value: value, lambda *items: frozenset(items)),
    (bytes, "b", lambda value: (value.decode("latin-1"),), lambda text: text.encode("latin-1")),
    (complex, "c", lambda value: (value.real, value.imag), complex),
    (range, "rg", operator.attrgetter("start", "stop", "step"), range),
    (slice, "sl", operator.attrgetter("start", "stop", "step"), slice),
    (type(Ellipsis), "e", lambda _: (), lambda: ...),
    (type(NotImplemented), "ni", lambda _: (), lambda: NotImplemented),
    (decimal.Decimal, "dec", lambda value: (str(value),), decimal.Decimal),
    (fractions.Fraction, "fr", operator.attrgetter("numerator", "denominator"), fractions.Fraction),
    (datetime.date, "date", lambda value: (value.isoformat(),), datetime.date.fromisoformat),
    (datetime.timedelta, "td", operator.attrgetter("days", "seconds", "microseconds"), datetime.timedelta),
    (datetime.timezone, "tz", lambda value: value.__getinitargs__(), datetime.timezone),
    (time.struct_time, "st", lambda v: (*v, v.tm_zone, v.tm_gmtoff), lambda *items: time.struct_time(items)),
    (
        re.Pattern,
        "re",
        operator.attrgetter("pattern", "flags"),
        lambda text, flags: re.compile(text, flags & ~re.DEBUG),
    ),
    (type({}.keys()), "dk", lambda value: value, lambda *keys: dict.fromkeys(keys).keys()),
    (type({}.values()), "dv", lambda value: value, lambda *items: dict(enumerate(items)).values()),
    (type({}.items()), "di", _flatten, lambda *content: _pairs_to_dict(content).items()),
)
"""Classes of values, each with its tag, a function that returns the parts of a value, and one that builds it from them."""


def _encoder(tag: str, parts: Callable[[Any], Iterable[object]]) -> Callable[[Encoder, Any], Wire]:
    return lambda encoder, value: [tag, *encoder.items(parts(value))]


_ENCODERS: dict[type, Callable[[Encoder, Any], Wire]] = {
    **{cls: _encoder(tag, parts) for cls, tag, parts, _ in _VALUES},
    datetime.datetime: lambda encoder, value: _zoned(encoder, "dt", value),
    datetime.time: lambda encoder, value: _zoned(encoder, "tm", value),
}


@dataclass(frozen=True, slots=True)
class Kind:
    """A class of mutable containers, which are sent once, and then by number."""

    tag: str
    content: Callable[[Any], Sequence[object]]
    """What an instance holds: a list, of which each item is compared by its identity to find changes, or another sequence."""
    make: Callable[[Wire], Any]
    """Makes an empty instance."""
    fill: Callable[[Any, list[Any]], object]
    """Gives an instance this content, in place of its own."""
    head: Callable[[Any], list[Wire]] | None = None
    """What the wire holds before the content, for `make`."""
    encoded: Callable[[Encoder, Any], Wire] | None = None
    """Encodes an instance, where that is not its content item by item."""
    skipped: int = 1
    """The number of items of the wire before the content."""
    fits: Callable[[Any, Wire], bool] = lambda value, wire: True
    """Whether an instance can be filled from a wire of this kind."""

    def encode(self, encoder: Encoder, value: Any) -> Wire:
        """Encode an instance, or one of a subclass as if it were."""
        if self.encoded is not None:
            return self.encoded(encoder, value)
        return [self.tag, *(self.head(value) if self.head else ()), *encoder.items(self.content(value))]


def _fill_set(value: Any, content: list[Any]) -> None:
    set.clear(value)
    set.update(value, content)


def _fill_pairs(value: Any, content: list[Any]) -> None:
    """Replace the pairs; if the keys are the same, iterators continue, as they do after an assignment of items."""
    cls: Any = collections.OrderedDict if isinstance(value, collections.OrderedDict) else dict
    keys, items = content[::2], content[1::2]
    if not is_same([*cls.keys(value)], keys):
        cls.clear(value)
    for key, item in zip(keys, items, strict=True):
        cls.__setitem__(value, key, item)


def _fill_default(value: Any, content: list[Any]) -> None:
    value.default_factory = content[0]
    _fill_pairs(value, content[1:])


def _fill_queue(value: Any, content: list[Any]) -> None:
    value.clear()
    value.extend(content)


def _fill_stream(stream: Any, content: list[Any]) -> None:
    text, position = content
    if text is None:
        stream.close()
        return
    stream.seek(0)
    stream.truncate()
    stream.write(text if isinstance(stream, io.StringIO) else text.encode("latin-1"))
    stream.seek(position)


def _fill_slice(value: Any, content: Any) -> None:
    value[:] = content


def is_same(now: Sequence[object], before: Sequence[object]) -> bool:
    """Whether a container holds what it held before."""
    if type(now) is list and type(before) is list:
        # By identity: `True` is not `1`, and comparing objects could call the program.
        return len(now) == len(before) and all(map(operator.is_, now, before))
    return now == before


KINDS: dict[type, Kind] = {
    list: Kind("l", list.copy, lambda _: [], lambda value, content: list.__setitem__(value, slice(None), content)),
    set: Kind("s", lambda value: list(set.__iter__(value)), lambda _: set(), _fill_set),
    dict: Kind("d", lambda value: _flatten(dict.items(value)), lambda _: {}, _fill_pairs),
    collections.OrderedDict: Kind(
        "od", lambda value: _flatten(value.items()), lambda _: collections.OrderedDict(), _fill_pairs
    ),
    collections.Counter: Kind(
        "ct", lambda value: _flatten(dict.items(value)), lambda _: collections.Counter(), _fill_pairs
    ),
    collections.defaultdict: Kind(
        "dd",
        lambda value: [value.default_factory, *_flatten(value.items())],
        lambda _: collections.defaultdict(),
        _fill_default,
    ),
    collections.deque: Kind(
        "q", list, lambda wire: collections.deque(maxlen=wire[1]), _fill_queue, lambda value: [value.maxlen], skipped=2
    ),
    bytearray: Kind(
        "ba",
        lambda value: (value.decode("latin-1"),),
        lambda _: bytearray(),
        lambda value, content: _fill_slice(value, content[0].encode("latin-1")),
    ),
    array.array: Kind(
        "ar",
        tuple,
        lambda wire: array.array(wire[1]),
        lambda value, content: _fill_slice(value, array.array(value.typecode, content)),
        lambda value: [value.typecode],
        skipped=2,
    ),
    io.StringIO: Kind("sio", stream_content, lambda _: io.StringIO(), _fill_stream),
    io.BytesIO: Kind("bio", stream_content, lambda _: io.BytesIO(), _fill_stream),
}
_FREED_BY_RECURSION: set[type] = {collections.defaultdict, collections.deque, slice}
"""CPython frees all other containers without recursion, however deeply they nest."""
# The real content of an instance of a subclass, whatever methods the subclass overrides.
_BASES: tuple[tuple[type, Callable[[Any], object]], ...] = (
    (int, int.__int__),
    (float, float.__float__),
    (str, str.__str__),
    (bytes, lambda value: bytes(memoryview(value))),
    (list, lambda value: list.__getitem__(value, slice(None))),
    (tuple, lambda value: tuple.__getitem__(value, slice(None))),
    (dict, lambda value: dict(dict.items(value))),
    (set, lambda value: set(set.__iter__(value))),
    (frozenset, lambda value: frozenset(frozenset.__iter__(value))),
    (complex, lambda value: complex(complex.__add__(value, 0j))),
)


class Decoder:
    """Decodes the values of one message; everything it builds is a real builtin."""

    def __init__(self, special: Callable[[Wire], Any]) -> None:
        """Begin a message; `special` decodes what the other side's `opaque` encoded."""
        self._objects: list[Any] = []
        self._special = special
        self._nesting = 0

    def decode(self, wire: Wire) -> Any:
        """Decode one value; an invalid wire raises some exception, which the caller has to catch."""
        if type(wire) is not list:
            return wire
        tag = wire[0]
        if tag == "r":
            return self.refer(wire[1])
        kind = KINDS_BY_TAG.get(tag)
        if kind is not None:
            value = kind.make(wire)
            self._objects.append(value)
            content = self.content(wire)
            self.is_nesting(type(value), content)
            kind.fill(value, content)
            return value
        decoder = _DECODERS.get(tag)
        if decoder is not None:
            return decoder(self, wire)
        if tag in ("nt", "more", DERIVED):
            return self._special(wire)(self.content(wire))
        return self._special(wire)

    def content(self, wire: Wire) -> list[Any]:
        """Decode the content of a container."""
        return [self.decode(item) for item in wire[_SKIPPED.get(wire[0], 1) :]]

    def is_nesting(self, cls: type, content: Iterable[object]) -> bool:
        """Whether a container with this content must not nest too deeply; if so, count it: ValueError if too many do."""
        if cls not in _FREED_BY_RECURSION or _FREED_BY_RECURSION.isdisjoint(map(type, content)):
            return False
        self._nesting += 1
        if self._nesting > _MAX_NESTING:
            raise ValueError(f"more than {_MAX_NESTING} containers like {cls.__name__} in one another")
        return True

    def refer(self, number: int) -> object:
        """Return the container with this number."""
        return self._objects[number]


_SKIPPED = {"nt": 3, DERIVED: 4, **{kind.tag: kind.skipped for kind in KINDS.values()}}
KINDS_BY_TAG = {kind.tag: kind for kind in KINDS.values()}


def _decoder(cls: type, build: Callable[..., object]) -> Callable[[Decoder, Wire], object]:
    def decode(decoder: Decoder, wire: Wire) -> object:
        content = decoder.content(wire)
        decoder.is_nesting(cls, content)
        return build(*content)

    return decode


_DECODERS: dict[str, Callable[[Decoder, Wire], object]] = {
    **{tag: _decoder(cls, build) for cls, tag, _, build in _VALUES},
    "i": lambda _, wire: int(wire[1], 16),
    "b64": lambda _, wire: unpacked(wire),
    "dt": lambda decoder, wire: _in_zone(decoder, datetime.datetime.fromisoformat(wire[1]), wire),
    "tm": lambda decoder, wire: _in_zone(decoder, datetime.time.fromisoformat(wire[1]), wire),
    "v": lambda _, wire: _from_text(wire[1], wire[2]),
    "type": lambda _, wire: BUILTIN_TYPES[wire[1]],
}


def add_kind(cls: type, kind: Kind) -> None:
    """Let instances of a further class be sent as mutable containers."""
    KINDS[cls] = KINDS_BY_TAG[kind.tag] = kind
    _SKIPPED[kind.tag] = kind.skipped
    _FREED_BY_RECURSION.add(cls)


def add_value(
    cls: type, tag: str, encode: Callable[[Encoder, Any], Wire], decode: Callable[[Decoder, Wire], object]
) -> None:
    """Let instances of a further class be sent as values."""
    _ENCODERS[cls] = encode
    add_decoder(tag, decode)


def add_decoder(tag: str, decode: Callable[[Decoder, Wire], object]) -> None:
    """Decode a further tag."""
    _DECODERS[tag] = decode


def _pairs_to_dict(content: Sequence[Any]) -> dict[Any, Any]:
    return dict(zip(content[::2], content[1::2], strict=True))
