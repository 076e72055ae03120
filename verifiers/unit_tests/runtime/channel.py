"""Length-prefixed JSON messages between candidate and tester, and reading whole files by descriptor."""

from __future__ import annotations

import json
import os
import struct
from collections.abc import Callable
from typing import Any

MAX_MESSAGE = 16 << 20
"""Bytes; a result or argument that takes more is refused."""

_HEADER = struct.Struct("!I")


class ChannelClosedError(Exception):
    """The other side is gone."""


class InvalidMessageError(Exception):
    """The other side sent something that is no message, or one too large."""


class Channel:
    """One end of a stream of messages.

    The functions are bound once, so that a program which replaces them in their modules harms itself alone.
    """

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._dumps: Callable[[Any], str] = json.JSONEncoder(separators=(",", ":"), check_circular=False).encode
        self._loads = json.loads
        self._read = os.read
        self._write = os.write

    def send(self, message: object) -> None:
        """Send one message.

        Raises:
            ChannelClosedError: If the other side is gone.
            InvalidMessageError: If the message is too large.
        """
        payload = self._dumps(message).encode("ascii")
        if len(payload) > MAX_MESSAGE:
            raise InvalidMessageError(f"{len(payload)} bytes, more than the limit of {MAX_MESSAGE}")
        data = memoryview(_HEADER.pack(len(payload)) + payload)
        try:
            while data:
                data = data[self._write(self._descriptor, data) :]
        except OSError as error:
            raise ChannelClosedError(str(error)) from error

    def receive(self) -> Any:
        """Wait for one message.

        Raises:
            ChannelClosedError: If the other side is gone.
            InvalidMessageError: If what came is no JSON of at most `MAX_MESSAGE` bytes.
        """
        (length,) = _HEADER.unpack(self._read_exactly(_HEADER.size))
        if length > MAX_MESSAGE:
            raise InvalidMessageError(f"{length} bytes, more than the limit of {MAX_MESSAGE}")
        try:
            return self._loads(self._read_exactly(length))
        except (ValueError, RecursionError, MemoryError) as error:
            raise InvalidMessageError(str(error)) from error

    def _read_exactly(self, count: int) -> bytes:
        parts = []
        while count:
            try:
                part = self._read(self._descriptor, min(count, 1 << 20))
            except OSError as error:
                raise ChannelClosedError(str(error)) from error
            if not part:
                raise ChannelClosedError("end of stream")
            parts.append(part)
            count -= len(part)
        return b"".join(parts)


def read_all(descriptor: int) -> bytes:
    """Read a file from its beginning to its end, and close it."""
    with os.fdopen(descriptor, "rb") as file:
        file.seek(0)
        return file.read()
