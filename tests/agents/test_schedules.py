"""Coefficients over the steps of a run, by hand."""

from __future__ import annotations

from typing import Any

import pytest

from agents import AgentConfig, LearnerConfig, Schedule
from verifiers import InvalidArgumentError, UnknownNameError


def values(schedule: Schedule, count: int) -> list[float]:
    return [schedule(step) for step in range(count)]


def test_linear_from_start_to_end_and_no_further() -> None:
    assert values(Schedule(1.0, 3.0, "linear", 4), 7) == [1, 1.5, 2, 2.5, 3, 3, 3]
    assert values(Schedule(0.0, 0.4, "linear", 2), 4) == [0, 0.2, 0.4, 0.4]


def test_cosine_is_slow_at_both_ends() -> None:
    result = values(Schedule(2.0, 0.0, "cosine", 6), 8)
    assert result == pytest.approx([2, 1 + 0.75**0.5, 1.5, 1, 0.5, 1 - 0.75**0.5, 0, 0])


def test_constant_stays_and_needs_no_number_of_steps() -> None:
    assert values(Schedule(0.3, 0.9, "constant"), 3) == [0.3, 0.3, 0.3]


def test_warmup_rises_to_the_start_and_the_rest_follows_from_there() -> None:
    assert values(Schedule(1.0, 0.0, "linear", 6, warmup_steps=3), 8) == pytest.approx(
        [0.25, 0.5, 0.75, 1, 2 / 3, 1 / 3, 0, 0]
    )
    assert values(Schedule(1.0, shape="constant", warmup_steps=1), 3) == [0.5, 1, 1]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"shape": "linar", "steps": 3}, "'linar'. Did you mean 'linear'"),
        ({"steps": 5, "warmup_steps": 5}, "warmup_steps=5 must be less than the 5 optimiser steps of the linear"),
    ],
)
def test_inconsistent_schedules_are_named(settings: dict[str, Any], message: str) -> None:
    with pytest.raises((InvalidArgumentError, UnknownNameError), match=message):
        Schedule(1.0, **settings)


def test_a_schedule_of_unknown_length_has_no_value() -> None:
    with pytest.raises(InvalidArgumentError, match="a cosine schedule needs its number of steps: train with `learn`"):
        Schedule(1.0, shape="cosine")(0)
    assert Schedule(1.0, shape="constant")(7) == 1


def test_coefficients_and_the_learning_rate_arrive_together() -> None:
    """`schedule_steps` counts optimiser steps, of which a training step with 2 epochs of 3 parts makes 6."""
    learner = LearnerConfig(schedule="linear", schedule_steps=24, learning_rate=1.0)
    config = AgentConfig(
        problems_per_step=3,
        epochs=2,
        minibatches=3,
        learner=learner,
        entropy_coefficient=0.8,
        entropy_coefficient_end=0.0,
    )
    assert [config.entropy_schedule()(step) for step in range(6)] == pytest.approx([0.8, 0.6, 0.4, 0.2, 0, 0])
    assert learner.learning_rate_at(4 * 6) == 0
