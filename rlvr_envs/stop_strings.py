"""Matches stop strings on the bytes of tokens, across token boundaries and at any offset."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from verifiers import InvalidArgumentError

_UNSEEN = -1


class StopStrings:
    """An automaton over bytes (Aho and Corasick 1975) that reads whole tokens.

    The first time a token appears, its transitions from all states are computed and kept.

    Args:
        strings: The stop strings; none of them may be empty.
        token_bytes: Returns the bytes of a token.
        vocab_size: The number of tokens.
    """

    def __init__(self, strings: Sequence[str], token_bytes: Callable[[int], bytes], vocab_size: int) -> None:
        if not all(strings):
            raise InvalidArgumentError(f"stop strings must be non-empty text, got {list(strings)!r}")
        self._patterns = tuple(string.encode() for string in strings)
        self._token_bytes = token_bytes
        self._prefixes = sorted({pattern[:end] for pattern in self._patterns for end in range(len(pattern))})
        self._states = {prefix: state for state, prefix in enumerate(self._prefixes)}
        self.matched = len(self._prefixes)
        """The state in which a stop string is complete. The state before any text is 0."""
        self._slots = np.full(vocab_size, _UNSEEN, dtype=np.int32)
        self._table = np.zeros((64, self.matched + 1), dtype=np.int32)
        self._used = 0

    def advance(self, states: NDArray[np.int32], tokens: NDArray[np.int64]) -> NDArray[np.int32]:
        """Read tokens i32[r] in states i32[r], and return the next states i32[r].

        The state `matched` means that a stop string is complete.
        """
        slots = self._slots[tokens]
        if (slots == _UNSEEN).any():
            for token in np.unique(tokens[slots == _UNSEEN]):
                self._add(int(token))
            slots = self._slots[tokens]
        return self._table[slots, states]

    def cut(self, data: bytes) -> bytes:
        """Return the data before the first complete stop string, or all of `data`.

        If several end at the same byte, the longest counts.
        """
        matches = [(start + len(pattern), start) for pattern in self._patterns if (start := data.find(pattern)) >= 0]
        return data[: min(matches)[1]] if matches else data

    def _add(self, token: int) -> None:
        if self._used == len(self._table):
            self._table = np.concatenate([self._table, np.zeros_like(self._table)])
        data = self._token_bytes(token)
        self._table[self._used] = [*(self._read(prefix, data) for prefix in self._prefixes), self.matched]
        self._slots[token] = self._used
        self._used += 1

    def _read(self, prefix: bytes, data: bytes) -> int:
        for offset in range(len(data)):
            text = prefix + data[offset : offset + 1]
            if text.endswith(self._patterns):
                return self.matched
            prefix = next(tail for start in range(len(text) + 1) if (tail := text[start:]) in self._states)
        return self._states[prefix]
