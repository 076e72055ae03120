"""What every search takes and gives."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from gymnasium.vector import VectorEnv

from agents.rollouts.loop import Episode
from agents.search.guides import ORACLE, guide_name
from agents.types import Policy, Trajectory
from verifiers import InvalidArgumentError


@dataclass(frozen=True, slots=True)
class SearchResult:
    """What one search chose, and what it cost."""

    trajectory: Trajectory
    """The episode that was chosen, judged by the environment; log-probabilities are NaN where its tokens were not sampled."""
    guide_score: float
    """What the guide gave it; the searches say in which units."""
    tokens: int
    """Number of tokens that the policy sampled, and of states whose next tokens it rated, for everything that was tried."""


class Search(Protocol):
    """Chooses one episode among those that it tries."""

    @property
    def oracle(self) -> bool:
        """Whether the guide is the verifier that scores the result."""
        ...

    @property
    def manifest(self) -> Mapping[str, Any]:
        """The method, its guide and its budget as plain data, for the records of an evaluation."""
        ...

    def find(
        self, env: VectorEnv[Any, Any, Any], policy: Policy, episodes: Sequence[Episode]
    ) -> Iterator[tuple[int, SearchResult]]:
        """Search once for each of some episodes, and yield each result with its index.

        The episodes say the problem, where to start and the seed, which decides everything that is drawn.
        """
        ...


def manifest_of(method: str, search: Any) -> dict[str, Any]:
    """The manifest of a search that is a dataclass of settings."""
    settings = {field.name: getattr(search, field.name) for field in dataclasses.fields(search)}
    if "guide" in settings:
        settings["guide"] = guide_name(settings["guide"])
    return {"method": method, **settings, "oracle": settings.get("guide") == ORACLE}


def require_counts(**values: object) -> None:
    """Check that settings are whole numbers of at least 1.

    Raises:
        InvalidArgumentError: If one is not.
    """
    for name, value in values.items():
        if not isinstance(value, int) or isinstance(value, bool) or value < 1:
            raise InvalidArgumentError(f"{name} must be a whole number of at least 1, got {value!r}")
