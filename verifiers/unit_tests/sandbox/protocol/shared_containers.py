"""Mutable containers that candidate and tester share: each side has its own copy, and the copies are kept in step.

A container that is sent, in either direction, is entered into a table on both sides under a number. From then on it is sent
as its number, so `is` holds, and every message begins with the changes since the last one: the content of new and changed
containers, in which other containers are numbers too, so that cycles and aliases need no special care. The receiver
updates its copies in place.

A container counts as changed if it does not hold the very objects that it held when both sides last agreed. The tester stops
sharing a container when nothing in the tests refers to its copy any more.
"""

from __future__ import annotations

import array
import collections
import gc
import sys
from collections.abc import Callable, Sequence
from typing import Any

from .codec import DERIVED, KINDS, KINDS_BY_TAG, Decoder, Encoder, Wire, is_same

_Content = Sequence[object]

_CONTAINER_EFFORT = 8
_EFFORT = 16 << 20
"""Checking a container for changes costs as much as comparing `_CONTAINER_EFFORT` items, at 30 ns each. Once a job has compared
`_EFFORT` items, containers that were neither sent nor changed in the last `_RECENT` requests are no longer shared."""
_RECENT = 64
_NUMBERS_APART = 2
"""Each side assigns every second number."""


class ShortenedError(RuntimeError):
    """The program shortened a container over which the tests iterate, which would end their loop early."""


class _Entry:
    __slots__ = ("cls", "content", "epoch", "nests", "number", "value")

    def __init__(self, number: int, value: object, cls: type, epoch: int) -> None:
        self.number = number
        self.value = value
        self.cls = cls
        """The container's class, or the base class that it derives from."""
        self.content: _Content | None = None
        """The content on which both sides last agreed; None before that."""
        self.epoch = epoch
        """The request in which it was last sent or changed."""
        self.nests = False
        """Whether it is counted among the containers that must not nest too deeply."""


class Table:
    """The containers that this side shares with the other."""

    def __init__(self, opaque: Callable[[object], Wire], special: Callable[[Wire], Any], first: int) -> None:
        """Create an empty table, which assigns every second number from `first`; for the rest see `Encoder` and `Decoder`."""
        self.opaque = opaque
        self._entries: dict[int, _Entry] = {}
        self._by_id: dict[int, _Entry] = {}
        self._next = first
        self._epoch = 0
        self._effort = 0
        self._settling = False
        """Whether containers are being filled, which may request hashes from the other side; none counts as changed then."""
        self._special = special
        self._reader = _SharedDecoder(special, self._refer)

    def writer(self) -> Writer:
        """Begin a message."""
        return Writer(self)

    def reader(self) -> Decoder:
        """Begin to decode a message whose contents have been applied."""
        return self._reader

    def _refer(self, number: int) -> object:
        entry = self._entries[number]
        entry.epoch = self._epoch
        return entry.value

    def enter(self, value: object, cls: type) -> tuple[_Entry, bool]:
        """The entry of a container, and whether it is new."""
        entry = self._by_id.get(id(value))
        if entry is not None:
            entry.epoch = self._epoch
            return entry, False
        entry = self._add(self._next, value, cls)
        self._next += _NUMBERS_APART
        return entry, True

    def _add(self, number: int, value: object, cls: type) -> _Entry:
        entry = self._entries[number] = self._by_id[id(value)] = _Entry(number, value, cls, self._epoch)
        return entry

    def changed(self) -> list[tuple[_Entry, _Content]]:
        """Containers that have changed on this side since both last agreed, with their content; new ones are not included."""
        if self._settling:
            return []
        changes = []
        for entry in list(self._entries.values()):  # threads of the program may add some
            if entry.content is not None:
                now = KINDS[entry.cls].content(entry.value)
                self._effort += _CONTAINER_EFFORT + len(now)
                if not is_same(now, entry.content):
                    entry.epoch = self._epoch
                    changes.append((entry, now))
        return changes

    def apply(self, contents: Wire) -> list[object]:
        """Apply the content of containers that are new, which are returned, or that the other side has changed.

        Raises:
            ShortenedError: After all is applied, if a container that is being iterated over was shortened.
            Exception: If the contents are invalid.
        """
        if not contents:
            return []
        before, self._settling = self._settling, True
        try:
            new = [self._create(*item) for item in contents if item[0] not in self._entries]
            shortened = [
                type_name for number, wire, *_ in contents if (type_name := self._fill(number, wire)) is not None
            ]
        finally:
            self._settling = before
        if shortened:
            raise ShortenedError(f"{shortened[0]} changed size during iteration")
        return new

    def _create(self, number: object, wire: Wire, *derived: Wire) -> object:
        if type(number) is not int or number < 0 or self._is_own(number):
            raise ValueError(f"not a container number of the other side: {number!r}")
        value = KINDS_BY_TAG[wire[0]].make(wire)
        cls = type(value)
        if derived:
            value = self._special([DERIVED, None, *derived[1:]])([value])
        self._add(number, value, cls)
        return value

    def _is_own(self, number: int) -> bool:
        return (number - self._next) % _NUMBERS_APART == 0

    def is_from_other_side(self, value: object) -> bool:
        """Whether this is a shared container that came from the other side."""
        entry = self._by_id.get(id(value))
        return entry is not None and not self._is_own(entry.number)

    def _fill(self, number: int, wire: Wire) -> str | None:
        """Fill a container; return its type's name if it gets shorter while it is being iterated over."""
        entry = self._entries[number]
        kind = KINDS_BY_TAG[wire[0]]
        value: Any = entry.value
        if kind is not KINDS[entry.cls] or not kind.fits(value, wire):
            raise TypeError(f"a {entry.cls.__name__} can't be filled from {wire[0]!r}")
        content = self._reader.content(wire)
        entry.nests = entry.nests or self._reader.is_nesting(entry.cls, content)
        size = entry.cls.__len__(value) if entry.cls in _ITERATED_BLINDLY else 0  # type: ignore[attr-defined]  # they have one
        kind.fill(value, content)
        shortened = entry.content is not None and entry.cls in _ITERATED_BLINDLY and _may_end_loop(entry, size)
        entry.content = kind.content(value)
        entry.epoch = self._epoch
        return entry.cls.__name__ if shortened else None

    def release(self) -> list[int]:
        """Stop sharing containers that the tests can't reach any more, and return their numbers; after `Writer.contents`.

        A container that a cycle of containers refers to stays shared to the end of the job.
        """
        if self._settling:
            return []
        self._epoch += 1
        oldest = self._epoch - _RECENT if self._effort > _EFFORT else 0
        dropped = []
        # A container comes before its contents, which are then unreferenced too.
        for number in list(self._entries):
            entry = self._entries[number]
            is_unused = entry.epoch < oldest or sys.getrefcount(entry.value) <= _ALONE
            if is_unused and entry.content is not None:
                self._forget(entry)
                dropped.append(number)
        return dropped

    def forget(self, numbers: Sequence[int]) -> None:
        """Stop sharing the containers with these numbers."""
        for number in numbers:
            self._forget(self._entries[number])

    def _forget(self, entry: _Entry) -> None:
        del self._entries[entry.number], self._by_id[id(entry.value)]


