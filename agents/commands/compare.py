"""The command `rlvr compare`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import tyro
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.measure import Measurement
from rich.table import Table

import rlvr_envs
from agents.commands.common import env_arguments, shown_warnings
from agents.commands.problems import load_problems, recorded_verifier
from agents.commands.sections import print_section
from agents.console.counting import counted
from agents.console.printable import in_one_line
from agents.runs.at_k import answer_verifier, check_draws
from agents.runs.clusters import distinct_note
from agents.runs.comparison import (
    Measure,
    MeasureComparison,
    RunComparison,
    compare_measures,
    maj_measure,
    pass_measure,
    score_measure,
    task_differences,
)
from agents.runs.decisions import Rules, decide_pairs
from agents.runs.evaluation import MAX_ERROR_SHARE
from agents.runs.evaluation_record import ORACLE_NOTE
from agents.runs.files.json_files import as_text
from agents.runs.judging import recorded_votes, with_clusters
from agents.runs.reading import RecordedRun
from verifiers import AtLeast, Between, InvalidArgumentError
from verifiers.statistics import FEW_PROBLEMS


@dataclass(frozen=True)
class Compare:
    """Compare evaluations with the first evaluation, problem by problem."""

    runs: Annotated[tuple[Path, ...], tyro.conf.Positional, tyro.conf.arg(metavar="RUN")]
    """Two or more folders written by rlvr eval or rlvr grade; each later run is compared with the first."""

    pass_at: Annotated[tuple[int, ...], AtLeast(1)] = ()
    """Numbers k for which to compare pass@k as well, the probability that at least one of k samples is correct."""
    maj_at: Annotated[tuple[int, ...], AtLeast(1)] = ()
    """Numbers k for which to compare maj@k as well, the probability that a majority vote of k samples is correct; answers count
    as the same if the verifier that judged them considers them equal."""
    until_decided: bool = False
    """Say for each pair of runs whether it is decided which run is better. The test stays valid however often it is made while
    problems are drawn in a random order, as by rlvr bench --until-decided; scores must be from 0 to 1."""
    margin: Annotated[float, Between(0, 1)] = 0.0
    """Difference below which runs are practically equal, with --until-decided; 0 for no such margin."""
    max_error_share: Annotated[float, Between(0, 1)] = MAX_ERROR_SHARE
    """Share of problems without a score above which --until-decided decides nothing."""
    order_seed: Annotated[int | None, AtLeast(0)] = None
    """Seed of the order in which problems were drawn, with --until-decided; by default the seed recorded in the runs, or 0 if
    there is none."""
    clusters: str | None = None
    """Column of the data set (which is then loaded) whose value is the same for problems that belong together; by default,
    problems with equal prompts belong together."""
    power: tuple[float, ...] = ()
    """Differences, such as 0.02; print for each how many problems are needed to find such a difference in 4 of 5
    comparisons."""
    show: Annotated[int, AtLeast(0)] = 0
    """Number of problems for which to print each run's first completion below the table, beginning with the first problem that
    all runs have."""
    env_args: tuple[str, ...] = ()
    """Arguments of the data set, which --maj-at and --clusters load, each as name=value, such as data_dir=FOLDER."""

    def __post_init__(self) -> None:
        deciding = {
            "--margin": self.margin != 0,
            "--max-error-share": self.max_error_share != MAX_ERROR_SHARE,
            "--order-seed": self.order_seed is not None,
        }
        for option, given in deciding.items():
            if given and not self.until_decided:
                raise InvalidArgumentError(
                    f"{option} is about what decides a comparison: give --until-decided, too, or leave it out"
                )

    def run(self, console: Console) -> int:
        """Print a table, and a sentence for each run after the first."""
        if len(self.runs) < 2:
            raise InvalidArgumentError(
                f"a comparison takes at least two runs, folders that rlvr eval has written; got {len(self.runs)}"
            )
        runs = [self._read(folder) for folder in self.runs]
        comparisons = compare_measures(runs, self._measures(runs))
        for difference in task_differences(runs):
            console.print(f"not the same task: {difference}")
        for note in _notes(runs, comparisons[0].problems):
            console.print(note)
        wide = _table(comparisons)
        anywhere = console.options.update(max_width=_ANY_WIDTH)
        fits = Measurement.get(console, anywhere, wide).maximum <= console.width
        console.print(wide if fits else _table(comparisons, stacked=True))
        for comparison in comparisons:
            about = ", approximate with so few" if comparison.distinct < FEW_PROBLEMS else ""
            problems = counted(comparison.problems, "problem") + distinct_note(comparison.problems, comparison.distinct)
            means = f"means over {problems}, 95 % intervals over problems{about}"
            console.print(_labelled(means, comparison, comparisons))
            for row in comparison.rows[1:]:
                sentence = _labelled(row.sentence(runs[0]), comparison, comparisons)
                console.print(sentence)
            for sentence in _power(comparison, self.power):
                console.print(_labelled(sentence, comparison, comparisons))
        if self.until_decided:
            order_seed = runs[0].settings.get("order_seed", 0) if self.order_seed is None else self.order_seed
            for decision in decide_pairs(runs, Rules(self.margin, self.max_error_share, order_seed)):
                console.print(str(decision))
        _show(console, runs, self.show)
        return 0

    def _read(self, folder: Path) -> RecordedRun:
        run = RecordedRun.read(folder)
        return (
            run
            if self.clusters is None
            else with_clusters(run, _dataset(run, env_arguments(self.env_args)), self.clusters)
        )

    def _measures(self, runs: Sequence[RecordedRun]) -> list[Measure]:
        check_draws(min(map(_most_samples, runs)), pass_at=self.pass_at, maj_at=self.maj_at)
        measures = [score_measure(runs), *(pass_measure(runs, k) for k in self.pass_at)]
        if not self.maj_at:
            return measures
        arguments = env_arguments(self.env_args)
        with shown_warnings():
            votes = [_votes(run, arguments) for run in runs]
        return measures + [maj_measure(runs, votes, k) for k in self.maj_at]


def _most_samples(run: RecordedRun) -> int:
    """The largest number of samples of any problem."""
    return max(Counter(sample.problem for sample in run.samples()).values(), default=0)


def _votes(run: RecordedRun, arguments: Mapping[str, Any]) -> list[list[int | None]]:
    """The votes of a run's samples, from the verifier that judged the samples."""
    verifier = answer_verifier(recorded_verifier(run.settings))
    return recorded_votes(run, _dataset(run, arguments), verifier)


