"""The index of each problem of a difficulty: an order of the codes of its contents, in which each problem occurs once.

A family numbers its contents: a code is a whole number below `space`, and every content has codes in proportion to its
probability. A seed puts the codes in an order, and those whose content belongs to the split have the indices 0, 1, ...

* `ScannedOrder` scans the codes one by one, as far as needed, and remembers the ones it took: for spaces of which a large part
  may be wanted, and for families in which several codes ask the same.
* `DividedOrder` gives each index codes of its own, so that any index is found at once: for large spaces in which no two codes
  ask the same.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Hashable, Iterator
from hashlib import shake_128
from typing import Protocol

import numpy as np

MOST_SCANNED = 2**21
"""Largest space that is put in order as a whole."""
MOST_REPEATING = 2**17
"""The same if several codes ask the same question; codes of a larger space are drawn at random."""
MAX_DRAWS = 20_000
"""After this many codes without one in the split, the split counts as empty."""
MOST_REPEATED = 100
"""After this many draws in a row without a new question, the search ends: the questions that about one draw in twenty would
still find are left out, since finding them takes many times the draws of all the rest."""
_MOST_INDICES = 2**30
_ROUNDS = 4
_CHUNK = 4096
_DRAWN = 64


class Order(Protocol):
    """The codes of a split, by index."""

    def code(self, index: int) -> int | None:
        """Return the code that has an index; None if there are not as many."""
        ...

    def count(self, limit: int) -> int:
        """Count the indices that have a code, up to `limit`."""
        ...


class ScannedOrder:
    """The codes of a split, found in order as far as they are asked for.

    Args:
        space: Number of codes.
        question: The question that a code asks, equal for equal questions; None if it does not belong to the split.
        key: Seed of the order.
        repeats: Whether several codes may ask the same question.
        assured: Number of indices that have a code for certain, and need not be counted.
    """

    def __init__(
        self, space: int, question: Callable[[int], Hashable | None], key: bytes, *, repeats: bool, assured: int
    ) -> None:
        self._question, self._repeats, self._assured = question, repeats, assured
        finite = space <= (MOST_REPEATING if repeats else MOST_SCANNED)
        self._candidates = _shuffled(space, key) if finite else _drawn(space, key)
        self._patience, self._most_repeated = (space, space) if finite else (MAX_DRAWS, MOST_REPEATED)
        self._codes: list[int] = []
        self._seen: set[Hashable] = set()
        self._lock = threading.Lock()

    def code(self, index: int) -> int | None:
        """Return the code that has an index; None if there are not as many."""
        self._find_all(index + 1)
        return self._codes[index] if index < len(self._codes) else None

    def count(self, limit: int) -> int:
        """Count the indices that have a code, up to `limit`."""
        if limit <= self._assured:
            return limit
        self._find_all(limit)
        return min(len(self._codes), limit)

    def _find_all(self, wanted: int) -> None:
        with self._lock:
            while len(self._codes) < wanted and self._find():
                pass

    def _find(self) -> bool:
        """Find one more code, and return whether there was one."""
        repeated = 0
        for code in itertools.islice(self._candidates, self._patience):
            question = self._question(code)
            if question is None:
                continue
            if not self._repeats or question not in self._seen:
                self._seen.add(question)
                self._codes.append(code)
                return True
            repeated += 1
            if repeated == self._most_repeated:
                break
        self._patience = 0
        return False


class DividedOrder:
    """The codes of a split, where index i takes the first that belongs to it of places i, i + n, i + 2 n, ... of a permutation.

    Args:
        space: Number of codes.
        belongs: Whether a code belongs to the split.
        key: Seed of the order.
        places: Least number of places of an index: with so many, one that belongs to the split is all but certain.
    """

    def __init__(self, space: int, belongs: Callable[[int], bool], key: bytes, *, places: int) -> None:
        self._space, self._belongs, self._key = space, belongs, key
        self._indices = min(space // places, _MOST_INDICES)

    def code(self, index: int) -> int | None:
        """Return the code that has an index; None if there are not as many."""
        if index >= self._indices:
            return None
        last = min(self._space, self._indices * MAX_DRAWS)
        codes = (permuted(place, self._space, self._key) for place in range(index, last, self._indices))
        return next(filter(self._belongs, codes), None)

    def count(self, limit: int) -> int:
        """Count the indices that have a code, up to `limit`."""
        return min(self._indices, limit)


def permuted(number: int, space: int, key: bytes) -> int:
    """A pseudo-random permutation of the numbers below `space`, one number at a time.

    A Feistel network of four rounds (Luby and Rackoff 1988), repeated until its result is in range (cycle walking, Black and
    Rogaway 2002).
    """
    half = (space.bit_length() + 1) // 2
    width, mask = (half + 7) // 8, (1 << half) - 1
    while True:
        left, right = number >> half, number & mask
        for round_number in range(_ROUNDS):
            digest = shake_128(key + bytes([round_number]) + right.to_bytes(width, "little")).digest(width)
            left, right = right, left ^ (int.from_bytes(digest, "little") & mask)
        number = left << half | right
        if number < space:
            return number


def _shuffled(space: int, key: bytes) -> Iterator[int]:
    """All codes in random order."""
    order = _generator(key).permutation(np.arange(space, dtype=np.uint32))
    for start in range(0, space, _CHUNK):
        yield from order[start : start + _CHUNK].tolist()


def _drawn(space: int, key: bytes) -> Iterator[int]:
    """Random codes without end; 64 bits more than a code has make the remainder uniform."""
    generator, width = _generator(key), (space.bit_length() + 7) // 8 + 8
    while True:
        drawn = generator.bytes(_DRAWN * width)
        for start in range(0, len(drawn), width):
            yield int.from_bytes(drawn[start : start + width], "little") % space


def _generator(key: bytes) -> np.random.Generator:
    return np.random.Generator(np.random.PCG64(int.from_bytes(key, "little")))
