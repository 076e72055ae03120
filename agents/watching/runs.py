"""The data that the page shows, read from the folders of runs whenever these have grown; the folders are not changed."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeAlias

from agents.runs.evaluation import errored_warning
from agents.runs.evaluation_record import MANIFEST, SAMPLES, Sample
from agents.runs.files.json_files import read_json
from agents.runs.plots import Band, TrainingCurve, bands, metric_names
from agents.runs.rollout_log import ROLLOUTS
from agents.runs.run import CONFIG, METRICS, VERIFIER_ERRORS
from agents.watching.lines import GrowingLines, Place
from verifiers import InvalidArgumentError, MissingDataError, Outcome, unknown_name

Key: TypeAlias = tuple[int, int]
"""Training step and number of the group; for an evaluation, 0 and the index of the problem."""


@dataclass(frozen=True, slots=True)
class Completion:
    """The data of a recorded completion that is kept in memory; the rest stays in its file."""

    place: Place
    key: Key
    sample: Sample

    @classmethod
    def read(cls, line: dict[str, Any], place: Place) -> Completion:
        """Read a line of `rollouts.jsonl` or `samples.jsonl`.

        Raises:
            DataError: If a column is missing or of another type.
        """
        sample = replace(Sample.read(line), answer=None)  # the answer may be long
        step, group = line.get("step"), line.get("group")
        key = (step, group) if isinstance(step, int) and isinstance(group, int) else (0, sample.problem)
        return cls(place, key, sample)

    @property
    def right(self) -> bool:
        """Whether the verifier judged the completion correct, or scored it 1."""
        return self.sample.outcome == Outcome.CORRECT or self.sample.score == 1


Group: TypeAlias = Sequence[Completion]
"""Completions of one problem that are shown side by side."""


def grouped(completions: Sequence[Completion]) -> dict[Key, Group]:
    """Group completions, with the last step's groups first; a later line of the same sample replaces an earlier one."""
    groups: dict[Key, dict[int, Completion]] = {}
    for completion in completions:
        groups.setdefault(completion.key, {})[completion.sample.sample] = completion
    order = sorted(groups, key=lambda key: (-key[0], key[1]))
    return {key: [groups[key][sample] for sample in sorted(groups[key])] for key in order}


def _never_solved(groups: Sequence[Group]) -> list[Group]:
    solved = {one.sample.problem_id for group in groups for one in group if one.right}
    return [group for group in groups if group[0].sample.problem_id not in solved]


FILTERS: dict[str, Callable[[Sequence[Group]], Sequence[Group]]] = {
    "all": lambda groups: groups,
    "never solved": _never_solved,
    "solved by one": lambda groups: [group for group in groups if sum(one.right for one in group) == 1 < len(group)],
    "longest": lambda groups: sorted(groups, key=lambda group: -max(one.sample.tokens for one in group)),
    "verifier broke": lambda groups: [group for group in groups if any(one.sample.errored for one in group)],
}
"""Functions that select the groups to list, in order, by the filter's name."""


PAGE = 50
"""Maximum number of groups, of warnings, and of causes of verifier errors that are listed at once."""


