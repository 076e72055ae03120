"""Small programs that children of the fork server run before its first job, to find out which pages a child writes to."""

from __future__ import annotations

import contextlib
import functools
import json
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from .channel import Channel
from .hotpages import Trial

_FILE = "solution.py"
_SOURCES = (
    """
from typing import List


def call(numbers: List[int]) -> int:
    return sum(number for number in numbers if number > 1)
""",
    """
import re, string
from typing import Dict, Optional


def call(values, sep: Optional[str] = None) -> Dict[str, int]:
    counts: Dict[str, int] = {}
    for word in "The cat, the dog. 12345 a".lower().replace(",", " ").split(sep):
        if not word.isdigit():
            counts[word] = counts.get(word, 0) + 1
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))
""",
    """
import collections, math


class Stack:
    def __init__(self, items=()):
        self.items = list(items)

    def push(self, item):
        self.items.append(item)
        return self


def call(values):
    squares = [value**2 % 7 for value in values if isinstance(value, (int, float))]
    seen = set(squares) | {1} - {3}
    return Stack(squares).push(max(seen)).items[::-1], math.sqrt(len(seen))
""",
)
_CALLS = 3


@contextlib.contextmanager
def trials(begin: Callable[[tuple[int, int, int]], object]) -> Iterator[list[Trial]]:
    """Prepare small programs for children to run.

    Args:
        begin: Makes a process a candidate with these descriptors: requests, replies, program.
    """
    with contextlib.ExitStack() as stack:
        stages = [stack.enter_context(_stage(source)) for source in _SOURCES]
        yield [Trial(functools.partial(begin, stage.descriptors), stage.await_replies) for stage in stages]


@dataclass
class _Stage:
    """A tester's requests, waiting to be answered."""

    descriptors: tuple[int, int, int]
    """The candidate's: requests, replies, program."""
    tester: Channel

    def await_replies(self) -> None:
        """Wait for the replies.

        Raises:
            RuntimeError: If the program failed.
        """
        for expected in ("loaded", None, *["returned"] * _CALLS):
            reply = self.tester.receive()
            if expected and reply[0] != expected:
                raise RuntimeError(f"a sample program failed: {reply}")


@contextlib.contextmanager
def _stage(source: str) -> Iterator[_Stage]:
    with contextlib.ExitStack() as stack:
        requests, asking, answering, answers = (
            stack.enter_context(os.fdopen(end, mode, buffering=0))
            for pipe in (os.pipe(), os.pipe())
            for end, mode in zip(pipe, ("rb", "wb"), strict=True)
        )
        program = stack.enter_context(os.fdopen(os.memfd_create("trial"), "wb", buffering=0))
        program.write(json.dumps({"files": {_FILE: source}, "main": _FILE, "seed": 1}).encode())
        tester = Channel(answering.fileno(), asking.fileno())
        tester.send(["resolve", None, ["call"], []])
        for _ in range(_CALLS):
            tester.send(["call", "call", [["l", 3, 1.5, -2, True, 10]], [], None, []])
        yield _Stage((requests.fileno(), answers.fileno(), program.fileno()), tester)
