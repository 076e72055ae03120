"""The roles of a job in the jail, their preparation by the fork server, and the sample of what programs do."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from . import packages, program, serve
from .channel import Channel, ChannelClosedError

answer = program.answer
judge = serve.serve
_SAMPLE = """
from typing import List


def call(numbers: List[int]) -> int:
    return sum(number for number in numbers if number > 1)
"""
_REQUESTS = (
    ["resolve", [], [], None, ["call"], [], []],
    *(
        ["call", [], [], ["h", 0], ["t", ["l", 2 * n, None, 3, 1, -2, True, 10]], ["l", 2 * n + 100, None], []]
        for n in range(3)
    ),
)


def prepare(loaded: Mapping[str, Any]) -> None:
    """Let values of packages be sent."""
    packages.register(loaded)


@contextlib.contextmanager
def sample() -> Iterator[tuple[tuple[int, ...], Callable[[], object]]]:
    """A sample of what every program does: it answers calls."""
    null, source, (requests, asking) = os.open(os.devnull, os.O_RDWR), os.memfd_create("sample"), os.pipe()
    channel = Channel(null, asking)
    for request in _REQUESTS:
        channel.send(request)
    os.close(asking)
    os.write(source, json.dumps({"files": {"solution.py": _SAMPLE}, "main": "solution.py", "seed": 1}).encode())

    def run() -> None:
        with contextlib.suppress(ChannelClosedError):
            program.serve()

    try:
        yield (null, null, null, requests, null, source), run
    finally:
        for descriptor in (null, source, requests):
            os.close(descriptor)