def _dataset(run: RecordedRun, arguments: Mapping[str, Any]) -> rlvr_envs.Dataset:
    """The problems of a run."""
    return load_problems(str(run.settings.get("env")), run.settings.get("split"), arguments)


def _power(comparison: MeasureComparison, differences: Sequence[float]) -> Iterator[str]:
    """The number of problems needed to find a difference between each run and the first."""
    first, *others = comparison.rows
    for number, row in enumerate(others, start=1):
        for difference in differences:
            needed = comparison.needed(number, difference)
            between = f"a difference of {difference:g} between {row.run.name} and {first.run.name}"
            if needed is None:
                yield f"how many problems {between} needs is not known: their scores say nothing of its variance"
            else:
                yield f"{between} needs about {counted(needed, 'problem')} to be found in 4 of 5 comparisons"


def _show(console: Console, runs: Sequence[RecordedRun], problems: int) -> None:
    """Print the first completions of some problems, run by run."""
    firsts = [{row["problem"]: row for row in reversed(run.rows)} for run in runs]
    common = [problem for problem in sorted(firsts[0]) if all(problem in first for first in firsts)]
    width = max(len(run.name) for run in runs)
    for problem in common[:problems]:
        rows = [first[problem] for first in firsts]
        lines = [f"{as_text(rows[0]['prompt'])}  [{as_text(rows[0]['reference'])}]"]
        lines += [
            f"{run.name:{width}}  {row['outcome'] or 'no verifier'}: {in_one_line(as_text(row['completion']))}"
            for run, row in zip(runs, rows, strict=True)
        ]
        print_section(console, str(rows[0]["problem_id"]), "\n".join(lines))


def _notes(runs: Sequence[RecordedRun], problems: int) -> Iterator[str]:
    for run in runs:
        missing = len(run.problem_scores()) - problems
        notes = [f"left out: {counted(missing, 'problem')} that not all runs have"] if missing else []
        notes += [f"left out: {counted(run.errored, 'errored sample')}"] if run.errored else []
        notes += [f"its samples were {ORACLE_NOTE}"] if run.oracle else []
        yield from (f"{run.name}: {note}" for note in notes)


def _labelled(text: str, comparison: MeasureComparison, comparisons: Sequence[MeasureComparison]) -> str:
    return text if len(comparisons) == 1 else f"{comparison.measure}: {text}"


def _table(comparisons: Sequence[MeasureComparison], *, stacked: bool = False) -> Table:
    """A row for each run and measure; if stacked (for a narrow terminal), intervals are below their numbers."""
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    table.add_column("run", overflow="fold")
    if len(comparisons) > 1:
        table.add_column("measure", no_wrap=True)
    for column in _stacked(_COLUMNS) if stacked else _COLUMNS:
        table.add_column(column, justify="right", no_wrap=True)
    for comparison in comparisons:
        for row in comparison.rows:
            measure = [] if len(comparisons) == 1 else [comparison.measure]
            table.add_row(row.run.name, *measure, *(_stacked(_cells(row)) if stacked else _cells(row)))
        table.add_section()
    return table


_ANY_WIDTH = 10_000
"""A width at which no table is wrapped."""
_COLUMNS = ("score", "95 % interval", "difference", "95 % interval", "p")


def _stacked(cells: Sequence[str]) -> list[str]:
    """Stack five cells to three, with each interval below its number."""
    score, interval, difference, ends, p_value = cells
    return [f"{score}\n{interval}", f"{difference}\n{ends}", p_value]


def _cells(row: RunComparison) -> list[str]:
    """The score with its interval, and its difference from the first run's score."""
    approximate = "≈" if row.interval.approximate else ""
    cells = [f"{row.score:.3f}", f"{approximate}[{row.interval.low:.3f}, {row.interval.high:.3f}]"]
    if row.comparison is None or row.p_value is None:
        return [*cells, "–", "–", "–"]
    ends = row.comparison.interval
    return [
        *cells,
        f"{row.comparison.difference:+.3f}",
        f"[{ends.low:+.3f}, {ends.high:+.3f}]",
        f"{row.p_value:.3g}",
    ]
