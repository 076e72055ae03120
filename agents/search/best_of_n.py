"""Best of n: sample n completions and choose one.

A reward model makes the choice, as in Stiennon et al. 2020 (arXiv:2009.01325), or a vote, as in Wang et al. 2022
(arXiv:2203.11171).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
from gymnasium.vector import VectorEnv

from agents.rollouts.loop import Episode, play
from agents.rollouts.search import SearchResult
from agents.search.guides import GUIDES, ORACLE, Guide, check_guide, guide_scores, manifest_of
from agents.seeding import mix
from agents.types import Policy, Trajectory
from verifiers import AtLeast, InvalidArgumentError, check_types


@dataclass(frozen=True)
class BestOfN:
    """Samples n completions, and chooses the first completion with the guide's highest score.

    The guide `"majority"` is a vote (self-consistency). With a reward model, the search is the usual best of n.

    Raises:
        InvalidArgumentError: If n is less than 1, or the guide is invalid.
    """

    n: Annotated[int, AtLeast(1)]
    guide: Guide

    def __post_init__(self) -> None:
        check_types(self)
        check_guide(self.guide, GUIDES)

    @property
    def oracle(self) -> bool:
        """Whether the guide is the verifier that scores the result."""
        return self.guide == ORACLE

    @property
    def manifest(self) -> Mapping[str, Any]:
        """The settings as plain data."""
        return manifest_of("best-of-n", self)

    def find(
        self, env: VectorEnv[Any, Any, Any], policy: Policy, episodes: Sequence[Episode]
    ) -> Iterator[tuple[int, SearchResult]]:
        """Sample n completions for each episode, and yield its index and the chosen completion.

        Raises:
            InvalidArgumentError: If the policy is greedy, so that all n completions would be equal, or the guide breaks.
        """
        if self.n > 1 and getattr(policy, "temperature", None) == 0:
            raise InvalidArgumentError(
                f"all {self.n} completions would be the same at temperature 0: choose a higher one, such as 1.0 (--temperature)"
            )
        samples = [
            dataclasses.replace(episode, seed=int(seed))
            for episode in episodes
            for seed in _seeds(episode.seed, self.n)
        ]
        played: dict[int, dict[int, Trajectory]] = {}
        for index, trajectory in play(env, policy, samples):
            search, number = divmod(index, self.n)
            members = played.setdefault(search, {})
            members[number] = trajectory
            if len(members) == self.n:
                yield search, self._chosen(env, [members[number] for number in range(self.n)])
                del played[search]

    def _chosen(self, env: VectorEnv[Any, Any, Any], tried: Sequence[Trajectory]) -> SearchResult:
        scores = guide_scores(env, self.guide, tried)
        best = int(np.argmax(scores))
        return SearchResult(tried[best], scores[best], sum(int(one.policy_mask.sum()) for one in tried))


def _seeds(seed: int, count: int) -> Any:
    """Sampling seeds u64[count]."""
    return mix(mix(np.array([seed], dtype=np.uint64)) ^ mix(np.arange(count, dtype=np.uint64)))
