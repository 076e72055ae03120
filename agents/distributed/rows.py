"""Rows of episodes, for runs in which each rank trains on its own episodes.

Other ranks then need an episode's row: everything but its tokens and their log-probabilities.

A completion of 16 000 tokens takes 340 kB as a trajectory, but only a few hundred bytes as a `Row` with one reward.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from agents.types import Trajectory, TrajectoryElsewhere

_PER_TOKEN = {"tokens", "policy_mask", "logprobs", "rewards", "policy_version", "action_masks"}


@dataclass(frozen=True)
class Row:
    """An episode without its tokens and their log-probabilities."""

    fields: dict[str, Any]
    """The fields of the trajectory that have no value per token."""
    length: int
    """Number of tokens l."""
    changes: NDArray[np.int64]
    """Positions at which the policy mask changes. Before the first position, the mask is False."""
    rewarded: NDArray[np.int64]
    """Positions of rewards that are not 0."""
    rewards: NDArray[np.float64]
    """The rewards at these positions."""


def row_of(trajectory: Trajectory) -> Row:
    """Make the row of an episode. The text is kept only if the verifier broke, for the report."""
    fields = {
        field.name: getattr(trajectory, field.name)
        for field in dataclasses.fields(trajectory)
        if field.name not in _PER_TOKEN
    }
    if not trajectory.errored:
        fields["completion"] = ""
        fields["verdict"] = trajectory.verdict and dataclasses.replace(trajectory.verdict, token_scores=None)
    rewarded = np.flatnonzero(trajectory.rewards)  # NaN, after a verifier broke, counts as not 0
    changes = np.flatnonzero(np.diff(trajectory.policy_mask, prepend=False))
    return Row(fields, len(trajectory.tokens), changes, rewarded, trajectory.rewards[rewarded])


def trajectory_of(row: Row) -> TrajectoryElsewhere:
    """Make an episode from a row, with -1 for its tokens and NaN for their log-probabilities."""
    turns = np.zeros(row.length, dtype=np.int64)
    turns[row.changes] = 1
    rewards = np.zeros(row.length)
    rewards[row.rewarded] = row.rewards
    return TrajectoryElsewhere(
        **row.fields,
        tokens=np.full(row.length, -1, dtype=np.int32),
        policy_mask=np.cumsum(turns) % 2 == 1,
        logprobs=np.full(row.length, np.nan, dtype=np.float32),
        rewards=rewards,
        policy_version=np.full(row.length, -1, dtype=np.int32),
    )
