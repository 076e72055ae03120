"""The channel between candidate and tester, the report, and the table of the containers that the two share."""

from __future__ import annotations

import json
import os
import struct
import threading
from collections.abc import Iterator

import pytest

from verifiers.unit_tests.separate.channel import MAX_MESSAGE, Channel, ChannelClosedError, InvalidMessageError
from verifiers.unit_tests.separate.known import Known
from verifiers.unit_tests.separate.values import content_of


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


def known(*containers: object) -> Known:
    table = Known(content_of, 0)
    for container in containers:
        table.add(container)
    table.agree()
    return table


def test_a_container_is_held_directly_or_through_another() -> None:
    inner: list[object] = []
    outer = [inner, 1, [2]]
    table = known(outer, inner)
    assert table.look() == ([], [])
    del inner
    assert table.look() == ([], [])
    inner = outer[0]  # type: ignore[assignment]  # it is that list
    del outer
    assert table.look() == ([], [0])
    del inner
    assert table.look() == ([], [0, 2])


def test_containers_that_hold_one_another_are_released_together() -> None:
    one: list[object] = []
    two = [one]
    one.append(two)
    table = known(one, two)
    del one
    assert table.look() == ([], [])
    del two
    assert table.look() == ([], [0, 2])


def test_a_change_is_one_of_identity() -> None:
    table = known(numbers := [1, 2])
    numbers[0] = True
    assert table.look()[0] == [0]
    table.agree([0])
    assert table.look()[0] == []
    numbers.append(3)
    assert table.look()[0] == [0]


@pytest.mark.parametrize("number", [0, 2, -1, True, "1", 1.0, None])
def test_a_number_that_the_other_side_can_not_choose_is_refused(number: object) -> None:
    with pytest.raises(ValueError, match="can't be the number of a new container"):
        known([]).receive(number, [])


def test_an_unknown_number_can_not_be_forgotten() -> None:
    with pytest.raises(ValueError, match="no container has the number 8"):
        known([]).forget([8])
