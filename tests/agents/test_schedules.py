"""Coefficients over the steps of a run, by hand."""

from __future__ import annotations

from typing import Any

import pytest

from agents import AgentConfig, LearnerConfig, Schedule
from verifiers import InvalidArgumentError, UnknownNameError


@pytest.mark.parametrize(
    ("schedule", "values"),
    [
        (Schedule(1.0, 3.0, "linear", 4), [1, 1.5, 2, 2.5, 3, 3, 3]),
        (Schedule(2.0, 0.0, "cosine", 6), [2, 1 + 0.75**0.5, 1.5, 1, 0.5, 1 - 0.75**0.5, 0, 0]),
        (Schedule(0.3, 0.9, "constant"), [0.3, 0.3, 0.3]),
        # A warm-up rises to the start, and the rest follows from there.
        (Schedule(1.0, 0.0, "linear", 6, warmup_steps=3), [0.25, 0.5, 0.75, 1, 2 / 3, 1 / 3, 0, 0]),
        (Schedule(1.0, shape="constant", warmup_steps=1), [0.5, 1, 1]),
    ],
)
def test_coefficients_by_hand(schedule: Schedule, values: list[float]) -> None:
    assert [schedule(step) for step in range(len(values))] == pytest.approx(values)


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


def test_coefficients_and_the_learning_rate_arrive_together() -> None:
    """`schedule_steps` counts optimiser steps, of which a training step with 2 epochs of 3 parts makes 6."""
    learner = LearnerConfig(schedule="linear", schedule_steps=24, learning_rate=1.0)
    passes = {"problems_per_step": 3, "epochs": 2, "minibatches": 3}
    config = AgentConfig(learner=learner, entropy_coefficient=0.8, entropy_coefficient_end=0.0, **passes)
    assert [config.entropy_schedule()(step) for step in range(6)] == pytest.approx([0.8, 0.6, 0.4, 0.2, 0, 0])
    assert learner.learning_rate_at(4 * 6) == 0
