"""The problems of an environment, as several parts if it is a mixture, and the outcomes of groups."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from gymnasium.vector import VectorEnv

import rlvr_envs
from agents.rollouts.vector_adapter import num_problems
from agents.types import Trajectory
from verifiers import Outcome


@dataclass(frozen=True)
class GroupOutcome:
    """The outcome of a group."""

    problem: int
    scores: tuple[float, ...]
    """The score of each completion whose verifier did not break, from 0 (wrong) to 1 (right)."""
    tokens: int
    """Number of tokens that the policy sampled."""


@dataclass(frozen=True)
class ProblemParts:
    """The problems of an environment, as several parts if it is a mixture."""

    ranges: tuple[range, ...]
    weights: tuple[float, ...] = (1.0,)
    by: Literal["problems", "tokens", "levels"] = "problems"
    """The unit of the weights: see `rlvr_envs.mix`."""
    names: tuple[str, ...] = ("",)

    def part_of(self, problem: int) -> int:
        """The number of a problem's part."""
        return next(number for number, indices in enumerate(self.ranges) if problem in indices)


def problem_parts(env: VectorEnv[Any, Any, Any]) -> ProblemParts | None:
    """The parts of an environment's problems; None if the environment draws problems itself."""
    size, world = num_problems(env), env.unwrapped
    data = world.streams.dataset if isinstance(world, rlvr_envs.TokenVectorEnv) else None
    if isinstance(data, rlvr_envs.MixedDataset):
        ranges = tuple(range(*ends) for ends in zip(data.starts, data.starts[1:], strict=False))
        return ProblemParts(ranges, data.weights, data.by, data.names)
    return None if size is None else ProblemParts((range(size),))


def group_outcomes(trajectories: Sequence[Trajectory]) -> list[GroupOutcome]:
    """The outcomes of the groups of some episodes."""
    groups: dict[int, list[Trajectory]] = {}
    for trajectory in trajectories:
        groups.setdefault(trajectory.group, []).append(trajectory)
    return [
        GroupOutcome(
            members[0].problem,
            tuple(_right(member) for member in members if not member.errored),
            sum(int(member.policy_mask.sum()) for member in members),
        )
        for members in groups.values()
        if members[0].problem >= 0
    ]


def _right(trajectory: Trajectory) -> float:
    """The correctness of a completion, from 0 to 1."""
    outcome = None if trajectory.verdict is None else trajectory.verdict.outcome
    if outcome in (None, Outcome.SCORED):
        return min(max(trajectory.score, 0.0), 1.0)
    return float(outcome is Outcome.CORRECT)
