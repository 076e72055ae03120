"""Clusters of problems that ask the same question: problems with equal prompts count as one in every interval and test.

A policy answers equal prompts alike, so scores of the same question are not independent evidence. Problems whose prompts do not
show everything that matters, such as games with a secret, count separately: their `metadata["hidden"]` is true.
"""

from __future__ import annotations

import hashlib
from collections.abc import Hashable, Iterable, Mapping
from typing import Any, Protocol

from agents.console.counting import counted
from agents.runs.files.json_files import to_json
from verifiers import Problem

HIDDEN = "hidden"
"""Key of a problem's metadata: true if its prompt does not show everything that decides an episode."""


class Clustered(Protocol):
    """A sample of a problem."""

    @property
    def problem(self) -> int:
        """The problem's index."""
        ...

    @property
    def cluster(self) -> Hashable | None:
        """Equal for samples of problems with equal prompts; None if the problem is its own cluster."""
        ...


def problem_cluster(problem: Problem | None) -> str | None:
    """A digest of a problem's question, equal for equal prompts.

    Returns:
        The digest; None for a hidden or unknown problem, which is its own cluster.
    """
    return None if problem is None or problem.metadata.get(HIDDEN) else _digest(problem.prompt)


def own_cluster(problem_id: str) -> Hashable:
    """The cluster of a problem that does not share its cluster with other problems."""
    return ("problem", problem_id)


def recorded_cluster(line: Mapping[str, Any]) -> str | None:
    """The cluster of a recorded line; None if it is unknown, such as if the environment does not expose problems.

    Lines of earlier releases have no `cluster`, and do not record whether something is hidden: among them, only lines with
    equal prompts and equal references belong together.
    """
    if "cluster" in line:
        cluster: str | None = line["cluster"]
        return cluster
    return None if line.get("prompt") is None else _digest([line["prompt"], line.get("reference")])


def sample_clusters(samples: Iterable[Clustered]) -> dict[int, Hashable]:
    """The cluster of each problem of some samples, by the problem's index, in order of appearance."""
    clusters: dict[int, Hashable] = {}
    for sample in samples:
        if sample.problem not in clusters:
            clusters[sample.problem] = sample.problem if sample.cluster is None else sample.cluster
    return clusters


def distinct_note(problems: int, distinct: int) -> str:
    """A note to add to a report's number of problems if some belong together, `", 9 clusters"`; otherwise empty."""
    return "" if distinct == problems else f", {counted(distinct, 'cluster')}"


def _digest(asked: object) -> str:
    return hashlib.blake2b(to_json(asked).encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()
