"""The interface of all searches; `agents.search` implements some."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from gymnasium.vector import VectorEnv

from agents.rollouts.loop import Episode
from agents.types import Policy, Trajectory


@dataclass(frozen=True, slots=True)
class SearchResult:
    """The episode that one search chose, and its cost."""

    trajectory: Trajectory
    """The episode that was chosen, judged by the environment; log-probabilities are NaN for tokens that were not sampled."""
    guide_score: float
    """The guide's score for this episode, in the search's own unit."""
    tokens: int
    """Number of tokens that the policy sampled, plus the number of states whose next tokens it rated, over all tries."""


class Search(Protocol):
    """Tries several episodes, and chooses one of them."""

    @property
    def oracle(self) -> bool:
        """Whether the guide is the verifier that scores the chosen episode."""

    @property
    def manifest(self) -> Mapping[str, Any]:
        """The method, its guide and its budget as plain data, for the records of an evaluation."""

    def find(
        self, env: VectorEnv[Any, Any, Any], policy: Policy, episodes: Sequence[Episode]
    ) -> Iterator[tuple[int, SearchResult]]:
        """Search once for each of some episodes, and yield each result with its index.

        Each episode has the problem, the state to start from, and the seed, which determines every draw.
        """
