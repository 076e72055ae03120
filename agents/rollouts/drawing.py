"""Draws problems for several models until it is decided which model of each pair is better."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from agents.runs.decisions import PairDecision, Rules, decide_pairs
from agents.runs.drawing_order import whole_clusters
from agents.runs.reading import GrowingRun

_HOPELESS = 50
"""Number of problems after which a pair with too many errors is given up, since further problems would hardly help."""


@dataclass(frozen=True)
class Entrant:
    """A model that answers the problems of an environment."""

    name: str
    folder: Path
    """The folder of the model's record."""
    samples: int
    """Number of completions for each problem."""
    evaluate_first: Callable[[int], object]
    """Extends the record to the given number of first problems in the drawing order."""
    recorded: int = 0
    """Number of problems that the record already had; it can't become smaller."""


@dataclass(frozen=True)
class Drawing:
    """The problems, and how many are drawn at once."""

    clusters: Sequence[Hashable]
    """The cluster of each problem of the data set, in drawing order."""
    problems: int
    """Maximum number of problems to draw."""
    at_once: int
    """Number of samples of a model between two looks at the results; more if the last cluster is larger, since clusters are
    drawn whole."""
    budget: int | None = None
    """Maximum number of samples of all models together; None for no limit."""

    @property
    def largest_cluster(self) -> int:
        """Number of problems of the largest cluster."""
        ends = [end for end in range(1, len(self.clusters) + 1) if whole_clusters(self.clusters, end) == end]
        return max(end - start for start, end in zip([0, *ends], ends, strict=False))


def draw_until_decided(
    entrants: Sequence[Entrant], drawing: Drawing, rules: Rules, say: Callable[[str], object]
) -> list[PairDecision]:
    """Draw problems until each pair is decided, or the problems or the budget are spent.

    A model without an open pair answers no further problems.

    Returns:
        A decision for each pair; its result is None if the pair could not be decided.
    """
    rules = replace(rules, largest_cluster=drawing.largest_cluster)
    closed: dict[tuple[str, str], PairDecision] = {}
    records = [GrowingRun(entrant.folder) for entrant in entrants]
    active, drawn, spent = list(entrants), 0, 0
    while True:
        step = max(1, drawing.at_once // max(entrant.samples for entrant in active))
        target = whole_clusters(drawing.clusters, min(drawn + step, drawing.problems))
        cost = (target - drawn) * sum(entrant.samples for entrant in active)
        over_budget = drawing.budget is not None and spent + cost > drawing.budget and drawn > 0
        why = "the budget is spent" if over_budget else "all problems are drawn" if target == drawn else None
        if why is None:
            for entrant in active:
                entrant.evaluate_first(max(target, entrant.recorded))
            drawn, spent = target, spent + cost
        runs = [record.read() for record in records]
        for decision in decide_pairs(runs, rules, [entrant.name for entrant in entrants]):
            pair = (decision.first, decision.second)
            hopeless = decision.too_many_errors and decision.excluded + decision.comparison.problems >= _HOPELESS
            if pair not in closed and (why or hopeless or decision.decision):
                closed[pair] = decision
                say(str(decision) if decision.decision or not why else f"{decision}; {why}")
        names = {name for pair in _pairs(entrants) if pair not in closed for name in pair}
        active = [entrant for entrant in entrants if entrant.name in names]
        if not active:
            return [closed[pair] for pair in _pairs(entrants)]


def _pairs(entrants: Sequence[Entrant]) -> list[tuple[str, str]]:
    return [(one.name, two.name) for number, one in enumerate(entrants) for two in entrants[number + 1 :]]
