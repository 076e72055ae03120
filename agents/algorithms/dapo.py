"""DAPO: Decoupled Clip and Dynamic Sampling Policy Optimization (Yu et al. 2025, arXiv:2503.14476, section 3).

DAPO makes four changes to GRPO. The upper clip range is wider than the lower clip range, so that unlikely tokens can become
likely (clip-higher). Problems whose completions all score the same are replaced before the update (dynamic sampling). The loss
is a mean over tokens. Completions close to the limit are penalised (soft overlong shaping; set `truncation="soft-overlong"`,
`max_tokens` and `overlong_margin`). The expected gradient of a step has the biases of GRPO.

Departure from the paper: after `max_rounds` rounds of problems, the step continues with the groups so far.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from gymnasium.vector import VectorEnv

from agents.algorithms.grpo import GRPO, GRPOConfig
from agents.learn.algorithm import Plays
from agents.types import Trajectory
from verifiers import AtLeast


@dataclass(frozen=True)
class DAPOConfig(GRPOConfig):
    """Settings of DAPO."""

    clip_high: float = 0.28
    max_rounds: Annotated[int, AtLeast(1)] = 4
    """Maximum number of rounds of a step. A round draws `problems_per_step` problems; rounds are drawn until this number of
    groups each contain different scores. 1 turns dynamic sampling off."""


class DAPO(GRPO):
    """GRPO with clip-higher and dynamic sampling."""

    name = "dapo"
    config: DAPOConfig

    def sample_batch(
        self, sampling: Plays, env: VectorEnv[Any, Any, Any], first_round: int
    ) -> tuple[list[Trajectory], int]:
        """Play rounds of problems until `problems_per_step` groups each contain different scores."""
        if self.config.max_rounds == 1:
            return super().sample_batch(sampling, env, first_round)
        wanted = self.config.problems_per_step
        flat: list[list[Trajectory]] = []
        spread: list[list[Trajectory]] = []
        rounds = 0
        while len(spread) < wanted and rounds < self.config.max_rounds:
            for group in _groups(sampling.play(env, sampling.episodes(env, first_round + rounds))):
                (spread if _spreads(group) else flat).append(group)
            rounds += 1
        # Groups of equal scores fill up the step. They have no gradient, and keep the configured size of the step.
        return _renumbered((spread + flat)[:wanted]), rounds


def _groups(trajectories: Sequence[Trajectory]) -> list[list[Trajectory]]:
    groups: dict[int, list[Trajectory]] = {}
    for trajectory in trajectories:
        groups.setdefault(trajectory.group, []).append(trajectory)
    return list(groups.values())


def _spreads(group: Sequence[Trajectory]) -> bool:
    scores = [trajectory.score for trajectory in group if not trajectory.errored]
    return bool(scores) and max(scores) > min(scores)


def _renumbered(groups: Sequence[Sequence[Trajectory]]) -> list[Trajectory]:
    """Renumber groups, since groups of different rounds have the same numbers."""
    return [
        dataclasses.replace(trajectory, group=number) for number, group in enumerate(groups) for trajectory in group
    ]
