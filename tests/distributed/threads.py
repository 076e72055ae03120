"""Ranks that are threads of one process, for tests of what ranks exchange without starting any."""

from __future__ import annotations

import pickle
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from torch import Tensor

from agents.distributed.ranks import Ranks, active_ranks, using

T = TypeVar("T")
_LONGEST_S = 60


@dataclass
class _Table:
    """Where the ranks put down what they send."""

    size: int
    sent: list[bytes] = field(init=False)
    barrier: threading.Barrier = field(init=False)
    branches: dict[int, _Table] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.sent = [b""] * self.size
        self.barrier = threading.Barrier(self.size, timeout=_LONGEST_S)


class ThreadRanks(Ranks):
    """One thread of several."""

    def __init__(self, rank: int, table: _Table) -> None:
        self.rank, self.size, self._table = rank, table.size, table
        self._branches = 0

    def gather(self, value: T) -> list[T]:
        self._table.sent[self.rank] = pickle.dumps(value)
        self._table.barrier.wait()
        values = [pickle.loads(sent) for sent in self._table.sent]
        self._table.barrier.wait()
        return values

    def branch(self) -> ThreadRanks:
        self._branches += 1
        # One thread's table is kept, whichever comes first.
        return ThreadRanks(self.rank, self._table.branches.setdefault(self._branches, _Table(self.size)))

    def sum_tensors(self, tensors: Sequence[Tensor]) -> None:
        for tensor in tensors:
            first, *others = self.gather(tensor)
            tensor.copy_(sum(others, first))


def on_ranks(size: int, function: Callable[[Ranks], T]) -> list[T | BaseException]:
    """Call a function on each of several ranks; what it returns or raises."""
    table = _Table(size)
    results: list[Any] = [None] * size

    def call(rank: int) -> None:
        with using(ThreadRanks(rank, table)):
            try:
                results[rank] = function(active_ranks())
            except BaseException as error:  # noqa: BLE001 - it is the result
                results[rank] = error

    threads = [threading.Thread(target=call, args=(rank,)) for rank in range(size)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results
