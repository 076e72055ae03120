"""`Sampled`: what sampling one batch gave, and the same as tensors and plain data for checkpoints."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from agents.files.json_files import plain
from agents.training.verifier_errors import SeenEpisodes
from agents.types import Trajectory
from verifiers import Outcome, Verdict


@dataclass(frozen=True)
class Sampled:
    """The episodes of one training step, and what was measured while they were played."""

    trajectories: list[Trajectory]
    rounds: int
    """Number of rounds of problems drawn."""
    tokens: int
    """Number of tokens generated, including those of episodes that are not trained on."""
    seen: SeenEpisodes | None
    """All episodes played, as far as verifier errors are concerned; None if they were counted as they ended."""
    metrics: Mapping[str, float]
    """Of preparing the sampler."""
    seconds: float
    verify_seconds: float | None
    """Seconds spent on verification, None if the environment reports none."""


def sampled_state(sampled: Sampled) -> dict[str, Any]:
    """Tensors and plain data for `sampled_from_state`."""
    seen = sampled.seen or SeenEpisodes()
    return {
        **{name: getattr(sampled, name) for name in ("rounds", "tokens", "seconds", "verify_seconds")},
        "metrics": dict(sampled.metrics),
        "trajectories": [_trajectory_state(trajectory) for trajectory in sampled.trajectories],
        "episodes": seen.episodes,
        "errored": [_trajectory_state(trajectory) for trajectory in seen.errored],
    }


def sampled_from_state(state: Mapping[str, Any]) -> Sampled:
    """Restore a state of `sampled_state`."""
    fields = dict(state)
    errored = [_trajectory(each) for each in fields.pop("errored")]
    trajectories = [_trajectory(each) for each in fields.pop("trajectories")]
    return Sampled(seen=SeenEpisodes(fields.pop("episodes"), errored), **{**fields, "trajectories": trajectories})


def _trajectory_state(trajectory: Trajectory) -> dict[str, Any]:
    fields = {field.name: getattr(trajectory, field.name) for field in dataclasses.fields(trajectory)}
    fields = {name: torch.tensor(value) if isinstance(value, np.ndarray) else value for name, value in fields.items()}
    verdict = trajectory.verdict
    if verdict is not None:
        said = {field.name: getattr(verdict, field.name) for field in dataclasses.fields(verdict)}
        fields["verdict"] = {**said, "outcome": str(verdict.outcome), "detail": plain(verdict.detail)}
        fields["verdict"]["cost"] = {name: float(amount) for name, amount in verdict.cost.items()}
    return fields


def _trajectory(state: Mapping[str, Any]) -> Trajectory:
    fields: dict[str, Any] = {
        name: value.numpy() if isinstance(value, Tensor) else value for name, value in state.items()
    }
    if fields["verdict"] is not None:
        fields["verdict"] = Verdict(**{**fields["verdict"], "outcome": Outcome(fields["verdict"]["outcome"])})
    return Trajectory(**fields)
