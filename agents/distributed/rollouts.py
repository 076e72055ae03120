"""Episodes of many ranks: each plays its own groups, and every rank has all trajectories."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from agents.distributed.ranks import Ranks
from agents.rollouts.loop import Episode
from agents.types import Trajectory


def play_divided(
    ranks: Ranks,
    episodes: Sequence[Episode],
    play: Callable[[Sequence[Episode]], list[Trajectory]],
    *,
    seen: Callable[[Trajectory], None],
) -> list[Trajectory]:
    """Play episodes on all ranks, whole groups on each, and return all trajectories in the order of `episodes`.

    Seeds are those of episodes, so it does not matter which rank plays what, up to rounding.

    Args:
        ranks: The ranks.
        episodes: The same on all ranks.
        play: Plays some episodes on this rank, in their order.
        seen: Called with each trajectory that another rank has played.

    Raises:
        Exception: If `play` fails on any rank, on all of them; see `Ranks.together`.
    """
    owners = owners_of(episodes, ranks.size)
    mine = [episode for episode, owner in zip(episodes, owners, strict=True) if owner == ranks.rank]
    played = [iter(part) for part in ranks.gather(ranks.together(lambda: play(mine) if mine else []))]
    trajectories = [next(played[owner]) for owner in owners]
    for trajectory, owner in zip(trajectories, owners, strict=True):
        if owner != ranks.rank:
            seen(trajectory)
    return trajectories


def owners_of(episodes: Sequence[Episode], size: int) -> list[int]:
    """The rank that plays each episode: groups are dealt out in turn."""
    numbers: dict[int, int] = {}
    return [numbers.setdefault(episode.group, len(numbers)) % size for episode in episodes]
