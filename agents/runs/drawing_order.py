"""The order in which problems are drawn: the first n problems are a random sample for every n, and clusters stay together."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence

import rlvr_envs
from agents.runs.clusters import own_cluster, problem_cluster
from agents.runs.files.json_files import to_json
from verifiers import InvalidArgumentError, Problem


def drawing_order(problems: Iterable[str], clusters: Mapping[str, Hashable], seed: int) -> list[str]:
    """Problems in a random order that depends only on the seed and their ids, with each cluster kept together.

    Leaving out or adding problems does not change the order of the other problems.
    """
    return sorted(problems, key=lambda problem: (_mark(seed, clusters[problem]), _mark(seed, problem)))


def dataset_order(problems: rlvr_envs.Dataset, seed: int, column: str | None) -> tuple[list[int], list[Hashable]]:
    """The indices of a data set's problems in drawing order, and their clusters in the same order."""
    cluster = cluster_by(column)
    clusters: dict[str, Hashable] = {}
    indices: dict[str, int] = {}
    for index in range(len(problems)):
        problem = problems[index]
        if indices.setdefault(problem.id, index) != index:
            raise InvalidArgumentError(
                f"problems {indices[problem.id]} and {index} have one id, {problem.id!r}, so that no order can be drawn"
            )
        clusters[problem.id] = cluster(problem) or own_cluster(problem.id)
    order = drawing_order(indices, clusters, seed)
    return [indices[name] for name in order], [clusters[name] for name in order]


def cluster_by(column: str | None) -> Callable[[Problem | None], str | None]:
    """A function that returns the cluster of a problem: the problem's value in a column, or a digest of its prompt.

    Args:
        column: A key of the problems' metadata; None groups problems by their prompts. The function raises
            `InvalidArgumentError` for a problem without this key.
    """
    return problem_cluster if column is None else lambda problem: _in_column(problem, column)


def _in_column(problem: Problem | None, column: str) -> str | None:
    if problem is None:
        return None
    if column not in problem.metadata:
        known = ", ".join(map(str, problem.metadata)) or "none"
        raise InvalidArgumentError(
            f"problem {problem.id!r} has no column {column!r} for its cluster; its columns: {known}"
        )
    return f"{column}={to_json(problem.metadata[column])}"


def whole_clusters(clusters: Sequence[Hashable], problems: int) -> int:
    """The smallest number of problems, at least `problems`, at which the sequence can be cut without splitting a cluster."""
    while 0 < problems < len(clusters) and clusters[problems] == clusters[problems - 1]:
        problems += 1
    return min(problems, len(clusters))


def _mark(seed: int, name: Hashable) -> bytes:
    return hashlib.blake2b(f"{seed} {name}".encode("utf-8", "surrogatepass"), digest_size=16).digest()
