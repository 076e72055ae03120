"""`EpsilonGreedyPolicy`: mostly the likeliest token of another policy, sometimes a random legal token."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
from numpy.typing import NDArray

import rlvr_envs
from agents.seeding import mix, uniforms
from agents.types import Action, Policy


class EpsilonGreedyPolicy:
    """Follows a policy that chooses one token at a time, but with probability `epsilon` draws a legal token uniformly.

    Draws depend on the seeds of the episodes and the position of the token.
    """

    def __init__(self, greedy: Policy, vocab_size: int, epsilon: float) -> None:
        self.greedy = greedy
        self.vocab_size = vocab_size
        self.epsilon = epsilon
        self._seeds = np.zeros(0, dtype=np.uint64)

    @property
    def version(self) -> int:
        """The version of the policy that is followed."""
        return self.greedy.version

    def begin(self, rows: NDArray[np.int64], seeds: NDArray[np.uint64]) -> None:
        """Announce new episodes in some rows, with their sampling seeds u64[r]."""
        missing = int(rows.max(initial=-1)) + 1 - len(self._seeds)
        self._seeds = np.pad(self._seeds, (0, max(missing, 0)))
        self._seeds[rows] = seeds
        self.greedy.begin(rows, seeds)

    def act(
        self,
        observation: rlvr_envs.Observation,
        *,
        action_mask: NDArray[np.int8] | None = None,
        rows: NDArray[np.bool_] | None = None,
    ) -> Action:
        """Choose tokens; see `Policy.act`."""
        action = self.greedy.act(observation, action_mask=action_mask, rows=rows)
        length = observation["length"].reshape(-1).astype(np.int64)
        legal = np.ones((len(length), self.vocab_size), dtype=bool) if action_mask is None else action_mask.astype(bool)
        seeds = np.pad(self._seeds, (0, len(length) - len(self._seeds)))  # rows in which no episode has begun yet
        explores = uniforms(seeds, length) < self.epsilon
        nth = (uniforms(mix(seeds), length) * legal.sum(axis=1)).astype(np.int64)
        drawn = (legal.cumsum(axis=1) > nth[:, None]).argmax(axis=1)
        best = action.tokens[:, 0]
        tokens = np.where(explores, drawn, best)
        probability = self.epsilon / legal.sum(axis=1) + (1 - self.epsilon) * (tokens == best)
        with np.errstate(divide="ignore"):
            logprobs = np.log(probability).astype(np.float32)
        chosen = action.counts > 0
        return dataclasses.replace(
            action,
            tokens=np.where(chosen, tokens, 0)[:, None],
            logprobs=np.where(chosen, logprobs, -math.inf)[:, None].astype(np.float32),
        )
