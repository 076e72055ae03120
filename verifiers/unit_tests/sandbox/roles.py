"""The tester of every kind of tests, and the sample by which the fork server finds the memory that candidates write to."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Callable, Iterator

from .candidate import candidate
from .protocol.channel import Channel, ChannelClosedError
from .tester import tester
from .tester.test_files import own_process

_SAMPLE = """
from typing import List


def call(numbers: List[int]) -> int:
    return sum(number for number in numbers if number > 1)
"""
_SAMPLE_CALL = ["call", ["h", 0], [["r", 0]], [], [[0, ["l", 3, 1, -2, True, 10]]], [0]]


def run_tests() -> None:
    """Serve one job after another as the tester."""
    tester.serve(own_process.run_alone)


@contextlib.contextmanager
def sample() -> Iterator[tuple[tuple[int, ...], Callable[[], object]]]:
    """What every candidate does: it answers a tester's calls of a small program."""
    null, program, (requests, asking) = os.open(os.devnull, os.O_RDWR), os.memfd_create("sample"), os.pipe()
    channel = Channel(null, asking)
    for request in (["resolve", None, ["call"], []], *[_SAMPLE_CALL] * 3):
        channel.send(request)
    os.close(asking)
    os.write(program, json.dumps({"files": {"solution.py": _SAMPLE}, "main": "solution.py", "seed": 1}).encode())

    def run() -> None:
        with contextlib.suppress(ChannelClosedError):
            candidate.serve()

    try:
        yield (null, null, null, requests, null, program), run
    finally:
        for descriptor in (null, program, requests):
            os.close(descriptor)
