"""The state of each row: the seed of its episode, the last requested tokens, and the request under way."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from agents.policies.vllm.engine import SampledCompletion
from agents.policies.vllm.engine_group import EngineGroup, Ticket
from agents.seeding import mix


class Rows:
    """The rows of one policy; a row is added when it is first seen.

    Args:
        engines: The engines that sample.
        new_seed: Returns a seed u64[1] for episodes that a plain act loop has begun without an announcement.
    """

    def __init__(self, engines: EngineGroup, new_seed: Callable[[], NDArray[np.uint64]]) -> None:
        self._engines = engines
        self._new_seed = new_seed
        self._seeds = np.zeros(0, dtype=np.uint64)
        self._tokens = np.zeros((0, 0), dtype=np.int32)
        self._length = np.zeros(0, dtype=np.int64)
        self._under_way: dict[int, Ticket] = {}

    def begin(self, rows: NDArray[np.int64], seeds: NDArray[np.uint64]) -> None:
        """Begin new episodes in some rows, with their seeds u64[r]."""
        self._fit(int(rows.max(initial=-1)) + 1, 0)
        self._cancel(rows)
        self._seeds[rows] = seeds
        self._length[rows] = 0

    def to_request(
        self, asked: NDArray[np.int64], tokens: NDArray[np.int32], length: NDArray[np.int64]
    ) -> NDArray[np.int64]:
        """The rows among `asked` i64[r] whose completions are not under way.

        `tokens` i32[b l] and `length` i64[b], the number of tokens, are those of all rows.

        Rows that do not continue their last requested tokens have started another episode, with another seed.
        """
        width = tokens.shape[1]
        self._fit(len(tokens), width)
        last = self._length[asked]
        compared = min(width, int(last.max(initial=0)))  # the rest of the buffer, which may be long, is not copied
        differs = tokens[asked, :compared] != self._tokens[asked, :compared]
        differs &= np.arange(compared) < last[:, None]
        other_episode = (length[asked] < last) | differs.any(axis=1)
        unannounced = asked[other_episode]
        if len(unannounced):
            self._seeds[unannounced] = mix(self._new_seed() ^ mix(unannounced.astype(np.uint64)))
        self._cancel(asked[other_episode | (length[asked] != last)])
        rows = asked[[not self._is_under_way(row) for row in asked.tolist()]]
        self._tokens[rows, :width], self._length[asked] = tokens[rows], length[asked]
        return rows

    def request_seeds(self, rows: NDArray[np.int64]) -> list[int]:
        """The seeds of the rows' current turns, below 2^63 as vLLM requires."""
        words = mix(mix(self._seeds[rows]) ^ self._length[rows].astype(np.uint64))
        return [int(word) for word in words >> np.uint64(1)]

    def requested(self, rows: NDArray[np.int64], tickets: list[Ticket]) -> None:
        """Note the requests of some rows, by their tickets."""
        self._under_way.update(zip(rows.tolist(), tickets, strict=True))

    def tickets(self, rows: NDArray[np.int64]) -> list[Ticket]:
        """The tickets of the requests of some rows."""
        return [self._under_way[row] for row in rows.tolist()]

    def take(self, rows: NDArray[np.int64]) -> list[SampledCompletion]:
        """The completions of rows that have all arrived."""
        return [self._engines.take(self._under_way.pop(row)) for row in rows.tolist()]

    def _is_under_way(self, row: int) -> bool:
        return row in self._under_way and self._engines.knows(self._under_way[row])

    def _cancel(self, rows: NDArray[np.int64]) -> None:
        for row in rows.tolist():
            ticket = self._under_way.pop(row, None)
            if ticket is not None:
                self._engines.cancel(ticket)

    def _fit(self, num_rows: int, width: int) -> None:
        missing = max(0, num_rows - len(self._length))
        self._seeds = np.pad(self._seeds, (0, missing))
        self._tokens = np.pad(self._tokens, ((0, missing), (0, max(0, width - self._tokens.shape[1]))))
        self._length = np.pad(self._length, (0, missing), constant_values=np.iinfo(np.int64).max)
