"""A small program that a child of the fork server runs before the first job, to show which pages a child writes to."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Callable, Iterator

from ..protocol.channel import Channel
from .page_pinning import Trial

_SOURCE = """
from typing import List


def call(numbers: List[int]) -> int:
    return sum(number for number in numbers if number > 1)
"""
_CALL = ["call", ["h", 0], [["r", 0]], [], [[0, ["l", 3, 1, -2, True, 10]]], [0]]
_CALLS = 3


@contextlib.contextmanager
def trial(begin: Callable[[tuple[int, int, int]], object]) -> Iterator[Trial]:
    """Prepare the program and a tester's requests; `begin` makes a candidate: descriptors of requests, replies, program."""
    with contextlib.ExitStack() as stack:
        requests, asking, answering, answers = (
            stack.enter_context(os.fdopen(end, mode, buffering=0))
            for pipe in (os.pipe(), os.pipe())
            for end, mode in zip(pipe, ("rb", "wb"), strict=True)
        )
        program = stack.enter_context(os.fdopen(os.memfd_create("trial"), "wb", buffering=0))
        program.write(json.dumps({"files": {"solution.py": _SOURCE}, "main": "solution.py", "seed": 1}).encode())
        tester = Channel(answering.fileno(), asking.fileno())
        for request in (["resolve", None, ["call"], []], *[_CALL] * _CALLS):
            tester.send(request)
        descriptors = requests.fileno(), answers.fileno(), program.fileno()
        yield Trial(lambda: begin(descriptors), lambda: _await_replies(tester))


def _await_replies(tester: Channel) -> None:
    """Wait for the replies; RuntimeError if the program failed."""
    for expected in ("loaded", "resolved", *["returned"] * _CALLS):
        reply = tester.receive()
        if reply[0] != expected:
            raise RuntimeError(f"the sample program failed: {reply}")