class Writer(Encoder):
    """Encodes the values of one message, with containers as numbers."""

    def __init__(self, table: Table) -> None:
        """Begin a message; called by `Table.writer`."""
        super().__init__(table.opaque)
        self._table = table
        self._new: list[_Entry] = []
        self._agreed: list[tuple[_Entry, _Content]] = []

    def encode_container(self, value: object, cls: type) -> Wire:
        """Encode a mutable container as its number, and share it if it is not shared yet."""
        entry, is_new = self._table.enter(value, cls)
        if is_new:
            self._new.append(entry)
        return ["r", entry.number]

    def encode_derived(self, value: object, base: type, unwrap: Callable[[Any], object], derived: list[Wire]) -> Wire:
        """Encode an instance of a subclass; share it if it is a container that can be filled without its own methods."""
        if base in _FILLED_AS_BASE and not issubclass(type(value), collections.OrderedDict):
            return self.encode_container(value, base)
        return super().encode_derived(value, base, unwrap, derived)

    def contents(self) -> list[Wire]:
        """Encode, after the message's values, the contents that the other side needs before it decodes them."""
        wires = []
        for entry, now in self._table.changed():
            wires.append(self._content(entry, now))
        for entry in self._new:  # grows meanwhile
            wires.append(self._content(entry, KINDS[entry.cls].content(entry.value)))
        return wires

    def _content(self, entry: _Entry, now: _Content) -> Wire:
        self._agreed.append((entry, now))
        derived = () if type(entry.value) is entry.cls else self._table.opaque(entry.value) or ()
        return [entry.number, KINDS[entry.cls].encode(self, entry.value), *derived[1:]]

    def commit(self) -> None:
        """Record that the message was sent, so that both sides agree."""
        for entry, now in self._agreed:
            entry.content = now

    def abandon(self) -> None:
        """Undo the message, which can't be sent."""
        self._table.forget([entry.number for entry in self._new])


class _SharedDecoder(Decoder):
    def __init__(self, special: Callable[[Wire], Any], refer: Callable[[int], object]) -> None:
        super().__init__(special)
        self._refer = refer

    def refer(self, number: int) -> object:
        return self._refer(number)


_FILLED_AS_BASE = frozenset({list, set, dict})
"""Containers whose subclasses are read and filled without their own methods."""
_ITERATED_BLINDLY = frozenset({list, bytearray, array.array, set})
"""A loop over one of these ends early when it is shortened, or a set when it changes; iterators over others raise."""
_ITERATORS = (
    *map(type, (iter([]), reversed([]), iter(bytearray()), iter(array.array("b")), iter(set()))),
    type(reversed(bytearray())),
)


def _may_end_loop(entry: _Entry, size: int) -> bool:
    """Whether a container that was of this size is being iterated over and the loop would miss something."""
    cut_short = entry.cls is set or entry.cls.__len__(entry.value) < size  # type: ignore[attr-defined]  # it has one
    return cut_short and any(isinstance(referrer, _ITERATORS) for referrer in gc.get_referrers(entry.value))


def _references_of_one_alone() -> int:
    entry = _Entry(0, [], list, 0)
    return sys.getrefcount(entry.value)


_ALONE = _references_of_one_alone()
