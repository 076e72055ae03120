"""Partial rollouts (Kimi k1.5, arXiv:2501.12599): groups that are not done when a batch is full are carried over the update.

```
problems_per_step 2, carried_groups 1     : an update that a group is carried over     | its end

             step 0    step 1    step 2
group 0      =====|
group 1      =========|
group 2      =========:====|
group 3                =========:===|
group 4                =========|
group 5                          =========|
group 6                          =========:
```

A step plays `problems_per_step` groups and `carried_groups` more, and ends as soon as `problems_per_step` groups are done. So
the step does not wait for the longest completions. Timing has no influence: all unfinished episodes continue by
`segment_tokens` tokens before the finished groups are counted. So a run is repeatable, for any number of rows and ranks. Each
token has the version of the weights that sampled it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from gymnasium.vector import VectorEnv

from agents.learn.algorithm import Plays
from agents.learn.trajectory_state import trajectory_from_state, trajectory_state
from agents.rollouts.loop import Episode, PartialEpisode
from agents.settings.agent import AgentConfig
from agents.types import Interruptible, Policy, Trajectory

Unfinished = Episode | PartialEpisode
PlayOn = Callable[[Sequence[Unfinished]], Sequence[PartialEpisode | Trajectory]]
"""A function that continues episodes by one segment."""


@dataclass(frozen=True)
class CarriedGroup:
    """A group of episodes that a step has begun and no update has used yet."""

    begun: int
    """Number of the round of the step that began the group."""
    members: tuple[Unfinished | Trajectory, ...]
    """The group's episodes: not yet begun, interrupted, or done."""

    @property
    def unfinished(self) -> list[Unfinished]:
        """The members that are not done."""
        return [member for member in self.members if not isinstance(member, Trajectory)]

    @property
    def trajectories(self) -> list[Trajectory]:
        """The members that are done."""
        return [member for member in self.members if isinstance(member, Trajectory)]


@dataclass(frozen=True)
class Collected:
    """The episodes of a step's batch, and the groups that are carried over to the next step."""

    trajectories: list[Trajectory]
    carried: tuple[CarriedGroup, ...]
    metrics: dict[str, float]
    """See `carried_metrics`."""


class PlaysSegments(Plays, Protocol):
    """Plays episodes, and interrupts them."""

    def play_on(
        self, env: VectorEnv[Any, Any, Any], episodes: Sequence[Unfinished], policy: Policy, tokens: int
    ) -> list[Trajectory | PartialEpisode]:
        """Continue episodes, and interrupt each after `tokens` further tokens of the policy."""


def collect_carried(
    sampling: PlaysSegments,
    config: AgentConfig,
    env: VectorEnv[Any, Any, Any],
    step: int,
    carried: Sequence[CarriedGroup],
) -> Collected:
    """Play groups until enough groups for a batch are done."""
    wanted, tokens = config.problems_per_step, config.segment_tokens
    # An engine samples whole completions unless its requests say where to interrupt them.
    sampler = sampling.sampler
    policy: Policy = sampler.interrupted_after(tokens) if isinstance(sampler, Interruptible) else sampler
    begun = begin_groups(
        lambda number: sampling.episodes(env, number), step, wanted, config.carried_groups, len(carried)
    )
    done, rest = fill_batch(
        [*carried, *begun],
        wanted,
        sum(step - group.begun >= config.max_carried_steps for group in carried),
        lambda unfinished: sampling.play_on(env, unfinished, policy, tokens),
    )
    trajectories = [trajectory for group in done for trajectory in group.trajectories]
    return Collected(trajectories, tuple(rest), carried_metrics(done, step, sampling.sampler.version))


def begin_groups(
    episodes: Callable[[int], Sequence[Episode]], step: int, per_step: int, carried_groups: int, under_way: int
) -> list[CarriedGroup]:
    """The groups that a step begins: as many as its batch needs, and in the first step `carried_groups` more."""
    groups, rounds = list[CarriedGroup](), dict[int, list[list[Episode]]]()
    for number in range(step * per_step + under_way, (step + 1) * per_step + carried_groups):
        round_, index = divmod(number, per_step)
        if round_ not in rounds:
            rounds[round_] = _grouped(episodes(round_))
        members = (dataclasses.replace(episode, group=number) for episode in rounds[round_][index])
        groups.append(CarriedGroup(step, tuple(members)))
    return groups


