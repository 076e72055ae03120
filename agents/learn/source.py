"""Where a training step's batch comes from: sampled when it is wanted, or ahead of it (`agents.learn.lag`)."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from gymnasium.vector import VectorEnv

from agents.learn.progress import Progress
from agents.learn.sampled import Sampled
from agents.learn.sampling import Sampling


@dataclass(frozen=True)
class Arrived:
    """A batch to learn from."""

    sampled: Sampled
    metrics: Mapping[str, float] = field(default_factory=dict)
    """Metrics of the batch's sampling."""


class BatchSource(Protocol):
    """The batches of an agent, one for each training step."""

    def running(self, env: VectorEnv[Any, Any, Any], steps: int) -> contextlib.AbstractContextManager[None]:
        """A context in which batches below number `steps` are sampled in an environment."""
        ...

    def next(self) -> Arrived:
        """The batch that the next update learns from."""
        ...

    def learned(self, arrived: Arrived) -> None:
        """Forget the batch that was learned from, and count it."""
        ...

    def sample_errored_again(self) -> None:
        """Forget the episodes of batches on which a verifier broke, so that they are sampled again by the next run."""
        ...

    def paused(self) -> contextlib.AbstractContextManager[None]:
        """A context in which nothing is sampled."""
        ...

    def state(self) -> dict[str, Any]:
        """Tensors and plain data for `load`."""
        ...

    def load(self, state: Mapping[str, Any]) -> None:
        """Restore a state of `state`, outside of `running`."""
        ...

    def components(self) -> dict[str, list[str] | None]:
        """See `agents.learn.saving.Part`."""
        ...


class OnDemand:
    """Samples each batch when it is wanted, with the current weights."""

    def __init__(self, sampling: Sampling, progress: Progress) -> None:
        self._sampling, self._progress = sampling, progress
        self._env: VectorEnv[Any, Any, Any] | None = None

    @contextlib.contextmanager
    def running(self, env: VectorEnv[Any, Any, Any], steps: int) -> Iterator[None]:
        """See `BatchSource.running`."""
        self._env = env
        try:
            yield
        finally:
            self._env = None

    def next(self) -> Arrived:
        """See `BatchSource.next`."""
        assert self._env is not None
        return Arrived(self._sampling.sample(self._env, self._progress.rounds, self._progress.carried))

    def learned(self, arrived: Arrived) -> None:
        """See `BatchSource.learned`."""
        self._progress.count(arrived.sampled)

    def sample_errored_again(self) -> None:
        """See `BatchSource.sample_errored_again`: no batch is kept."""

    def paused(self) -> contextlib.AbstractContextManager[None]:
        """See `BatchSource.paused`."""
        return contextlib.nullcontext()

    def state(self) -> dict[str, Any]:
        """See `BatchSource.state`."""
        return {"ahead": []}

    def load(self, state: Mapping[str, Any]) -> None:
        """See `BatchSource.load`."""

    def components(self) -> dict[str, list[str] | None]:
        """See `BatchSource.components`."""
        return {}
