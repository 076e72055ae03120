"""Trajectories as tensors and plain data, for checkpoints."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from agents.deferred import torch
from agents.runs.files.json_files import plain
from agents.types import Trajectory
from verifiers import Outcome, Verdict

if TYPE_CHECKING:
    pass


def trajectory_state(trajectory: Trajectory) -> dict[str, Any]:
    """The trajectory as tensors and plain data, for `trajectory_from_state`."""
    fields = {field.name: getattr(trajectory, field.name) for field in dataclasses.fields(trajectory)}
    fields = {name: torch.tensor(value) if isinstance(value, np.ndarray) else value for name, value in fields.items()}
    verdict = trajectory.verdict
    if verdict is not None:
        said = {field.name: getattr(verdict, field.name) for field in dataclasses.fields(verdict)}
        fields["verdict"] = {**said, "outcome": str(verdict.outcome), "detail": plain(verdict.detail)}
        fields["verdict"]["cost"] = {name: float(amount) for name, amount in verdict.cost.items()}
    return fields


def trajectory_from_state(state: Mapping[str, Any]) -> Trajectory:
    """Restore a state that `trajectory_state` returned."""
    fields: dict[str, Any] = {
        name: value.numpy() if isinstance(value, torch.Tensor) else value for name, value in state.items()
    }
    if fields["verdict"] is not None:
        fields["verdict"] = Verdict(**{**fields["verdict"], "outcome": Outcome(fields["verdict"]["outcome"])})
    return Trajectory(**fields)
