"""Mutable containers that one process has sent to the other and that both still hold.

Each process has its own copy of a container, under a common number. Every message begins with the changes that its sender has
made since the last message. So the copies agree whenever a process looks at one, for example at an argument that a function has
changed in place, or at a list that an object keeps and a test appends to. Once one process no longer holds a container, both
forget it.
"""

from __future__ import annotations

import operator
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

Content = Sequence[object]


@dataclass(slots=True)
class Entry:
    """A container, and its content when both processes last agreed; None while a message that contains it is made or read."""

    container: Any
    agreed: Content | None = None


class Known:
    """The containers that one process shares with the other."""

    def __init__(self, content_of: Callable[[Any], Content], first: int) -> None:
        """Start empty. One process numbers the containers that it sends from 0, the other from 1 (`first`), in steps of 2."""
        self._content_of = content_of
        self._entries: dict[int, Entry] = {}
        self._numbers: dict[int, int] = {}
        self._own = first
        self._next = first

    def number_of(self, container: object) -> int | None:
        """The number of a container that the other process also has; None for any other."""
        return self._numbers.get(id(container))

    def add(self, container: object) -> int:
        """Number a container that is about to be sent."""
        number, self._next = self._next, self._next + 2
        self._set(number, container)
        return number

    def receive(self, number: object, container: object) -> None:
        """Add a container that the other process has numbered; raises ValueError if it could not have chosen this number."""
        if type(number) is not int or number < 0 or number % 2 == self._own or number in self._entries:
            raise ValueError(f"{number!r} can't be the number of a new container"[:100])
        self._set(number, container)

    def _set(self, number: int, container: object) -> None:
        self._entries[number] = Entry(container)
        self._numbers[id(container)] = number

    def __getitem__(self, number: int) -> Any:
        """The container with this number; raises KeyError if there is none."""
        return self._entries[number].container

    def look(self) -> tuple[list[int], list[int]]:
        """The containers whose content has changed since both processes agreed, and those that are no longer held here.

        A container is held if anything but this table refers to it, directly or through other containers of the table.
        """
        if not self._entries:
            return [], []
        changed: list[int] = []
        inner: Counter[int] = Counter()
        members: dict[int, list[int]] = {}
        for number, entry in self._entries.items():
            content = self._content_of(entry.container)
            is_changed = entry.agreed is not None and not is_same(content, entry.agreed)
            members[number] = found = self._members(content)
            before = self._members(entry.agreed or ()) if is_changed else found
            if is_changed:
                changed.append(number)
            if found or before:
                # Both the container itself and the content agreed on refer to the members.
                inner.update(found + before)
        content = ()  # it refers to the members of the last container
        held = {n for n, entry in self._entries.items() if _references(entry) > _OWN + inner[n]}
        reachable = list(held)
        for number in reachable:  # the list grows in the loop
            reachable += {*members[number]} - held
            held.update(members[number])
        return changed, [number for number in self._entries if number not in held]

    def _members(self, content: Content) -> list[int]:
        """The numbers of the containers in a content, each as often as it occurs there."""
        if type(content) is not list or _LEAVES.issuperset(map(type, content)):
            return []
        return [self._numbers[id(item)] for item in content if id(item) in self._numbers]

    def agree(self, numbers: Iterable[int] = ()) -> None:
        """Record the content of these containers, and of the new containers of a message, as known to both processes."""
        for number in numbers:
            self._entries[number].agreed = None
        for entry in self._entries.values():
            if entry.agreed is None:
                entry.agreed = self._content_of(entry.container)

    def abandon(self) -> None:
        """Forget the containers that are new in a message that is not sent after all."""
        self.forget([number for number, entry in self._entries.items() if entry.agreed is None])

    def forget(self, numbers: Iterable[object]) -> None:
        """Forget containers that one process no longer holds; raises ValueError for a number that no container has."""
        for number in numbers:
            entry = self._entries.pop(number, None)  # type: ignore[call-overload]  # other types are no keys of it
            if entry is None:
                raise ValueError(f"no container has the number {number!r}"[:100])
            del self._numbers[id(entry.container)]


_LEAVES = frozenset({type(None), bool, int, float, complex, str, bytes})
"""Types of values that hold no other values."""


def is_same(now: Content, before: Content) -> bool:
    """Whether a container still holds exactly the same objects."""
    if type(now) is list and type(before) is list:
        # By identity: `True` is not `1`, and comparing objects could call the program.
        return len(now) == len(before) and all(map(operator.is_, now, before))
    return now == before


def _references(entry: Entry) -> int:
    container = entry.container
    return sys.getrefcount(container)


_OWN = _references(Entry([]))
"""The reference count of a container that nothing else refers to; it depends on the interpreter."""
