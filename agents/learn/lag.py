"""Sampling during learning: batch n is sampled with the weights after update n - lag, while earlier batches are learned from.

```
lag 1   sampling   batch 0 with W0 | batch 1 with W0 | batch 2 with W1 | batch 3 with W2 ...
        learning                     batch 0 -> W1     batch 1 -> W2     batch 2 -> W3   ...
```

A thread samples one batch after the other with a copy of the policy. The weights that a batch is sampled with depend on its
number alone, not on the speed of anything: a run with a lag is as repeatable as a run without one.

With several ranks, each rank has such a thread; these threads play a batch together, in parallel with the exchanges of
learning.

If weights are divided among ranks, there is no copy of the policy, and an engine samples. The thread that learns transfers
weights to the engine between two batches, since two threads must not exchange weights at once.

A checkpoint holds the batches that were sampled ahead, and the weights for those still to be sampled. Writing a checkpoint
waits for nothing.
"""

from __future__ import annotations

import contextlib
import copy
import threading
import time
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from gymnasium.vector import VectorEnv

from agents.deferred import torch
from agents.distributed.parts import divided_like
from agents.distributed.ranks import using
from agents.learn.carried import CarriedGroup
from agents.learn.progress import Progress
from agents.learn.sampled import Sampled, sampled_from_state, sampled_state
from agents.learn.sampling import Sampling, SamplingStopped
from agents.learn.source import Arrived, OnDemand
from agents.policies.trainable import TrainablePolicy
from agents.types import Sampler, TakesLayers, TakesLearner
from verifiers import InvalidArgumentError, RankError

if TYPE_CHECKING:
    from torch import Tensor

_STOP_S = 10.0
"""Seconds to wait for a thread to stop; an engine may still be busy with a batch."""


@dataclass
class _Batch:
    """A batch that is to be sampled or has been sampled."""

    number: int
    """Number of updates before the update that learns from this batch."""
    updates: int
    """Number of updates that led to the weights with which this batch is sampled."""
    version: int
    """The policy's version after these updates."""
    weights: list[Tensor] | None
    """The trainable weights, or this rank's parts of the weights; None once they are no longer needed."""
    problems: Mapping[str, Any]
    """The observations of problems up to the last of these updates."""
    sampled: Sampled | None = None
    error: BaseException | None = None
    sampler: Sampler | None = None
    """The engine, once it has the weights for this batch; None if the thread has a copy of the policy."""

    @property
    def under_way(self) -> bool:
        """Whether the engine has this batch's weights and has yet to sample the batch."""
        return self.sampler is not None and self.sampled is None and self.error is None


