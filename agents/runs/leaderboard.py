"""A leaderboard: recorded evaluations of several models or agents on several environments, with intervals.

The unit of an interval is the problem, or the seed if an agent was trained with several seeds. Intervals over problems show how
exact one model's score is; intervals over seeds show how much an algorithm's models differ.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from agents.console.counting import counted
from agents.runs.clusters import distinct_note
from agents.runs.comparison import compare_runs
from agents.runs.decisions import PairDecision
from agents.runs.reading import RecordedRun, paired_clusters
from verifiers import DataError, statistics


@dataclass(frozen=True)
class LeaderboardCell:
    """The score of one row of the leaderboard on one environment."""

    name: str
    """Name of the model or the agent."""
    environment: str
    runs: tuple[RecordedRun, ...]
    """The evaluations, one for each training seed of an agent; a single one for a model."""

    @property
    def scores(self) -> list[float]:
        """The mean score over problems, for each run."""
        means = [list(run.problem_scores().values()) for run in self.runs]
        for run, values in zip(self.runs, means, strict=True):
            if not values:
                raise DataError(
                    f"{run.folder} has no scored problem: see the errors in its samples, and continue the bench"
                )
        return [float(np.mean(values)) for values in means]

    @property
    def score(self) -> float:
        """The mean score over runs."""
        return float(np.mean(self.scores))

    @property
    def interval(self) -> statistics.Interval:
        """The interval over a single run's problems or, for several runs, Student's interval over runs."""
        if len(self.runs) > 1:
            interval = statistics.mean_interval(self.scores)
            return interval if math.isfinite(interval.low) else statistics.score_interval(self.scores)
        scores = self.runs[0].problem_scores()
        return statistics.score_interval(list(scores.values()), paired_clusters(self.runs, list(scores)))

    @property
    def problems(self) -> int:
        """Number of scored problems of the first run."""
        return len(self.runs[0].problem_scores())

    @property
    def distinct(self) -> int:
        """Number of distinct problems among the scored ones: problems with equal prompts are one cluster."""
        return len(set(paired_clusters(self.runs, list(self.runs[0].problem_scores()))))

    @property
    def errored(self) -> int:
        """Number of samples without a score, which are left out."""
        return sum(run.errored for run in self.runs)

    def summary(self) -> dict[str, Any]:
        """The cell as plain data."""
        seeds = len(self.runs) > 1
        return {
            "name": self.name,
            "environment": self.environment,
            "score": self.score,
            "interval": [self.interval.low, self.interval.high],
            "approximate": self.interval.approximate,
            "unit": "seeds" if seeds else "problems",
            "problems": self.problems,
            "distinct": self.distinct,
            "samples": sum(len(run.rows) for run in self.runs),
            "errored": self.errored,
            **{name.replace(" ", "_"): measure([self]) for name, measure in COSTS.items()},
            "scores": self.scores,
            "interquartile_mean": float(statistics.interquartile_mean(self.scores)) if seeds else None,
            "runs": [str(run.folder) for run in self.runs],
        }

    def __str__(self) -> str:
        about = "≈" if self.interval.approximate else ""
        text = f"{self.score:.3f} {about}[{self.interval.low:.3f}, {self.interval.high:.3f}]"
        if len(self.runs) > 1:
            text += f" (IQM {float(statistics.interquartile_mean(self.scores)):.3f})"
        if self.distinct < self.problems:
            text += f", {counted(self.problems, 'problem')}{distinct_note(self.problems, self.distinct)}"
        return text + (f", {self.errored} errored" if self.errored else "")


def tokens_per_sample(cells: Sequence[LeaderboardCell]) -> float | None:
    """The mean number of tokens of a sample, including those that a search used; None if no tokens were counted."""
    counts = [row.get("search_tokens") or row["tokens"] for cell in cells for run in cell.runs for row in run.rows]
    return float(np.mean(counts)) if any(counts) else None


def cost_per_sample(cells: Sequence[LeaderboardCell]) -> float | None:
    """The mean charge of a server for a sample; None unless every cell has samples with a known cost."""
    costs = [[row.get("cost") for run in cell.runs for row in run.rows] for cell in cells]
    known = [[cost for cost in own if cost is not None] for own in costs]
    return float(np.mean(np.concatenate(known))) if known and all(known) else None


COSTS: dict[str, Callable[[Sequence[LeaderboardCell]], float | None]] = {
    "tokens per sample": tokens_per_sample,
    "cost per sample": cost_per_sample,
}
"""The costs that are shown with a score, by their headings."""


@dataclass(frozen=True)
class Leaderboard:
    """A leaderboard: the cells of every name on every environment."""

    title: str
    cells: Sequence[LeaderboardCell]
    decisions: Mapping[str, Sequence[PairDecision]] = field(default_factory=dict)
    """By environment, the decisions of comparisons that stopped as soon as they were decided; they replace fixed tests."""

    @property
    def environments(self) -> list[str]:
        """The environments in the suite's order."""
        return list(dict.fromkeys(cell.environment for cell in self.cells))

    @property
    def costs(self) -> list[str]:
        """The headings of the costs that are known for at least one cell."""
        return [name for name, measure in COSTS.items() if any(measure([cell]) is not None for cell in self.cells)]

    def cost_texts(self, cells: Sequence[LeaderboardCell]) -> list[str]:
        """The costs of these cells as texts, one for each heading of `costs`."""
        values = [COSTS[name](cells) for name in self.costs]
        return ["–" if value is None else _rounded(value) for value in values]

    def ranking(self) -> list[tuple[str, float, list[LeaderboardCell]]]:
        """Each name with its mean score over environments and its cells; the highest mean first."""
        rows: dict[str, list[LeaderboardCell]] = {}
        for cell in self.cells:
            rows.setdefault(cell.name, []).append(cell)
        ranked = [(name, float(np.mean([cell.score for cell in cells])), cells) for name, cells in rows.items()]
        return sorted(ranked, key=lambda row: -row[1])

    def sentences(self) -> list[str]:
        """For each environment: comparisons of each model with the first of the ranking, problem by problem, or decisions."""
        order = [name for name, _, _ in self.ranking()]
        sentences = []
        for environment in self.environments:
            if environment in self.decisions:
                sentences += [f"{environment}: {decision}" for decision in self.decisions[environment]]
                continue
            cells = {cell.name: cell for cell in self.cells if cell.environment == environment and len(cell.runs) == 1}
            runs = [cells[name].runs[0] for name in order if name in cells]
            if len(runs) > 1:
                _, comparisons = compare_runs(runs)
                sentences += [f"{environment}: {comparison.sentence(runs[0])}" for comparison in comparisons[1:]]
        return sentences

    def summary(self) -> dict[str, Any]:
        """The leaderboard as plain data."""
        return {
            "title": self.title,
            "ranking": [{"name": name, "mean": mean} for name, mean, _ in self.ranking()],
            "cells": [cell.summary() for cell in self.cells],
            "comparisons": self.sentences(),
        }

    def markdown(self) -> str:
        """The leaderboard as a table, with the meaning of its intervals."""
        several = any(len(cell.runs) > 1 for cell in self.cells)
        header = ["", *self.environments, "mean", *self.costs]
        rows = [header, ["---"] * len(header)]
        rows += [
            [name, *map(str, cells), f"{mean:.3f}", *self.cost_texts(cells)] for name, mean, cells in self.ranking()
        ]
        unit = "training seeds (Student's t)" if several else "problems"
        lines = [f"# {self.title}", "", *("| " + " | ".join(map(_cell, row)) + " |" for row in rows), ""]
        lines.append(f"Scores with 95 % intervals over {unit}; ≈ is approximate. The mean is over environments.")
        if self.decisions:
            lines.append(
                "Problems were drawn until pairs were decided; these intervals are those of as many problems in one look."
            )
        return "\n".join([*lines, *(f"\n{sentence}" for sentence in self.sentences())]) + "\n"


def _rounded(value: float) -> str:
    """A number with three digits, or with all digits before the decimal point, without an exponent."""
    return f"{value:,.0f}" if value >= 1000 else np.format_float_positional(value, 3, fractional=False, trim="-")


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")
