"""Episodes of many ranks. Each rank plays its own groups, and every rank gets all trajectories."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from agents.distributed.ranks import Ranks
from agents.distributed.rows import row_of, trajectory_of
from agents.rollouts.loop import Episode, PartialEpisode
from agents.types import Trajectory

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
    """The rank that plays each episode. Ranks take groups in turn."""
    numbers: dict[int, int] = {}
    return [numbers.setdefault(episode.group, len(numbers)) % size for episode in episodes]