def _grouped(episodes: Sequence[Episode]) -> list[list[Episode]]:
    groups: dict[int, list[Episode]] = {}
    for episode in episodes:
        groups.setdefault(episode.group, []).append(episode)
    return list(groups.values())


def fill_batch(
    groups: Sequence[CarriedGroup], wanted: int, required: int, play_on: PlayOn
) -> tuple[list[CarriedGroup], list[CarriedGroup]]:
    """Continue playing groups until enough of them are done.

    Args:
        groups: The groups; the first `required` groups have to be returned as done.
        wanted: Number of groups to return as done, at least `required`.
        required: Number of leading groups that must be finished now, since they can't be carried over again.
        play_on: Continues the unfinished episodes of all groups by one segment.

    Returns:
        The `wanted` groups that form the batch, and all other groups, both in the order of `groups`.
    """
    groups, order = list(groups), list[int]()
    while True:
        order += [index for index, group in enumerate(groups) if index not in order and not group.unfinished]
        if len(order) >= wanted and set(range(required)) <= set(order):
            break
        groups = _play_on(groups, play_on)
    done = set(
        sorted(order, key=lambda index: index >= required)[:wanted]
    )  # a stable sort keeps the order in which groups were done
    return (
        [group for index, group in enumerate(groups) if index in done],
        [group for index, group in enumerate(groups) if index not in done],
    )


def _play_on(groups: Sequence[CarriedGroup], play_on: PlayOn) -> list[CarriedGroup]:
    played = iter(play_on([member for group in groups for member in group.unfinished]))
    return [
        dataclasses.replace(
            group,
            members=tuple(member if isinstance(member, Trajectory) else next(played) for member in group.members),
        )
        for group in groups
    ]


def carried_metrics(groups: Sequence[CarriedGroup], step: int, version: int) -> dict[str, float]:
    """Metrics that show how much of a batch was sampled with weights older than the newest.

    Returns:
        `sampling/carried_share`, the share of the policy's tokens with an earlier version; and `sampling/carried_steps`, the
        largest number of updates that a group was carried over.
    """
    versions = np.concatenate([one.policy_version[one.policy_mask] for group in groups for one in group.trajectories])
    return {
        "sampling/carried_share": float((versions < version).mean()) if len(versions) else 0.0,
        "sampling/carried_steps": float(max(step - group.begun for group in groups)),
    }


def num_policy_tokens(episodes: Sequence[Unfinished | Trajectory]) -> int:
    """Number of tokens that the policy has sampled in some episodes so far."""
    played = [each.played if isinstance(each, PartialEpisode) else each for each in episodes]
    return sum(int(each.policy_mask.sum()) for each in played if isinstance(each, Trajectory))


def carried_state(groups: Sequence[CarriedGroup]) -> list[dict[str, Any]]:
    """Groups as tensors and plain data, without states of the environment, which are restored by playing the tokens again."""
    return [{"begun": group.begun, "members": list(map(_member_state, group.members))} for group in groups]


def carried_from_state(state: Sequence[Mapping[str, Any]]) -> tuple[CarriedGroup, ...]:
    """Restore a state that `carried_state` returned."""
    return tuple(CarriedGroup(group["begun"], tuple(map(_member, group["members"]))) for group in state)


def _member_state(member: Unfinished | Trajectory) -> dict[str, Any]:
    if isinstance(member, Trajectory):
        return {"played": trajectory_state(member)}
    episode, played = (member.episode, member.played) if isinstance(member, PartialEpisode) else (member, None)
    fields = {name: getattr(episode, name) for name in ("problem", "group", "seed", "env_seed")}
    return {"episode": fields, "played": None if played is None else trajectory_state(played)}


def _member(state: Mapping[str, Any]) -> Unfinished | Trajectory:
    played = None if state["played"] is None else trajectory_from_state(state["played"])
    if "episode" not in state:
        assert played is not None
        return played
    episode = Episode(**state["episode"])
    return episode if played is None else PartialEpisode(episode, played)
