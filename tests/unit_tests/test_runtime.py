"""The channel between candidate and tester, and the report."""

from __future__ import annotations

import json
import os
import struct
import threading
from collections.abc import Iterator

import pytest

from verifiers.unit_tests.separate.channel import MAX_MESSAGE, Channel, ChannelClosedError, InvalidMessageError


@pytest.fixture
def pipe() -> Iterator[tuple[Channel, int, Channel]]:
    reader, writer = os.pipe()
    yield Channel(reader, -1), writer, Channel(-1, writer)
    os.close(reader)


def frame(payload: bytes) -> bytes:
    return struct.pack("!I", len(payload)) + payload


def test_messages_come_whole_however_they_are_cut(pipe: tuple[Channel, int, Channel]) -> None:
    receiver, writer, _ = pipe
    messages = [["a", 1], {"b": None}, [], "x" * 5000, 3]
    data = b"".join(frame(json.dumps(message).encode()) for message in messages)
    sizes = [1, 2, 3, 7, 4096, 1]

    def write() -> None:
        rest, step = data, 0
        while rest:
            rest, step = rest[os.write(writer, rest[: sizes[step % len(sizes)]]) :], step + 1
        os.close(writer)

    thread = threading.Thread(target=write)
    thread.start()
    assert [receiver.receive() for _ in messages] == messages
    with pytest.raises(ChannelClosedError):
        receiver.receive()
    thread.join()


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (struct.pack("!I", MAX_MESSAGE + 1), "more than the limit"),
        (frame(b"[1"), "delimiter"),
        (frame(b"1 2"), "more than one value"),
        (frame(b"\xff"), "utf-8"),
        (frame(b"[" * 100_000 + b"]" * 100_000), "recursion"),
        (frame(b""), "Expecting value"),
    ],
)
def test_what_is_no_message_is_refused(pipe: tuple[Channel, int, Channel], data: bytes, says: str) -> None:
    receiver, writer, _ = pipe
    thread = threading.Thread(target=lambda: (os.write(writer, data), os.close(writer)))
    thread.start()
    with pytest.raises(InvalidMessageError, match=says):
        receiver.receive()
    while os.read(receiver._source, 1 << 16):
        pass  # so that the writer ends
    thread.join()