class WatchedRun:
    """The folder of a training run or of an evaluation, finished or not.

    Raises:
        MissingDataError: If the folder holds neither a training run nor an evaluation.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.training = not (folder / MANIFEST).is_file()
        if self.training and not (folder / CONFIG).is_file():
            raise MissingDataError(
                f"{folder} {'holds no run' if folder.exists() else 'does not exist'}: expected a folder that rlvr train, rlvr "
                "eval or rlvr grade has written or is writing"
            )
        self.metrics = GrowingLines(folder / METRICS, _step)
        self._completions = GrowingLines(folder / (ROLLOUTS if self.training else SAMPLES), Completion.read)
        self._errors = GrowingLines(folder / VERIFIER_ERRORS, lambda line, _: line)
        self._groups: tuple[int, dict[Key, Group]] = (0, {})
        self._errored = 0
        self._warning: str | None = None

    def read(self) -> None:
        """Read the data written since the last call."""
        for lines in (self.metrics, self._completions, self._errors):
            lines.read()
        if self._groups[0] != self._completions.version:
            self._groups = (self._completions.version, grouped(self._completions.values))
            samples = [one.sample for group in self._groups[1].values() for one in group]
            self._errored = sum(sample.errored for sample in samples)
            self._warning = None if self.training else errored_warning(samples)

    @property
    def config(self) -> dict[str, Any]:
        """The run's settings."""
        content = read_json(self.folder / (CONFIG if self.training else MANIFEST))
        return content if isinstance(content, dict) else {}

    def state(self) -> dict[str, Any]:
        """The run's progress and its warnings."""
        files = [lines.path for lines in (self.metrics, self._completions) if lines.path.exists()]
        rows, config = self.metrics.values, self.config
        broken = [
            f"step {line.get('step')}: the verifier broke on {line.get('count')} completions: {line.get('cause')}"
            for line in self._errors.values
        ]
        return {
            "folder": str(self.folder),
            "training": self.training,
            "version": [lines.version for lines in (self.metrics, self._completions, self._errors)],
            "step": rows[-1]["step"] if rows else 0,
            "steps": config.get("steps"),
            "written": max((path.stat().st_mtime for path in files), default=None),
            "score": (config.get("summary") or {}).get("score"),
            "completions": len(self._completions.values),
            "errored": self._errored,
            "damaged": self.metrics.damaged + self._completions.damaged,
            "warnings": [self._warning] * (self._warning is not None)
            + broken[-PAGE:]
            + [str(text) for row in rows for text in row.get("warnings") or ()][-PAGE:],
        }

    def groups(self, show: str, first: int) -> dict[str, Any]:
        """A page of the groups that a filter shows, beginning at an index.

        Raises:
            UnknownNameError: If there is no such filter.
        """
        if show not in FILTERS:
            raise unknown_name("filter", show, FILTERS)
        chosen = FILTERS[show](list(self._groups[1].values()))
        listed = [
            {
                "key": group[0].key,
                "problem": group[0].sample.problem_id,
                "samples": [(one.sample.score, one.sample.outcome, one.sample.tokens) for one in group],
            }
            for group in chosen[first : first + PAGE]
        ]
        return {"count": len(chosen), "groups": listed, "filters": [*FILTERS]}

    def completions(self, key: Key) -> bytes:
        """The lines of a group from the run's file, unchanged, as a JSON list.

        Raises:
            InvalidArgumentError: If there is no such group, such as after a run was resumed.
        """
        if key not in self._groups[1]:
            raise InvalidArgumentError(f"there is no group {key[1]} of step {key[0]} any more: choose another one")
        return b"[" + b",".join(self._completions.line(one.place) for one in self._groups[1][key]) + b"]"


def _step(line: dict[str, Any], _: Place) -> dict[str, Any]:
    if not isinstance(line.get("step"), int):
        raise ValueError("it has no step")
    return line


def curves(runs: Sequence[WatchedRun], metrics: Sequence[str], smooth: int) -> dict[str, Any]:
    """Curves of metrics, smoothed by running means over `smooth` steps, with bands over runs that differ only in seed."""
    configs = {run.folder: run.config for run in runs}
    names = {run.folder: metric_names(run.metrics.values) for run in runs}
    settings = [TrainingCurve.of_rows(run.folder, configs[run.folder], [], "").setting for run in runs]
    colors = list(dict.fromkeys(settings))
    panels: dict[str, list[dict[str, Any]]] = {}
    for metric in metrics:
        rows = {run.folder: [row for row in run.metrics.values if row.get(metric) is not None] for run in runs}
        having = [run for run in runs if metric in names[run.folder]]
        drawn = [TrainingCurve.of_rows(run.folder, configs[run.folder], rows[run.folder], metric) for run in having]
        sparse = any(2 * len(rows[run.folder]) < len(run.metrics.values) for run in having)  # such as an evaluation
        order = dict.fromkeys(curve.setting for curve in drawn)
        groups = bands(drawn, 1 if sparse else smooth) if drawn else []
        panels[metric] = [
            {"color": colors.index(setting), **_as_json(band)} for setting, band in zip(order, groups, strict=True)
        ]
    return {"metrics": sorted(set().union(*names.values())), "panels": panels, "colors": [*map(colors.index, settings)]}


def _as_json(band: Band) -> dict[str, Any]:
    """A band as JSON, rounded to six digits, which is enough for a picture; None for missing numbers."""
    columns = {"mean": band.mean, "low": band.low, "high": band.high, "raw": band.raw}
    return {"label": band.label, "steps": band.steps.tolist()} | {
        name: [float(f"{value:.6g}") if math.isfinite(value) else None for value in values.tolist()]
        for name, values in columns.items()
    }
