"""Scoring a policy, with the uncertainty of the score."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from gymnasium.vector import VectorEnv

from agents.adapter import num_problems
from agents.problems import env_seeds, episode_seeds
from agents.rollouts import Episode, rollout
from agents.types import Policy, Trajectory
from verifiers import InvalidArgumentError, Outcome

_Z = 1.959964
"""The normal distribution's quantile of a two-sided 95 % interval."""
_EVALUATION = 2**63
"""Keeps the sampling seeds of evaluations apart from those of training steps, which count from 0."""


@dataclass(frozen=True)
class Evaluation:
    """What a policy scored. Episodes whose verifier broke are counted and left out of every mean."""

    problems: int
    samples: int
    """Completions for each problem."""
    score: float
    """Mean over problems of the mean over their completions."""
    interval: tuple[float, float]
    """95 % interval of the score, over problems, since completions of one problem are not independent: Wilson's where each
    problem is all right or all wrong, or all have the same share; else the normal approximation."""
    outcomes: dict[str, int]
    truncated: int
    verifier_errors: int
    trajectories: tuple[Trajectory, ...]

    def __str__(self) -> str:
        low, high = self.interval
        broken = f", {self.verifier_errors} verifier errors left out" if self.verifier_errors else ""
        return f"{self.score:.3f} [{low:.3f}, {high:.3f}] ({self.problems} problems x {self.samples}{broken})"


def evaluate(
    env: VectorEnv[Any, Any, Any],
    policy: Policy,
    *,
    problems: int | None = None,
    samples: int = 1,
    seed: int = 0,
    on_episode: Callable[[Trajectory], None] | None = None,
) -> Evaluation:
    """Let a policy answer the first problems of an environment's data set.

    Args:
        env: See `rollout`; it has to say its `num_problems`.
        policy: Who answers.
        problems: How many problems; None for all.
        samples: Completions for each problem.
        seed: Decides the sampling.
        on_episode: Called as each episode ends.

    Raises:
        InvalidArgumentError: If the environment has fewer problems, or does not say how many.
    """
    available = num_problems(env)
    count = available if problems is None else problems
    if available is None or count is None or not 1 <= count <= available or samples < 1:
        raise InvalidArgumentError(
            f"can't evaluate {count} problems x {samples}: the environment has {available} problems"
        )
    seeds = episode_seeds(seed, _EVALUATION, count * samples)
    starts = env_seeds(env, seed, _EVALUATION, count)
    episodes = [
        Episode(index // samples, index // samples, int(seeds[index]), starts[index // samples])
        for index in range(count * samples)
    ]
    return summarize_evaluation(rollout(env, policy, episodes, on_episode=on_episode), count, samples)


def summarize_evaluation(trajectories: list[Trajectory], problems: int, samples: int) -> Evaluation:
    """Work out the score of `samples` trajectories for each of `problems`."""
    by_problem: dict[int, list[float]] = {}
    for trajectory in trajectories:
        if not trajectory.broken:
            by_problem.setdefault(trajectory.group, []).append(trajectory.score)
    means = np.array([np.mean(scores) for scores in by_problem.values()])
    outcomes = Counter(str(t.verdict.outcome) for t in trajectories if t.verdict is not None)
    return Evaluation(
        problems=problems,
        samples=samples,
        score=float(means.mean()) if len(means) else math.nan,
        interval=_interval(means),
        outcomes=dict(sorted(outcomes.items())),
        truncated=sum(trajectory.truncated for trajectory in trajectories),
        verifier_errors=outcomes[str(Outcome.VERIFIER_ERROR)],
        trajectories=tuple(trajectories),
    )


def _interval(means: np.ndarray) -> tuple[float, float]:
    if not len(means):
        return math.nan, math.nan
    shares = bool((means >= 0).all() and (means <= 1).all())
    if shares and (np.isin(means, (0.0, 1.0)).all() or (len(means) > 1 and means.std() == 0)):
        return wilson_interval(float(means.sum()), len(means))
    half = _Z * float(means.std(ddof=1)) / math.sqrt(len(means)) if len(means) > 1 else math.inf
    low, high = float(means.mean()) - half, float(means.mean()) + half
    return (max(low, 0.0), min(high, 1.0)) if shares else (low, high)


def wilson_interval(successes: float, trials: int) -> tuple[float, float]:
    """The 95 % score interval of a proportion (Wilson 1927)."""
    share, z2 = successes / trials, _Z**2
    center = (share + z2 / (2 * trials)) / (1 + z2 / trials)
    half = _Z * math.sqrt(share * (1 - share) / trials + z2 / (4 * trials**2)) / (1 + z2 / trials)
    return max(0.0, center - half), min(1.0, center + half)
