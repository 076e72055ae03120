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
from agents.training.verifier_errors import error_cause, shown
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
    error_causes: dict[str, int]
    """How many verifier errors had each cause, the most common first."""
    trajectories: tuple[Trajectory, ...]

    def __str__(self) -> str:
        low, high = self.interval
        broken = f", {self.verifier_errors} verifier errors left out" if self.verifier_errors else ""
        if self.error_causes:
            cause, count = next(iter(self.error_causes.items()))
            broken += f", {count} of them: {shown(cause)}"
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

    An environment that does not say its `num_problems` draws each problem itself, from a seed of its own: the same ones in
    each evaluation with one `seed`, and the same for all samples of a problem.

    Args:
        env: See `rollout`.
        policy: Who answers.
        problems: How many problems; None for all, where the environment says how many there are.
        samples: Completions for each problem.
        seed: Decides the sampling.
        on_episode: Called as each episode ends.

    Raises:
        InvalidArgumentError: If the environment has fewer problems, or neither it nor `problems` says how many.
    """
    available = num_problems(env)
    count = _number_of_problems(available, problems, samples)
    seeds = episode_seeds(seed, _EVALUATION, count * samples)
    starts = env_seeds(env, seed, _EVALUATION, count)
    episodes = [
        Episode(-1 if available is None else number, number, int(seeds[index]), starts[number])
        for index, number in enumerate(np.repeat(np.arange(count), samples).tolist())
    ]
    return summarize_evaluation(rollout(env, policy, episodes, on_episode=on_episode), count, samples)


def _number_of_problems(available: int | None, wanted: int | None, samples: int) -> int:
    count = available if wanted is None else wanted
    if count is None:
        raise InvalidArgumentError(
            "the environment does not say its num_problems: say how many are to be drawn, as in evaluate(env, problems=100)"
        )
    if count < 1 or samples < 1 or (available is not None and count > available):
        said = "at least 1 of each is needed" if available is None else f"the environment has {available} problems"
        raise InvalidArgumentError(f"can't evaluate {count} problems x {samples}: {said}")
    return count


def summarize_evaluation(trajectories: list[Trajectory], problems: int, samples: int) -> Evaluation:
    """Work out the score of `samples` trajectories for each of `problems`."""
    by_problem: dict[int, list[float]] = {}
    for trajectory in trajectories:
        if not trajectory.broken:
            by_problem.setdefault(trajectory.group, []).append(trajectory.score)
    means = np.array([np.mean(scores) for scores in by_problem.values()])
    outcomes = Counter(str(t.verdict.outcome) for t in trajectories if t.verdict is not None)
    causes = Counter(error_cause(t.verdict.detail) for t in trajectories if t.verdict is not None and t.broken)
    return Evaluation(
        problems=problems,
        samples=samples,
        score=float(means.mean()) if len(means) else math.nan,
        interval=_interval(means),
        outcomes=dict(sorted(outcomes.items())),
        truncated=sum(trajectory.truncated for trajectory in trajectories),
        verifier_errors=outcomes[str(Outcome.VERIFIER_ERROR)],
        error_causes=dict(causes.most_common()),
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
