"""Parts of the fork server and its children: the channel, the system-call filters, memory copied at the fork."""

from __future__ import annotations

import json
import os
import struct
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from verifiers import Problem
from verifiers.unit_tests import CallCase, CallTests, UnitTestVerifier
from verifiers.unit_tests.sandbox.isolation import syscalls
from verifiers.unit_tests.sandbox.protocol.channel import (
    MAX_MESSAGE,
    Channel,
    ChannelClosedError,
    InvalidMessageError,
    read_all,
)
from verifiers.unit_tests.sandbox.tester import report


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


def test_a_message_larger_than_a_pipe_arrives(pipe: tuple[Channel, int, Channel]) -> None:
    receiver, writer, sender = pipe
    message = [list(range(100_000)), "é" * 1000]
    thread = threading.Thread(target=sender.send, args=(message,))
    thread.start()
    assert receiver.receive() == message
    thread.join()
    os.close(writer)


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


def test_a_whole_file_is_read_wherever_its_offset_is() -> None:
    file = os.memfd_create("test")
    os.write(file, b"content" * 1000)
    assert read_all(file) == b"content" * 1000
    os.close(file)


CALLS_OF_THE_SERVER = ("sendmsg", "recvmsg", "wait4", "pidfd_open", "close_range")
CALLS_OF_NOBODY = ("io_uring_setup", "landlock_create_ruleset", "mount_setattr", "pivot_root", "capset")


@pytest.mark.parametrize("name", [*CALLS_OF_THE_SERVER, *CALLS_OF_NOBODY])
def test_a_program_may_not_call_what_only_the_server_needs(name: str) -> None:
    number = syscalls.NUMBERS[syscalls.MACHINE][name]
    program = f"""
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
def f(x):
    return [libc.syscall({number}, -1, 0, 0, 0, 0), ctypes.get_errno()]
"""
    verifier = UnitTestVerifier()
    verdict = verifier(program, Problem("p", "", CallTests("f", (CallCase((0,), [-1, 1]),))))
    verifier.close()
    assert verdict.score == 1, dict(verdict.detail)


FORKING = """
import os, resource
from verifiers.unit_tests.sandbox.server import page_pinning as hotpages
PAGES, SIZE = 400, 4096
memory = bytearray(b"x" * PAGES * SIZE)
hotpages_pinned = []
pin = hotpages._pin

def record_and_pin(pages):
    hotpages_pinned.append(list(pages))
    pin(hotpages_pinned[-1])

hotpages._pin = record_and_pin

def write_to_all():
    for page in range(PAGES):
        memory[page * SIZE + 100] = 1

def faults_of_a_child():
    reader, writer = os.pipe()
    if os.fork() == 0:
        before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
        write_to_all()
        after = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
        os.write(writer, str(after - before).encode())
        os._exit(0)
    os.wait()
    return int(os.read(reader, 100))

before = faults_of_a_child()
pinned = hotpages.pin_written_by(write_to_all)
print(before, pinned, faults_of_a_child(), sum(len(run) for run in hotpages_pinned))
"""


def test_a_child_meets_no_faults_where_the_fork_has_copied() -> None:
    done = subprocess.run([sys.executable, "-c", FORKING], capture_output=True, text=True, timeout=600, check=True)
    before, pinned, after, pages = done.stdout.split()
    assert int(before) >= 390
    if pinned == "False":
        pytest.skip("this system lets no process pin memory")
    assert int(after) < 100
    # Pages that the child has not written to are not pinned.
    assert int(pages) < 700


def test_a_report_that_is_full_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(report, "MAX_REPORT", 2 * report._LAST)
    with (tmp_path / "report").open("w+b", buffering=0) as file:
        written = report.Report(file.fileno(), ends_process=False)

        def fill() -> None:
            for number in range(10_000):
                written.write(passed=True, name=f"test_it[{number}]")

        with pytest.raises(report.JobEndedError):
            fill()
        written.write(passed=True, name="one more")
        lines = (tmp_path / "report").read_bytes().splitlines()
    assert report._LAST // 2 < sum(map(len, lines)) < 2 * report._LAST
    assert json.loads(lines[-1])["failure"] == "output_limit"
