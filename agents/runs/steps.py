"""The loop of `learn`, for agents that train a policy and for agents that learn a table."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Protocol

import numpy as np

from agents.interrupts import interrupts_deferred
from verifiers import InvalidArgumentError

Callback = Callable[[int, Mapping[str, float]], None]
"""Called after each step with the step number, starting at 1, and its metrics."""


class Counts(Protocol):
    """An agent that counts what it has done."""

    steps: int
    """Number of training steps done."""
    tokens: int
    """Number of tokens or actions so far."""


def check_numbers(*, steps: int, tokens: int | None, checkpoint_every: int | None) -> None:
    """Check the numbers that `learn` is called with."""
    numbers: dict[str, object] = {"steps": steps, "tokens": tokens, "checkpoint_every": checkpoint_every}
    for name, value in numbers.items():
        if value is not None and (not isinstance(value, int | np.integer) or value < 0):
            raise InvalidArgumentError(f"learn expects {name} to be a whole number of at least 0, got {value!r}")


def take_steps(
    agent: Counts,
    train_step: Callable[[], Mapping[str, float]],
    keep: Callable[[], None],
    *,
    steps: int,
    tokens: int | None,
    checkpoint_every: int | None,
    callbacks: Sequence[Callback],
    stopped: Callable[[], bool] = lambda: False,
) -> None:
    """Make training steps until the agent has reached the number of steps or tokens.

    Args:
        agent: Counts its steps and tokens.
        train_step: Makes one step, and returns its metrics.
        keep: Writes a checkpoint, every `checkpoint_every` steps.
        steps: As for `Agent.learn`.
        tokens: As for `Agent.learn`.
        checkpoint_every: As for `Agent.learn`.
        callbacks: As for `Agent.learn`.
        stopped: Returns whether training ends early; called before each step.
    """
    while agent.steps < steps and (tokens is None or agent.tokens < tokens) and not stopped():
        metrics = train_step()
        for callback in callbacks:
            callback(agent.steps, metrics)
        if checkpoint_every and agent.steps % checkpoint_every == 0:
            keep()


@contextlib.contextmanager
def kept_on_interrupt(keep: Callable[[], None]) -> Iterator[None]:
    """Write a checkpoint if Ctrl-C or SIGTERM interrupts the block; the interrupt is raised again."""
    try:
        yield
    except KeyboardInterrupt:
        with interrupts_deferred():
            keep()
        raise
