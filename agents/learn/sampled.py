"""`Sampled`: the results of sampling one batch, also as tensors and plain data for checkpoints."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from agents.learn.carried import CarriedGroup, carried_from_state, carried_state
from agents.learn.trajectory_state import trajectory_from_state, trajectory_state
from agents.learn.verifier_errors import SeenEpisodes
from agents.rollouts.problem_parts import GroupOutcome
from agents.types import Trajectory


@dataclass(frozen=True)
class Sampled:
    """The episodes of one training step, and the measurements made while they were played."""

    trajectories: list[Trajectory]
    rounds: int
    """Number of rounds of problems drawn."""
    tokens: int
    """Number of tokens generated, including episodes that are not trained on."""
    seen: SeenEpisodes
    """All episodes played; used to count verifier errors."""
    metrics: Mapping[str, float]
    """Measurements of the weight transfer and of carried groups."""
    seconds: float
    verify_seconds: float | None
    """Seconds spent on verification, None if the environment reports none."""
    carried: tuple[CarriedGroup, ...] = ()
    """The groups that were begun and are not done."""
    outcomes: tuple[GroupOutcome, ...] = ()
    """The outcomes of all groups that were played to their end, including those that are not trained on."""


def sampled_state(sampled: Sampled) -> dict[str, Any]:
    """The results as tensors and plain data, for `sampled_from_state`."""
    seen = sampled.seen
    return {
        **{name: getattr(sampled, name) for name in ("rounds", "tokens", "seconds", "verify_seconds")},
        "metrics": dict(sampled.metrics),
        "trajectories": [trajectory_state(trajectory) for trajectory in sampled.trajectories],
        "episodes": seen.episodes,
        "errored": [trajectory_state(trajectory) for trajectory in seen.errored],
        "carried": carried_state(sampled.carried),
        "outcomes": [(group.problem, group.scores, group.tokens) for group in sampled.outcomes],
    }


def sampled_from_state(state: Mapping[str, Any]) -> Sampled:
    """Restore a state that `sampled_state` returned."""
    fields = dict(state)
    errored = [trajectory_from_state(each) for each in fields.pop("errored")]
    trajectories = [trajectory_from_state(each) for each in fields.pop("trajectories")]
    carried = carried_from_state(fields.pop("carried"))
    outcomes = tuple(GroupOutcome(problem, tuple(scores), tokens) for problem, scores, tokens in fields.pop("outcomes"))
    seen = SeenEpisodes(fields.pop("episodes"), errored)
    return Sampled(seen=seen, carried=carried, outcomes=outcomes, **{**fields, "trajectories": trajectories})
