"""Messages between the two processes: values, preceded by changes of the containers that both hold."""

from __future__ import annotations

import array
import gc
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from .channel import Channel
from .known import Known
from .objects import PrefixObjects
from .values import Decoder, Encoder, Wire, content_of, kind_of

TESTS, PROGRAM = 0, 1
"""The two processes, each with the first number that it gives to containers."""


class Messages:
    """Sends and receives messages for one of the two processes."""

    def __init__(
        self,
        channel: Channel,
        side: int,
        objects: PrefixObjects,
        opaque: Callable[[Encoder, object], Wire],
        special: Callable[[Decoder, Wire], Any],
    ) -> None:
        """Begin without messages; `opaque` and `special` encode and decode values that are not plain data."""
        self._channel = channel
        self._known = Known(content_of, side)
        self.objects = objects
        self._opaque = opaque
        self._special = special
        self._open: list[tuple[list[int], list[int], list[Wire]]] = []
        """Numbers of changed and released containers of the messages being decoded; decoding a message may send another."""
        self.cuts_loop = False
        """Whether a message has shortened a container over which this process loops, so that the loop ends early."""

    def send(self, kind: str, *values: object, plain: Sequence[Wire] = ()) -> None:
        """Send values, preceded by plain JSON, which is not encoded again.

        Raises:
            NotPlainError: If a value can't be sent; nothing is sent then.
            RecursionError: If a value is nested too deeply.
            ChannelClosedError, InvalidMessageError: As `Channel.send`.
        """
        changed, released = self._known.look()
        encoder = Encoder(self._known, self._opaque)
        try:
            changes = [self._change(encoder, number) for number in changed]
            message = [kind, changes, released, *plain, *encoder.items(values)]
            message.append(encoder.rest())
            self._channel.send(message)
        except BaseException:
            self._known.abandon()
            raise
        self._known.agree(changed)
        self._known.forget(released)

    def _change(self, encoder: Encoder, number: int) -> Wire:
        container = self._known[number]
        return [number, *encoder.content(container, kind_of(container))]

    def has_changes(self) -> bool:
        """Whether this process has changed a container since the last message."""
        return bool(self._known.look()[0])

    def receive(self) -> Wire:
        """Wait for a message, apply its changes, and return its kind and its content, which is not decoded yet."""
        kind, changes, released, *content, rest = self._channel.receive()
        decoder = self.decoder()
        for number, *wires in changes:
            container = self._known[number]
            size = len(container) if type(container) in _ITERATORS else 0
            decoder.fill(container, kind_of(container), wires)
            self.cuts_loop |= size > 0 and _ends_loop(container, size)
        self._open.append(([number for number, *_ in changes], released, rest))
        return [kind, *content]

    def decoder(self) -> Decoder:
        """A decoder for the values of the last message; `done` must be called before anything is sent."""
        return Decoder(self._known, self._special)

    def done(self) -> None:
        """End the decoding of a message: fill the containers whose content was deferred."""
        changed, released, rest = self._open.pop()
        decoder = self.decoder()
        for number, *wires in rest:
            container = self._known[number]
            decoder.fill(container, kind_of(container), wires)
        self._known.agree(changed)
        self._known.forget(released)


_ITERATORS: dict[type, tuple[type, ...]] = {
    list: (type(iter([])), type(reversed([]))),
    bytearray: (type(iter(bytearray())), type(reversed(bytearray()))),
    array.array: (type(iter(array.array("b"))),),
    set: (type(iter(set())),),
}
"""Containers over which a loop ends early if they get shorter, with their iterators; other iterators raise an exception."""


def _ends_loop(container: Any, size: int) -> bool:
    is_shorter = len(container) < size or type(container) is set
    return is_shorter and any(isinstance(each, _ITERATORS[type(container)]) for each in gc.get_referrers(container))


def keywords(kwargs: Mapping[str, object]) -> list[object]:
    """Keyword arguments as a list of names and values."""
    return [part for pair in kwargs.items() for part in pair]
