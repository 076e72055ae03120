"""The problems of each training step: a pure function of seed and step, so that resuming needs no saved position."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from gymnasium.vector import VectorEnv
from numpy.typing import NDArray

from agents.rollouts.loop import Episode
from agents.rollouts.vector_adapter import num_problems
from agents.seeding import ORDERS, env_seeds, episode_seeds


def problems_of_step(num_problems: int, step: int, per_step: int, seed: int) -> list[int]:
    """The indices of one step's problems; each pass over the data set has a new random order."""
    positions = pass_positions(num_problems, range(step * per_step, (step + 1) * per_step), seed)
    return [int(index) for index in positions]


def pass_positions(num_problems: int, numbers: range, seed: int) -> NDArray[np.int64]:
    """The problem indices i64[n] at some positions in the sequence of all passes over a data set, counted from 0."""
    chosen = [_order(num_problems, number // num_problems, seed)[number % num_problems] for number in numbers]
    return np.array(chosen, dtype=np.int64)


def _order(num_problems: int, epoch: int, seed: int) -> NDArray[np.int64]:
    key = (num_problems, epoch, seed)
    if key not in _orders:
        if len(_orders) >= _EPOCHS:
            _orders.clear()
        # Seed and epoch are mixed into one word: a list of both would be ambiguous for seeds of more than 32 bits.
        entropy = int(episode_seeds(seed, ORDERS + epoch, 1)[0])
        generator = np.random.Generator(np.random.PCG64(np.random.SeedSequence(entropy)))
        _orders[key] = generator.permutation(num_problems)
    return _orders[key]


_orders: dict[tuple[int, int, int], NDArray[np.int64]] = {}
_EPOCHS = 8
"""Number of orders that are cached: one for each part of a mixture."""


def episodes_of_step(
    env: VectorEnv[Any, Any, Any],
    step: int,
    problems_per_step: int,
    group_size: int,
    seed: int,
    problems: Sequence[int] | None = None,
) -> list[Episode]:
    """The episodes of one step: `group_size` for each problem, each with its own sampling seed.

    A `TokenVectorEnv` is reset with problem indices. Any other environment is reset with one seed per group, so that members
    of a group start alike, and a repeated or resumed run plays the same episodes.
    """
    size = num_problems(env)
    if problems is None:
        problems = [-1] * problems_per_step if size is None else problems_of_step(size, step, problems_per_step, seed)
    seeds = episode_seeds(seed, step, len(problems) * group_size)
    starts = env_seeds(env, seed, step, len(problems))
    return [
        Episode(problem, group, int(seeds[group * group_size + member]), starts[group])
        for group, problem in enumerate(problems)
        for member in range(group_size)
    ]
