"""The order of the problems of a difficulty: an order of codes in which each problem occurs once.

A family numbers its contents: a code is a whole number below `space`, and a content has a number of codes proportional to the
content's probability. A seed puts the codes in an order, and the codes whose content belongs to the split get the indices 0, 1,
...

* `ScannedOrder` scans the codes one by one, as far as needed, and remembers the accepted codes. This order is for small spaces,
  where a large part of the codes may be needed, and for families in which several codes ask the same question.
* `DividedOrder` gives each index its own codes, so that the code of any index is found at once. This order is for large spaces
  in which no two codes ask the same question.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Hashable, Iterator
from hashlib import shake_128

import numpy as np

MOST_SCANNED = 2**21
"""Size of the largest space that is ordered as a whole."""
MOST_REPEATING = 2**17
"""The same limit if several codes may ask the same question. Codes of a larger space are drawn at random."""
MAX_DRAWS = 20_000
"""If this number of codes contains no code of the split, the split counts as empty."""
MOST_REPEATED = 100
"""The search ends after this number of draws in a row without a new question. The remaining questions are left out; to find
them all would take many times as many draws."""
_MOST_INDICES = 2**30
_ROUNDS = 4
_CHUNK = 4096
_DRAWN = 64


class ScannedOrder:
    """The codes of a split, found in order as far as they are needed.

    Args:
        space: Number of codes.
        question: Returns the key of a code's question; None if the code does not belong to the split. Equal questions have
            equal keys.
        key: Seed of the order.
        repeats: Whether several codes may ask the same question.
        assured: Number of indices that certainly have a code, so that these codes need not be counted.
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
        """Return the code of an index; None if there are fewer codes."""
        self._find_all(index + 1)
        return self._codes[index] if index < len(self._codes) else None

    def count(self, limit: int) -> int:
        """Return the number of indices that have a code, at most `limit`."""
        if limit <= self._assured:
            return limit
        self._find_all(limit)
        return min(len(self._codes), limit)

    def _find_all(self, wanted: int) -> None:
        with self._lock:
            while len(self._codes) < wanted and self._find():
                pass

    def _find(self) -> bool:
        """Find one more code, and return whether one was found."""
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
    """The codes of a split: index i gets the first code of the split among places i, i + n, i + 2 n, ... of a permutation.

    Args:
        space: Number of codes.
        belongs: Returns whether a code belongs to the split.
        key: Seed of the order.
        places: Minimum number of places of an index, so large that almost certainly one of the places has a code of the split.
    """

    def __init__(self, space: int, belongs: Callable[[int], bool], key: bytes, *, places: int) -> None:
        self._space, self._belongs, self._key = space, belongs, key
        self._indices = min(space // places, _MOST_INDICES)

    def code(self, index: int) -> int | None:
        """Return the code of an index; None if there are fewer codes."""
        if index >= self._indices:
            return None
        last = min(self._space, self._indices * MAX_DRAWS)
        codes = (permuted(place, self._space, self._key) for place in range(index, last, self._indices))
        return next(filter(self._belongs, codes), None)

    def count(self, limit: int) -> int:
        """Return the number of indices that have a code, at most `limit`."""
        return min(self._indices, limit)


Order = ScannedOrder | DividedOrder


def permuted(number: int, space: int, key: bytes) -> int:
    """The place of one number in a pseudo-random permutation of the numbers below `space`.

    The permutation is a Feistel network of four rounds (Luby and Rackoff 1988), applied until the result is in range (cycle
    walking, Black and Rogaway 2002).
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
    """Random codes without end.

    Each code is the remainder of a number with 64 more bits than a code, so that codes are uniform.
    """
    generator, width = _generator(key), (space.bit_length() + 7) // 8 + 8
    while True:
        drawn = generator.bytes(_DRAWN * width)
        for start in range(0, len(drawn), width):
            yield int.from_bytes(drawn[start : start + width], "little") % space


def _generator(key: bytes) -> np.random.Generator:
    return np.random.Generator(np.random.PCG64(int.from_bytes(key, "little")))
