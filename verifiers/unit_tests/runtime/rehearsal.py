"""A sample program, run in the fork server before its first job exactly as a candidate runs one.

Children then inherit bytecode that is already specialised, types whose methods are already in the interpreter's caches,
and memory that is already theirs to use: half of what a short program costs otherwise goes into first times.
"""

from __future__ import annotations

import contextlib
import functools
import json
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from .candidate import Candidate
from .channel import Channel, ChannelClosedError
from .hotpages import Trial
from .program import Program, module_name
from .sharing import Copies, Table

_Call = tuple[str, tuple[object, ...]]
"""A function of the program, and arguments."""
_FILE = "solution.py"
_MODULE = module_name(_FILE)

_ROUNDS = 16
"""More than the interpreter waits for before it specialises code."""
_IMPORTS = """
import collections, functools, heapq, itertools, math, random, re, string
from typing import Any, Dict, List, Optional, Tuple
"""
_WORDS = '''
def words(text: str, sep: Optional[str] = None) -> Dict[str, int]:
    """Count words.

    >>> words("a b a")
    {'a': 2, 'b': 1}
    """
    counts: Dict[str, int] = {}
    for word in text.lower().replace(",", " ").split(sep):
        word = word.strip().strip(".")
        if not word or word.isdigit() and len(word) > 3:
            continue
        counts[word] = counts.get(word, 0) + 1
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))
'''
_NUMBERS = """
def numbers(values: List[Any]) -> Tuple[List[float], float]:
    squares = [value ** 2 % 7 for value in values if isinstance(value, (int, float))]
    total, index = 0, 0
    while index < len(squares):
        total += abs(squares[index]) // 2 + int(math.sqrt(squares[index]))
        index += 1
    best = max(squares) if squares else None
    seen = set(squares) | {best, 1} - {3}
    squares.append(sum(seen & {1, 2, 4}))
    squares.extend(range(3))
    squares.sort(reverse=True)
    return squares[::-1][1:], round(total / (len(squares) or 1), 2)
"""
_STACK = """
class Stack:
    limit = 3

    def __init__(self, items=()):
        self.items = list(items)

    def push(self, item):
        if len(self.items) >= self.limit:
            raise ValueError(f"full: {item!r}")
        self.items.append(item)
        return self

    def __len__(self):
        return len(self.items)
"""
_FIBONACCI = """
def fibonacci(n: int) -> int:
    return n if n < 2 else fibonacci(n - 1) + fibonacci(n - 2)
"""
_EVERYTHING = """
def everything(text, values, table=None, *rest, **options):
    stack = Stack()
    try:
        for value in values:
            stack.push(value)
    except (ValueError, TypeError) as error:
        message = str(error)
    else:
        message = "%s of %d" % (text, len(stack))
    finally:
        values = list(values)
    primes = [n for n in range(2, 30) if all(n % d for d in range(2, int(n ** 0.5) + 1))]
    letters = "".join(chr((ord(c) - 97 + 3) % 26 + 97) if c.islower() else c.upper() for c in text)
    pairs = {a: b for a, b in zip(primes, reversed(primes))}
    heap = [5, 1, 4]
    heapq.heapify(heap)
    queue = collections.deque([heapq.heappop(heap)])
    queue.append(collections.Counter(letters).most_common(1)[0][1])
    found = re.findall(r"[a-z]+|[0-9]+", text.lower())
    triples = list(itertools.islice(itertools.combinations(values, 2), 3))
    product = functools.reduce(lambda a, b: a * b, primes[:3], 1)
    tail = text[-1:] + text[::2] if text and text.endswith(("a", "e")) else text.zfill(5)
    matrix = [[0] * 3 for _ in range(3)]
    for i, row in enumerate(matrix):
        for j, _ in enumerate(row):
            matrix[i][j] = i * j if i != j else -1
    generator = (x for x in map(str, primes) if x not in "35")
    values[0], values[-1] = values[-1], values[0]
    del values[1:2]
    count = text.count("a") + text.find("b") + bool(table) + (0 if table is None else len(table))
    return [message, letters, sorted(pairs)[:3], queue.popleft(), found, triples, product, tail, matrix[1], next(generator),
            any(primes), min(primes), bin(6)[2:], hex(255), divmod(7, 2), float("1.5"), tuple(values), count, 1 < 2 <= 3]
"""
_SOURCE = _IMPORTS + _WORDS + _NUMBERS + _STACK + _FIBONACCI + _EVERYTHING
_CALL_WORDS: _Call = ("words", ("The cat, the dog. 12345 a",))
_CALL_NUMBERS: _Call = ("numbers", ([3, 1.5, -2, "x", True, 10, None],))
_CALL_FIBONACCI: _Call = ("fibonacci", (6,))
_CALLS: tuple[_Call, ...] = (
    _CALL_WORDS,
    _CALL_NUMBERS,
    _CALL_FIBONACCI,
    ("everything", ("banana split", [3, 1, 2])),
    ("everything", ("orange", [1, 2, 3, 4, 5], {"a": [1, (2, 3)], "b": {1, 2}})),
)
_SMALL_SOURCE = """
from typing import List


def add(numbers: List[int]) -> int:
    return sum(number for number in numbers if number > 1)
"""
_TRIALS: tuple[tuple[str, _Call], ...] = (
    (_SMALL_SOURCE, ("add", ([1, 2, 3],))),
    (_IMPORTS + _WORDS, _CALL_WORDS),
    (_IMPORTS + _NUMBERS, _CALL_NUMBERS),
    (_FIBONACCI, _CALL_FIBONACCI),
    (_STACK, ("Stack", ([1, 2],))),
)
"""Small programs, each with a call."""

