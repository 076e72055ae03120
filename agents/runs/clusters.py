"""Clusters of problems that ask the same question: problems with equal prompts count as one in every interval and test.

A policy answers equal prompts alike, so scores of the same question are not independent evidence. Problems whose prompts do not
show everything that matters, such as games with a secret, count separately: their `metadata["hidden"]` is true.
"""

from __future__ import annotations

import hashlib
from collections.abc import Hashable

from agents.console.counting import counted
from agents.runs.files.json_files import to_json
from verifiers import Problem

HIDDEN = "hidden"
"""Key of a problem's metadata: true if the prompt does not show everything that decides an episode."""


def problem_cluster(problem: Problem | None) -> str | None:
    """A digest of a problem's question, equal for equal prompts.

    Returns:
        The digest; None for a hidden or unknown problem, which is its own cluster.
    """
    return None if problem is None or problem.metadata.get(HIDDEN) else _digest(problem.prompt)


def own_cluster(problem_id: str) -> Hashable:
    """The cluster of a problem that does not share its cluster with other problems."""
    return ("problem", problem_id)


def distinct_note(problems: int, distinct: int) -> str:
    """A note for a report's number of problems, such as `", 9 clusters"`; empty if no problems belong together."""
    return "" if distinct == problems else f", {counted(distinct, 'cluster')}"


def _digest(asked: object) -> str:
    return hashlib.blake2b(to_json(asked).encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()
