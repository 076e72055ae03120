"""All random numbers of a run: the seeds of episodes, samples, orders and environments, and the numbers drawn from them.

The generator is counter-based, so that a number depends on its purpose, not on earlier draws.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from gymnasium.vector import VectorEnv
from numpy.typing import NDArray

import rlvr_envs

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
ORDERS = 2**62
"""The first stream for orders of problems; the streams of training steps count from 0."""
DRAWS = 2**60
"""The first stream for drawing problems according to earlier observations of them."""
ENVIRONMENTS = 2**61
"""The first stream for the reset seeds of environments."""


def mix(values: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Scramble 64-bit words: the finaliser of SplitMix64 (Steele, Lea and Flood 2014, figure 17), a bijection."""
    with np.errstate(over="ignore"):
        z = values + _GOLDEN
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return z ^ (z >> np.uint64(31))


def uniforms(seeds: NDArray[np.uint64], positions: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return a number in [0, 1) for each seed u64[b] and position i64[b]."""
    with np.errstate(over="ignore"):
        words = mix(mix(seeds) + positions.astype(np.uint64) * _GOLDEN)
    return (words >> np.uint64(11)).astype(np.float64) * 2.0**-53


def env_seeds(env: VectorEnv[Any, Any, Any], seed: int, stream: int, count: int) -> Sequence[int | None]:
    """Reset seeds of `count` problems; None for a `TokenVectorEnv`, whose problems are fixed.

    Seeds have 31 bits, since not every environment accepts larger seeds.
    """
    if isinstance(env.unwrapped, rlvr_envs.TokenVectorEnv):
        return [None] * count
    seeds: list[int] = (episode_seeds(seed, ENVIRONMENTS + stream, count) >> np.uint64(33)).tolist()
    return seeds


def sample_seeds(seed: int, stream: int, problems: int, samples: int) -> NDArray[np.uint64]:
    """Sampling seeds u64[p s], one for each sample of each problem; no seed depends on the number of problems or samples."""
    return mix(episode_seeds(seed, stream, problems)[:, None] ^ mix(np.arange(samples, dtype=np.uint64)))


def episode_seeds(seed: int, stream: int, count: int) -> NDArray[np.uint64]:
    """Sampling seeds u64[count] of the episodes of one step."""
    origin = mix(np.array([seed % 2**64], dtype=np.uint64))
    base = mix(origin ^ np.uint64(stream % 2**64))
    return mix(base ^ mix(np.arange(count, dtype=np.uint64)))