_TRIAL_CALLS = 3

_kept: list[object] = []


def rehearse() -> None:
    """Run the sample program until the interpreter knows it.

    Raises:
        RuntimeError: If it fails.
    """
    for _ in range(_ROUNDS):
        with _stage(_SOURCE, _CALLS) as stage:
            stage.hang_up()
            with contextlib.suppress(ChannelClosedError):
                requests, replies, program = stage.descriptors
                Candidate(Channel(requests, replies)).serve(Program.read(os.dup(program)))
            stage.await_replies()
    # What is kept holds the names, and with them the caches, that programs will look up.
    _kept.append(sys.modules.pop(_MODULE))


@contextlib.contextmanager
def trials(begin: Callable[[tuple[int, int, int]], object]) -> Iterator[list[Trial]]:
    """Prepare small programs for children to run.

    Args:
        begin: Makes a process a candidate with these descriptors: requests, replies, program.
    """
    with contextlib.ExitStack() as stack:
        stages = [stack.enter_context(_stage(source, [call] * _TRIAL_CALLS)) for source, call in _TRIALS]
        yield [Trial(functools.partial(begin, stage.descriptors), stage.await_replies) for stage in stages]


@dataclass
class _Stage:
    """A tester's requests, waiting to be answered."""

    descriptors: tuple[int, int, int]
    """The candidate's: requests, replies, program."""
    tester: Channel
    expected: int
    """Replies."""
    hang_up: Callable[[], object]
    """Ends the requests."""

    def await_replies(self) -> None:
        """Wait for the replies.

        Raises:
            RuntimeError: If the program failed.
        """
        for _ in range(self.expected):
            reply = self.tester.receive()
            if reply[0] in ("raised", "unloadable"):
                raise RuntimeError(f"the sample program failed: {reply}")


def _refuse(value: object) -> None:
    """Encode none but plain data."""


@contextlib.contextmanager
def _stage(source: str, calls: Sequence[_Call]) -> Iterator[_Stage]:
    with contextlib.ExitStack() as stack:
        requests, asking, answering, answers = (
            stack.enter_context(os.fdopen(end, mode, buffering=0))
            for pipe in (os.pipe(), os.pipe())
            for end, mode in zip(pipe, ("rb", "wb"), strict=True)
        )
        program = stack.enter_context(os.fdopen(os.memfd_create("rehearsal"), "wb", buffering=0))
        program.write(json.dumps({"files": {_FILE: source}, "main": _FILE, "seed": 1}).encode())
        tester = Channel(answering.fileno(), asking.fileno())
        tester.send(["resolve", None, [name for name, _ in calls], []])
        table, copies = Table(_refuse, _refuse, first=0), Copies(_refuse, _refuse)
        for number, (name, args) in enumerate(calls):
            crossing = table if number % 2 else copies
            writer = crossing.writer()
            tester.send(["call", name, writer.items(args), [], writer.contents(), crossing.release()])
            writer.commit()
        descriptors = requests.fileno(), answers.fileno(), program.fileno()
        yield _Stage(descriptors, tester, len(["loaded", "resolved", *calls]), asking.close)
