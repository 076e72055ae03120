"""`Ranks`: the processes that train one agent together, and their exchanges.

Every rank holds the same weights and the same `Batch`. Episodes and micro-batches are divided. Each rank plays and verifies its
own groups, and then the trajectories are gathered. Each rank passes its own micro-batches through the model, and then the
gradients are summed. Every rank computes everything else, such as advantages and optimiser steps, in the same way.

In a single process there is one rank, and nothing is exchanged. So the same code, with `active_ranks()`, runs in one process
and in many.
"""

from __future__ import annotations

import abc
import contextlib
import contextvars
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from agents.interrupts import interrupts_deferred
from agents.runs.files.json_files import differences
from agents.settings.choices import Gathering
from verifiers import RankError, RLVRError

if TYPE_CHECKING:
    from torch import Tensor

T = TypeVar("T")
MOST_GATHERING = 32
"""Maximum number of ranks that gather trajectories by default."""


@dataclass(frozen=True)
class Sharding:
    """Settings for weights that are divided among the ranks; see `agents.distributed.sharding`."""

    offload: bool = False
    """Whether to keep weights and the optimiser's state in the CPU's memory, and move them to the GPU for each pass."""


class Ranks(abc.ABC):
    """The processes of a run. This process is number `rank` of `size`.

    All ranks must call the methods that exchange something in the same order.
    """

    rank: int = 0
    size: int = 1
    sharding: Sharding | None = None
    """How weights are divided among the ranks; None if each rank has all weights."""
    gathers: Gathering = "auto"
    """The data of each episode that all ranks get; see `Gathering`."""
    timeout_s: float = math.inf
    """Seconds after which a rank that does not reach an exchange counts as hung."""

    @property
    def is_main(self) -> bool:
        """Whether this is rank 0. Only rank 0 prints, and writes the run's folder."""
        return self.rank == 0

    @abc.abstractmethod
    def gather(self, value: T) -> list[T]:
        """Return the values of all ranks, in the order of the ranks. Values must be picklable."""

    @abc.abstractmethod
    def sum_tensors(self, tensors: Sequence[Tensor]) -> None:
        """Replace each tensor by its sum over all ranks. The sum is bit-equal on all ranks."""

    @abc.abstractmethod
    def branch(self) -> Ranks:
        """Return the same ranks for another thread, with separate exchanges of objects. All ranks must call this together."""

    def failures_named(self) -> contextlib.AbstractContextManager[None]:
        """A context in which another rank's failure raises a `RankError`, even in an exchange of divided weights."""
        return contextlib.nullcontext()

    def set_timeout(self, seconds: float) -> None:
        """Set `timeout_s`, for exchanges of divided weights as well."""
        self.timeout_s = seconds

    def interrupts_together(self) -> contextlib.AbstractContextManager[None]:
        """A context in which only `together` raises Ctrl-C and SIGTERM, on all ranks."""
        return contextlib.nullcontext()

    def _local_interrupts(self) -> contextlib.AbstractContextManager[None]:
        """A context within `interrupts_together` in which interrupts are raised at once, on this rank."""
        return contextlib.nullcontext()

    def together(self, function: Callable[[], T]) -> T:
        """Call a function on every rank, and return this rank's result.

        Raises:
            BaseException: If the function fails on any rank, with the same type on all ranks; the message names the first rank
                that failed.
        """
        result: T | None = None
        failure: BaseException | None = None
        try:
            with self._local_interrupts():
                result = function()
        except Exception as error:  # noqa: BLE001 - every rank raises it
            failure = error
        except KeyboardInterrupt as interrupt:
            failure = interrupt
        with interrupts_deferred():
            failures = self.gather(None if failure is None else _portable(failure))
        self._raise_first(failures, failure)
        return result  # type: ignore[return-value] # not None, since nothing failed

    def _raise_first(self, failures: Sequence[BaseException | None], own: BaseException | None) -> None:
        for rank, failure in enumerate(failures):
            if failure is None:
                continue
            if rank == self.rank and own is not None:
                raise own
            if isinstance(failure, KeyboardInterrupt):
                raise failure
            raise _named(rank, failure)

    def on_main(self, function: Callable[[], T]) -> T | None:
        """Call a function on rank 0, while the other ranks wait and return None. An error is raised on all ranks."""
        return self.together(lambda: function() if self.is_main else None)

    def from_main(self, value: T) -> T:
        """Return the value of rank 0, which must be picklable."""
        return self.gather(value if self.is_main else None)[0]  # type: ignore[return-value] # rank 0 sends a T

    def divide(self, items: Sequence[T]) -> list[T]:
        """This rank's items: every `size`-th item, so that items of similar length are spread over the ranks."""
        return list(items[self.rank :: self.size])

    def rows_at_once(self, rows: int, largest: int) -> int:
        """Number of rows in a micro-batch, at most `largest`, so that each rank processes about the same share of `rows`."""
        if self.size == 1:
            return largest
        passes = max(1, math.ceil(rows / (largest * self.size)))
        return max(1, math.ceil(rows / (passes * self.size)))

    def require_same(self, what: str, value: Any) -> None:
        """Check that all ranks have the same plain data."""
        values = self.gather(value)
        for rank, other in enumerate(values[1:], start=1):
            changed = [
                f"{name} is {old!r} on rank 0 and {new!r} on rank {rank}"
                for name, old, new in differences({what: values[0]}, {what: other})
            ]
            if changed:
                raise RankError(
                    f"rank {rank} differs from rank 0: {'; '.join(changed[:3])}. Start all ranks with the same command, "
                    "packages and files"
                )


class SingleProcess(Ranks):
    """The only process of a run; every exchange returns its argument."""

    def gather(self, value: T) -> list[T]:
        """See `Ranks.gather`."""
        return [value]

    def sum_tensors(self, tensors: Sequence[Tensor]) -> None:
        """See `Ranks.sum_tensors`."""

    def branch(self) -> Ranks:
        """See `Ranks.branch`."""
        return self

    def together(self, function: Callable[[], T]) -> T:
        """See `Ranks.together`."""
        return function()


_joined: Ranks = SingleProcess()
_active: contextvars.ContextVar[Ranks] = contextvars.ContextVar("ranks")


def active_ranks() -> Ranks:
    """The ranks that this process belongs to; a `SingleProcess` unless this process has joined others."""
    return _active.get(_joined)


def set_joined(ranks: Ranks) -> None:
    """Make `ranks` the ranks of this process, in all threads."""
    global _joined
    _joined = ranks


@contextlib.contextmanager
def using(ranks: Ranks) -> Iterator[None]:
    """A context in which `active_ranks()` returns `ranks`, in this thread."""
    token = _active.set(ranks)
    try:
        yield
    finally:
        _active.reset(token)


def _portable(failure: BaseException) -> BaseException:
    """Make an exception picklable; an exception that is neither this project's nor an interrupt becomes its type and text."""
    if isinstance(failure, RLVRError | KeyboardInterrupt):
        return failure
    return RankError(f"{type(failure).__name__}: {failure}")


def _named(rank: int, failure: BaseException) -> BaseException:
    """Add the rank to the message of another rank's exception."""
    return type(failure)(f"rank {rank}: {failure}")
