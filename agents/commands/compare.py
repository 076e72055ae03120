"""`rlvr compare`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from agents.results.comparison import RunComparison, compare_runs, task_differences
from agents.results.reading import RecordedRun
from verifiers.statistics import FEW_PROBLEMS


@dataclass(frozen=True)
class Compare:
    """Compare evaluations with the first one, problem by problem."""

    runs: Annotated[tuple[Path, ...], tyro.conf.Positional, tyro.conf.arg(metavar="RUN")]
    """Two or more folders that rlvr eval or rlvr grade has written; the others are compared with the first."""

    def run(self, console: Console) -> int:
        """Print a table and a sentence for each run after the first."""
        runs = [RecordedRun.read(folder) for folder in self.runs]
        problems, comparisons = compare_runs(runs)
        for difference in task_differences(runs):
            console.print(f"not the same task: {difference}", markup=False, soft_wrap=True)
        for run in runs:
            missing = len(run.problem_scores()) - problems
            notes = [f"{missing} problems that not all runs have are left out"] if missing else []
            notes += [f"{run.errored} errored samples are left out"] if run.errored else []
            for note in notes:
                console.print(f"{run.name}: {note}", markup=False, soft_wrap=True)
        console.print(_table(comparisons))
        about = ", approximate with so few" if problems < FEW_PROBLEMS else ""
        console.print(f"means over {problems} problems, 95 % intervals over problems{about}", markup=False)
        for comparison in comparisons[1:]:
            console.print(comparison.sentence(runs[0]), markup=False, highlight=False, soft_wrap=True)
        return 0


def _table(comparisons: list[RunComparison]) -> Table:
    # Names are wrapped in a narrow terminal, and numbers are never cut.
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    table.add_column("run", overflow="fold")
    for column in ("score", "95 % interval", "difference", "95 % interval", "p"):
        table.add_column(column, justify="right", no_wrap=True)
    for row in comparisons:
        approximate = "≈" if row.interval.approximate else ""
        cells = [
            row.run.name,
            f"{row.score:.3f}",
            f"{approximate}[{row.interval.low:.3f}, {row.interval.high:.3f}]",
        ]
        if row.comparison is None or row.p_value is None:
            cells += ["–", "–", "–"]
        else:
            ends = row.comparison.interval
            cells += [
                f"{row.comparison.difference:+.3f}",
                f"[{ends.low:+.3f}, {ends.high:+.3f}]",
                f"{row.p_value:.3g}",
            ]
        table.add_row(*cells)
    return table