class LaggedSampling:
    """The batches that are sampled ahead, and the thread that samples them.

    Args:
        sampling: Samples with the current weights; the thread does the same with older ones.
        policy: The policy that learns.
        progress: Counts of the batches that were learned from.
        lag: Number of updates between the weights that sample a batch and those that learn from it, at least 1.

    Raises:
        InvalidArgumentError: If the sampler is an engine that can't take its weights from a copy of the policy.
    """

    def __init__(self, sampling: Sampling, policy: TrainablePolicy, progress: Progress, lag: int) -> None:
        engine = sampling.sampler
        if engine is not policy and not isinstance(engine, TakesLearner):
            raise InvalidArgumentError(
                f"lag={lag} needs a sampler that takes weights from a copy of the policy, by a method with_learner(policy), as "
                f"VLLMPolicy has; {type(engine).__name__} has none: leave `lag` out"
            )
        self._sampling, self._policy, self._progress = sampling, policy, progress
        self._lag = lag
        self._batches: deque[_Batch] = deque()
        self._changed = threading.Condition()
        self._copy: TrainablePolicy | None = None
        self._divided, self._steps = sampling.ranks.sharding is not None, 0
        self._sampler_in_use = threading.Lock()
        self._ranks = sampling.ranks.branch()

    @contextlib.contextmanager
    def running(self, env: VectorEnv[Any, Any, Any], steps: int) -> Iterator[None]:
        """Within the block, sample batches below number `steps` in a thread; the block's end drops an unfinished batch."""
        stopped, self._steps = threading.Event(), steps
        for batch in self._batches:
            batch.error = None
        thread = threading.Thread(target=self._sample_batches, args=(env, stopped), name="sampling", daemon=True)
        thread.start()
        try:
            yield
        finally:
            stopped.set()
            with self._changed:
                self._changed.notify_all()
            thread.join(_STOP_S)
            for batch in self._batches:
                batch.sampler = None

    def next(self) -> Arrived:
        """The batch that the next update learns from; the batch `lag` updates later is sampled with the current weights.

        An error while the batch was sampled is raised here.
        """
        ranks = self._sampling.ranks
        self._add()  # not within `together`: an interrupt would reach some ranks before this line, and others after it
        first, second = self._batches[0], self._batches[1]
        self._hand_over(first)
        arrived = ranks.together(self._wait)
        if self._is_final(first):
            first.weights = None
        self._hand_over(second)
        return arrived

    def _add(self) -> None:
        """Add the batches that are to be sampled with the current weights."""
        first, policy = self._progress.steps, self._policy
        with self._changed:
            for number in range(first + len(self._batches), first + self._lag + 1):
                seen = self._progress.problems.state()
                self._batches.append(_Batch(number, first, policy.version, _weights(policy), seen))
            self._changed.notify_all()

    def _hand_over(self, batch: _Batch) -> None:
        """Give the engine a batch's weights if weights are divided; all ranks call this while the engine is idle."""
        if not self._divided or batch.number >= self._steps or batch.sampler is not None or batch.sampled is not None:
            return
        engine = self._sampling.sampler
        assert isinstance(engine, TakesLayers), "check_sharding refuses other samplers"
        with self._holding(batch):
            sampler = engine.transferred()
        with self._changed:
            batch.sampler = sampler
            self._changed.notify_all()

    @contextlib.contextmanager
    def _holding(self, batch: _Batch) -> Iterator[None]:
        """Within the block, the policy has the weights of a batch; after a resume these are older than the policy's own."""
        if batch.updates == self._progress.steps:
            yield
            return
        own, version = _weights(self._policy), self._policy.version
        assert batch.weights is not None
        _set_weights(self._policy, batch.weights, batch.version)
        try:
            yield
        finally:
            _set_weights(self._policy, own, version)

    def _wait(self) -> Arrived:
        first = self._progress.steps
        with self._changed:
            batch = self._batches[0]
            started = time.perf_counter()
            self._changed.wait_for(lambda: batch.sampled is not None or batch.error is not None)
        if batch.error is not None:
            raise batch.error
        assert batch.sampled is not None
        waited, took = time.perf_counter() - started, batch.sampled.seconds
        return Arrived(
            batch.sampled,
            {
                # Updates between the weights that sampled the batch and the weights that learn from it.
                "sampling/age": float(first - batch.updates),
                # The share of the batch's sampling time during which learning did not wait.
                "sampling/hidden": max(0.0, 1 - waited / took) if took else 0.0,
                "wait_s": waited,
            },
        )

    def learned(self, arrived: Arrived) -> None:
        """Forget the batch that was learned from, and count it."""
        with self._changed:  # the thread reads both attributes
            self._batches.popleft()
            self._progress.count(arrived.sampled)

    def sample_errored_again(self) -> None:
        """Drop the samples of each batch on which a verifier broke, so that the next run samples these batches again."""
        with self._changed:
            for batch in self._batches:
                if not self._is_final(batch):
                    batch.sampled = batch.sampler = None

    @contextlib.contextmanager
    def paused(self) -> Iterator[None]:
        """Wait until the current batch is sampled; no other batch is begun within the block."""
        with self._changed:
            self._changed.wait_for(lambda: not any(batch.under_way for batch in self._batches))
        with self._sampler_in_use:
            yield

    # In the thread

    def _sample_batches(self, env: VectorEnv[Any, Any, Any], stopped: threading.Event) -> None:
        with using(self._ranks):
            while self._sample_next(self._await_batch(stopped), env, stopped):
                pass

    def _sample_next(self, batch: _Batch | None, env: VectorEnv[Any, Any, Any], stopped: threading.Event) -> bool:
        """Sample a batch (None if this rank stops), and return whether to continue."""
        try:
            going = all(self._ranks.gather(batch is not None))
            if batch is None:
                return False
            if not going:
                raise RankError("another rank has stopped sampling")
            with self._sampler_in_use:
                sampled = self._sampling_of(batch, stopped).sample(env, *self._before(batch))
        except SamplingStopped:
            return False
        except BaseException as error:  # noqa: BLE001 - raised by `next`, where the batch is wanted
            with self._changed:
                if batch is not None:
                    batch.error = error
                self._changed.notify_all()
            return False
        with self._changed:
            batch.sampled = sampled
            # Other ranks may still sample, and a rank's part of the weights is useless without the other parts.
            if not self._divided and self._is_final(batch):
                batch.weights = None
            self._changed.notify_all()
        return True

    def _is_final(self, batch: _Batch) -> bool:
        """Whether a sampled batch is kept if the run stops: no verifier broke on it or on the batches that it continues."""
        if batch.sampled is None or batch.sampled.seen.errored:
            return False
        before = (other for other in self._batches if other.number == batch.number - 1)
        return not self._sampling.algorithm.config.carried_groups or all(map(self._is_final, before))

    def _await_batch(self, stopped: threading.Event) -> _Batch | None:
        """The next batch to sample; None if the thread has to end."""

        def waiting() -> _Batch | None:
            unsampled = (one for one in self._batches if one.sampled is None and one.number < self._steps)
            return next((one for one in unsampled if one.under_way or not self._divided), None)

        with self._changed:
            self._changed.wait_for(lambda: stopped.is_set() or waiting() is not None)
            return None if stopped.is_set() else waiting()

    def _before(self, batch: _Batch) -> tuple[int, tuple[CarriedGroup, ...]]:
        """The number of a batch's first round of problems, and the groups that are carried over to it."""
        with self._changed:
            before = [other.sampled for other in self._batches if other.number < batch.number]
            rounds = self._progress.rounds + sum(sampled.rounds for sampled in before if sampled is not None)
            last = before[-1] if before else None
            return rounds, self._progress.carried if last is None else last.carried

    def _sampling_of(self, batch: _Batch, stopped: threading.Event) -> Sampling:
        """A `Sampling` with the weights of a batch."""
        sampler = self._with_copy(batch) if batch.sampler is None else batch.sampler
        known = self._progress.problems.with_state(batch.problems)
        return Sampling(self._sampling.algorithm, sampler, self._ranks, lambda: known, stopped=stopped)

    def _with_copy(self, batch: _Batch) -> Sampler:
        """The sampler with a copy of the policy that has a batch's weights."""
        policy, engine = self._policy, self._sampling.sampler
        if self._copy is None:
            # Weights that are not trained, such as those under an adapter, are shared.
            frozen = {id(weight): weight for weight in policy.model.parameters() if not weight.requires_grad}
            self._copy = policy.with_model(copy.deepcopy(policy.model, frozen))
        assert batch.weights is not None
        _set_weights(self._copy, batch.weights, batch.version)
        return engine.with_learner(self._copy) if isinstance(engine, TakesLearner) else self._copy

    # In checkpoints

    def state(self) -> dict[str, Any]:
        """The batches sampled ahead, as tensors and plain data; all ranks call this if weights are divided."""
        with self._changed:
            final = [self._is_final(batch) for batch in self._batches]
            ahead = [
                {
                    "number": batch.number,
                    "updates": batch.updates,
                    "version": batch.version,
                    "weights": batch.weights,
                    "problems": batch.problems,
                    "sampled": None if batch.sampled is None else sampled_state(batch.sampled),
                }
                for batch in self._batches
            ]
        if self._divided:  # all ranks put the weights of the same batches together
            by_rank = self._sampling.ranks.gather(final)
            for one, finals in zip(ahead, zip(*by_rank, strict=True), strict=True):
                one["weights"] = None if all(finals) else one["weights"]
        return {"ahead": ahead}

    def load(self, state: Mapping[str, Any]) -> None:
        """Restore a state that `state` returned, between two runs of the thread."""
        self._batches = deque(
            _Batch(
                **{
                    **batch,
                    "weights": batch["weights"] and self._own_parts(batch["weights"]),
                    "sampled": batch["sampled"] and sampled_from_state(batch["sampled"]),
                }
            )
            for batch in state["ahead"]
        )

    def _own_parts(self, weights: Sequence[Tensor]) -> list[Tensor]:
        """A checkpoint's weights, divided among the ranks like the policy's weights."""
        return [divided_like(weight, own) for weight, own in zip(weights, self._policy.parameters(), strict=True)]

    def components(self) -> dict[str, list[str] | None]:
        """The lag as a component, since a checkpoint holds the batches that were sampled ahead."""
        return {f"lag of {self._lag}": []}


BatchSource = OnDemand | LaggedSampling
"""The batches of an agent, one for each training step."""


def _weights(policy: TrainablePolicy) -> list[Tensor]:
    return [weight.detach().clone() for weight in policy.parameters()]


def _set_weights(policy: TrainablePolicy, weights: Sequence[Tensor], version: int) -> None:
    with torch.no_grad():
        for mine, weight in zip(policy.parameters(), weights, strict=True):
            mine.copy_(weight)
    policy.weights_changed()
    policy.version = version
