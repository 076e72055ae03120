"""The source of a training step's batch: batches are sampled on demand, or ahead of time (`agents.learn.lag`)."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

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


class OnDemand:
    """Samples each batch when it is wanted, with the current weights."""

    def __init__(self, sampling: Sampling, progress: Progress) -> None:
        self._sampling, self._progress = sampling, progress
        self._env: VectorEnv[Any, Any, Any] | None = None

    @contextlib.contextmanager
    def running(self, env: VectorEnv[Any, Any, Any], steps: int) -> Iterator[None]:
        """Within the block, batches are sampled in an environment."""
        self._env = env
        try:
            yield
        finally:
            self._env = None

    def next(self) -> Arrived:
        """The batch that the next update learns from."""
        assert self._env is not None
        return Arrived(self._sampling.sample(self._env, self._progress.rounds, self._progress.carried))

    def learned(self, arrived: Arrived) -> None:
        """Count a batch from which the agent has learned."""
        self._progress.count(arrived.sampled)

    def sample_errored_again(self) -> None:
        """Do nothing, since no batch is kept."""

    def paused(self) -> contextlib.AbstractContextManager[None]:
        """A null context, since nothing is sampled between two steps."""
        return contextlib.nullcontext()

    def state(self) -> dict[str, Any]:
        """An empty state, since no batch is sampled ahead."""
        return {"ahead": []}

    def load(self, state: Mapping[str, Any]) -> None:
        """Do nothing, since there is no state."""

    def components(self) -> dict[str, list[str] | None]:
        """No components, since a checkpoint holds nothing of this source."""
        return {}
