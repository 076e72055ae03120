"""Plays episodes on many ranks: each rank plays its own groups, and every rank gets all trajectories."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from agents.distributed.ranks import Ranks
from agents.rollouts.loop import Episode, PartialEpisode
from agents.types import Trajectory, TrajectoryElsewhere

_Unplayed = TypeVar("_Unplayed", Episode, Episode | PartialEpisode)
_Played = TypeVar("_Played", Trajectory, Trajectory | PartialEpisode)


def play_divided(
    ranks: Ranks,
    episodes: Sequence[_Unplayed],
    play: Callable[[Sequence[_Unplayed]], list[_Played]],
    *,
    seen: Callable[[_Played], None],
    rows: bool = False,
) -> list[_Played]:
    """Play episodes on all ranks, whole groups on each rank. Return the played episodes in the order of `episodes`.

    Each episode has its own seed. So, up to rounding, the episode is the same on any rank.

    Args:
        ranks: The ranks.
        episodes: The episodes to play, the same on all ranks.
        play: Plays some episodes on this rank, in their order.
        seen: Called with each episode that another rank has played.
        rows: Whether to gather only a `Row` of each episode, so that trajectories of other ranks have no tokens.

    Raises:
        Exception: On all ranks, if `play` fails on any rank; see `Ranks.together`.
    """
    owners = owners_of(episodes, ranks.size)
    mine = [episode for episode, owner in zip(episodes, owners, strict=True) if owner == ranks.rank]
    own = ranks.together(lambda: play(mine) if mine else [])
    played = [iter(part) for part in (_gather_rows(ranks, own) if rows else ranks.gather(own))]
    gathered = [next(played[owner]) for owner in owners]
    for one, owner in zip(gathered, owners, strict=True):
        if owner != ranks.rank:
            seen(one)
    return gathered


def _gather_rows(ranks: Ranks, own: list[Any]) -> list[list[Any]]:
    parts = ranks.gather([row_of(trajectory) for trajectory in own])
    return [own if rank == ranks.rank else list(map(trajectory_of, part)) for rank, part in enumerate(parts)]


def owners_of(episodes: Sequence[Episode | PartialEpisode], size: int) -> list[int]:
    """The rank that plays each episode, if ranks take groups in turn."""
    numbers: dict[int, int] = {}
    return [numbers.setdefault(episode.group, len(numbers)) % size for episode in episodes]


_PER_TOKEN = {"tokens", "policy_mask", "logprobs", "rewards", "policy_version", "action_masks"}


@dataclass(frozen=True)
class Row:
    """An episode without its tokens and their log-probabilities: all that other ranks need if each trains on its own episodes.

    A completion of 16 000 tokens takes 340 kB as a trajectory, and as a `Row` with one reward a few hundred bytes.
    """

    fields: dict[str, Any]
    """The fields of the trajectory that have no value per token."""
    length: int
    """Number of tokens l."""
    changes: NDArray[np.int64]
    """Positions at which the policy mask changes; it is False before the first of them."""
    rewarded: NDArray[np.int64]
    """Positions of rewards that are not 0."""
    rewards: NDArray[np.float64]
    """The rewards at the positions in `rewarded`."""


def row_of(trajectory: Trajectory) -> Row:
    """The row of an episode; its text is kept only if the verifier broke, for the report."""
    fields = {
        field.name: getattr(trajectory, field.name)
        for field in dataclasses.fields(trajectory)
        if field.name not in _PER_TOKEN
    }
    if not trajectory.errored:
        fields["completion"] = ""
        fields["verdict"] = trajectory.verdict and dataclasses.replace(trajectory.verdict, token_scores=None)
    rewarded = np.flatnonzero(trajectory.rewards)  # NaN, of a verifier that broke, is not 0 either
    changes = np.flatnonzero(np.diff(trajectory.policy_mask, prepend=False))
    return Row(fields, len(trajectory.tokens), changes, rewarded, trajectory.rewards[rewarded])


def trajectory_of(row: Row) -> TrajectoryElsewhere:
    """The episode of a row, with -1 in place of its tokens and NaN in place of their log-probabilities."""
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
