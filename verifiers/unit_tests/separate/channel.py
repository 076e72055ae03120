"""Length-prefixed JSON messages between the process of the program and the process of the tests."""

from __future__ import annotations

import json
import os
import struct
from collections.abc import Callable
from typing import Any

MAX_MESSAGE = 16 << 20
"""Maximum size of a message in bytes; a larger result or argument is refused."""

_HEADER = struct.Struct("!I")
_ENCODER = json.JSONEncoder(separators=(",", ":"), check_circular=False, ensure_ascii=False)
_DECODER = json.JSONDecoder()
_CHUNK, _MAX_CHUNK = 1 << 12, 1 << 20
"""Minimum and maximum number of bytes that are read at once; most messages arrive whole, with their header."""


class ChannelClosedError(Exception):
    """The process at the other end has closed the channel or ended."""


class InvalidMessageError(Exception):
    """A message is malformed or too large."""


class Channel:
    """One end of a stream of messages.

    The functions that a channel calls are bound once, so replacing them in their modules has no effect on it.
    """

    def __init__(self, source: int, sink: int) -> None:
        """Make one end of a channel that reads from the descriptor `source` and writes to `sink`."""
        self._source = source
        self._sink = sink
        self._rest = b""
        self._encode: Callable[[Any], str] = _ENCODER.encode
        self._decode: Callable[[str], tuple[Any, int]] = _DECODER.raw_decode
        self._read = os.read
        self._write = os.write

    def send(self, message: object) -> None:
        """Send a message; raises ChannelClosedError if the other end is closed, InvalidMessageError if it is too large."""
        # Not in ASCII: as escapes, two adjacent lone surrogates would be decoded as one character.
        payload = self._encode(message).encode("utf-8", "surrogatepass")
        if len(payload) > MAX_MESSAGE:
            raise InvalidMessageError(f"{len(payload)} bytes, more than the limit of {MAX_MESSAGE}")
        data = memoryview(_HEADER.pack(len(payload)) + payload)
        try:
            while data:
                data = data[self._write(self._sink, data) :]
        except OSError as error:
            raise ChannelClosedError(str(error)) from error

    def receive(self) -> Any:
        """Wait for a message; raises ChannelClosedError if the other end is closed, InvalidMessageError if it is invalid."""
        data = self._read_on(self._rest, _HEADER.size)
        (length,) = _HEADER.unpack_from(data)
        if length > MAX_MESSAGE:
            raise InvalidMessageError(f"{length} bytes, more than the limit of {MAX_MESSAGE}")
        end = _HEADER.size + length
        data = self._read_on(data, end)
        self._rest = data[end:]
        try:
            text = data[_HEADER.size : end].decode("utf-8", "surrogatepass")
            message, stop = self._decode(text)
        except (ValueError, RecursionError, MemoryError) as error:
            raise InvalidMessageError(str(error)) from error
        if stop != len(text):
            raise InvalidMessageError("more than one value in a message")
        return message

    def _read_on(self, data: bytes, count: int) -> bytes:
        """Read on until `data` has at least `count` bytes."""
        if len(data) >= count:
            return data
        chunks, size = [data], len(data)
        while size < count:
            try:
                chunk = self._read(self._source, max(_CHUNK, min(count - size, _MAX_CHUNK)))
            except OSError as error:
                raise ChannelClosedError(str(error)) from error
            if not chunk:
                raise ChannelClosedError("end of stream")
            chunks.append(chunk)
            size += len(chunk)
        return b"".join(chunks)
