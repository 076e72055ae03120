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

from .candidate import Candidate
from .channel import Channel, ChannelClosedError
from .codec import Encoder
from .program import Program, module_name

_Call = tuple[str, tuple[object, ...]]
"""A function of the program, and arguments."""
_FILE = "solution.py"
_MODULE = module_name(_FILE)

_ROUNDS = 16
"""More than the interpreter waits for before it specialises code."""
_SOURCE = '''
import collections, functools, heapq, itertools, math, random, re, string
from typing import Any, Dict, List, Optional, Tuple


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


def fibonacci(n: int) -> int:
    return n if n < 2 else fibonacci(n - 1) + fibonacci(n - 2)


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
'''
_CALLS: tuple[_Call, ...] = (
    ("words", ("The cat, the dog. 12345 a",)),
    ("numbers", ([3, 1.5, -2, "x", True, 10, None],)),
    ("fibonacci", (6,)),
    ("everything", ("banana split", [3, 1, 2])),
    ("everything", ("orange", [1, 2, 3, 4, 5], {"a": [1, (2, 3)], "b": {1, 2}})),
)
_SMALL_SOURCE = """
from typing import List


def add(numbers: List[int]) -> int:
    return sum(number for number in numbers if number > 1)
"""
_SMALL_CALLS: tuple[_Call, ...] = (("add", ([1, 2, 3],)),) * 3

_kept: list[object] = []


def rehearse() -> None:
    """Run the sample program until the interpreter knows it.

    Raises:
        RuntimeError: If it fails.
    """
    for _ in range(_ROUNDS):
        with _stage(_SOURCE, _CALLS) as (run, tester):
            run()
            for _ in ("loaded", "resolved", *_CALLS):
                reply = tester.receive()
                if reply[0] == "raised":
                    raise RuntimeError(f"the sample program raised {reply[1]}")
    # What is kept holds the names, and with them the caches, that programs will look up.
    _kept.append(sys.modules.pop(_MODULE))


@contextlib.contextmanager
def small_program() -> Iterator[Callable[[], None]]:
    """Prepare a program that does what every program does, and little else; it runs when the function is called."""
    with _stage(_SMALL_SOURCE, _SMALL_CALLS) as (run, _):
        yield run


@contextlib.contextmanager
def _stage(source: str, calls: Sequence[_Call]) -> Iterator[tuple[Callable[[], None], Channel]]:
    """Prepare a program and a tester's requests; give what runs it, and the channel on which the replies come."""
    requests, replies = os.pipe(), os.pipe()
    tester = Channel(replies[0], requests[1])
    tester.send(["resolve", None, [name for name, _ in calls], []])
    for name, args in calls:
        tester.send(["call", name, Encoder(lambda _: None).items(args), []])
    os.close(requests[1])
    program = os.memfd_create("rehearsal")
    os.write(program, json.dumps({"files": {_FILE: source}, "main": _FILE, "seed": "rehearsal"}).encode())
    try:
        yield functools.partial(_serve, Channel(requests[0], replies[1]), program), tester
    finally:
        for descriptor in (program, requests[0], *replies):
            os.close(descriptor)


def _serve(channel: Channel, program: int) -> None:
    with contextlib.suppress(ChannelClosedError):
        Candidate(channel).serve(Program.read(os.dup(program)))
