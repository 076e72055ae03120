"""Curves of training runs, several side by side, as SVG and PNG.

Runs that differ only in their seed and folder form one curve: the mean over seeds, with its 95 % interval (Student's t) as a
band. For a single run, the measured values are drawn faintly under their running mean. Scores on held-out problems are drawn as
they were measured, for a single run with their intervals.
"""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from agents.console.printable import printable
from agents.runs.files.json_files import read_json, to_json
from verifiers import DataError, InvalidArgumentError, MissingDataError, missing_dependency, statistics, unknown_name

Array = NDArray[np.float64]
STEP = "step"
"""The default horizontal axis of a curve."""
_OF_ONE_RUN = ("seed", "run_folder", "run_id", "resume", "keep", "checkpoint_every", "loggers", "versions", "steps")
_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000")
"""Colours that can be distinguished without telling red from green (Okabe and Ito 2008)."""


@dataclass(frozen=True)
class TrainingCurve:
    """One metric of one run."""

    folder: Path
    setting: str
    """All settings that determine the run except its seed, as text."""
    label: str
    steps: NDArray[np.int64]
    values: Array
    """f64[t], the metric at each step; NaN if the step has no value."""
    against: Array | None = None
    """f64[t], the metric on the x axis at each step; None if the x axis is the step."""
    interval: tuple[Array, Array] | None = None
    """f64[t], the lower and upper ends of the 95 % intervals of held-out scores; None for other metrics."""

    @classmethod
    def read(cls, folder: str | Path, metric: str = "reward", against: str = STEP) -> TrainingCurve:
        """Read a metric of a run of `rlvr train`, which may still be running.

        Args:
            folder: Folder of the run.
            metric: Name of the metric.
            against: Name of the metric on the x axis, such as kl, or `STEP`.

        Raises:
            MissingDataError: If the folder holds no run.
            DataError: If no step was logged.
            UnknownNameError: If no step has the metric; the message suggests the nearest.
        """
        folder = Path(folder)
        config = read_json(folder / "config.json") if (folder / "config.json").is_file() else None
        if not isinstance(config, dict) or not (folder / "metrics.jsonl").is_file():
            raise MissingDataError(
                f"{folder} {'holds no training run' if folder.exists() else 'does not exist'}: expected a folder with "
                "config.json and metrics.jsonl, as rlvr train writes"
            )
        by_step: dict[int, dict[str, Any]] = {}
        for row in _rows(folder / "metrics.jsonl"):  # an evaluation has its own line
            by_step[row["step"]] = by_step.get(row["step"], {}) | row
        if not by_step:
            raise DataError(f"{folder} has no finished step to plot")
        rows = [row for row in by_step.values() if metric in row] or list(by_step.values())
        names = metric_names(rows)
        for name in (metric, *([] if against == STEP else [against])):
            if name not in names:
                raise unknown_name("metric", name, names)
        return cls.of_rows(folder, config, rows, metric, against)

    @classmethod
    def of_rows(
        cls,
        folder: Path,
        config: Mapping[str, Any],
        rows: Sequence[Mapping[str, Any]],
        metric: str,
        against: str = STEP,
    ) -> TrainingCurve:
        """Make the curve of a metric from a run's settings and its steps; see `read`."""
        return cls(
            folder=folder,
            setting=to_json(_without(config, _OF_ONE_RUN)),
            label=f"{config.get('agent', folder.name)}, {str(config.get('env', '')).removeprefix('rlvr/')}".rstrip(
                ", "
            ),
            steps=np.array([row["step"] for row in rows]),
            values=_column(rows, metric),
            against=None if against == STEP else _column(rows, against),
            interval=(_column(rows, f"{metric}/low"), _column(rows, f"{metric}/high"))
            if f"{metric}/low" in metric_names(rows)
            else None,
        )


def metric_names(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """The sorted names of the metrics that are numbers in at least one of a run's steps."""
    return sorted({name for row in rows for name, value in row.items() if name != STEP and _is_number(value)})


def _column(rows: Sequence[Mapping[str, Any]], metric: str) -> Array:
    values = [row.get(metric) for row in rows]
    return np.array([value if _is_number(value) else np.nan for value in values], dtype=np.float64)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _rows(path: Path) -> Iterator[dict[str, Any]]:
    """The steps in a file of metrics, without a line that is still being written."""
    with path.open(encoding="utf-8", errors="replace") as file:
        for line in file:
            try:
                row = json.loads(line)
            except ValueError:
                continue
            if isinstance(row, dict) and isinstance(row.get("step"), int):
                yield row


def _without(config: Mapping[str, Any], names: Sequence[str]) -> dict[str, Any]:
    return {
        name: _without(value, names) if isinstance(value, Mapping) else value
        for name, value in config.items()
        if name not in names
    }


@dataclass(frozen=True)
class Band:
    """The curve and the band of runs that share a setting."""

    label: str
    steps: NDArray[np.int64]
    mean: Array
    low: Array
    """Lower end of the 95 % interval over runs; NaN for a single run."""
    high: Array
    raw: Array
    """The measured values of a single run; empty for several runs."""
    against: Array | None = None
    """f64[t], the mean of the metric on the x axis at each step; None if the x axis is the step."""


def bands(curves: Sequence[TrainingCurve], smooth: int = 10) -> list[Band]:
    """Combine the runs of each setting to a band.

    Args:
        curves: The curves, in the order in which to draw them.
        smooth: Number of steps of the running mean, up to and including the current step.
    """
    if not curves:
        raise InvalidArgumentError("a plot needs at least one run, got none")
    if smooth < 1:
        raise InvalidArgumentError(f"smooth, the number of steps of the running mean, must be at least 1, got {smooth}")
    groups: dict[str, list[TrainingCurve]] = {}
    for curve in curves:
        groups.setdefault(curve.setting, []).append(curve)
    labels = [group[0].label for group in groups.values()]
    drawn: list[Band] = []
    for group in groups.values():
        label = group[0].label if labels.count(group[0].label) == 1 else group[0].folder.resolve().name
        drawn.append(_band(label if len(group) == 1 else f"{label} ({len(group)} seeds)", group, smooth))
    return drawn


def _band(label: str, group: Sequence[TrainingCurve], smooth: int) -> Band:
    steps = np.unique(np.concatenate([curve.steps for curve in group]))
    smooth = 1 if group[0].interval is not None else smooth
    table = _table(group, [curve.values for curve in group], steps, smooth)
    known = np.isfinite(table)
    mean, low, high = (np.full(len(steps), np.nan) for _ in range(3))
    for column in range(len(steps)):
        values = table[known[:, column], column]
        if len(values):
            mean[column] = values.mean()
        if len(values) > 1:
            interval = statistics.mean_interval(values)
            if math.isfinite(interval.low):  # equal values give no interval
                low[column], high[column] = interval.low, interval.high
    if len(group) == 1 and group[0].interval is not None:
        low, high = group[0].interval
    over = [curve.against for curve in group if curve.against is not None]
    if over:
        positions = np.nanmean(_table(group, over, steps, smooth), axis=0)
        return Band(label, steps, mean, low, high, raw=np.empty(0), against=positions)
    return Band(label, steps, mean, low, high, raw=group[0].values if len(group) == 1 else np.empty(0))


def _table(group: Sequence[TrainingCurve], values: Sequence[Array], steps: NDArray[np.int64], smooth: int) -> Array:
    """The running means f64[r t] of r runs at t steps; NaN if a run has no value at a step."""
    table = np.full((len(group), len(steps)), np.nan)
    for row, (curve, own) in enumerate(zip(group, values, strict=True)):
        table[row, np.searchsorted(steps, curve.steps)] = running_mean(own, smooth)
    return table


def running_mean(values: Array, width: int) -> Array:
    """The mean f64[t] of each value and those before it, at most `width` values in all, ignoring missing values."""
    known = np.isfinite(values)
    sums, counts = np.cumsum(np.where(known, values, 0.0)), np.cumsum(known)
    before = np.maximum(np.arange(len(values)) - width, -1)
    total = sums - np.where(before >= 0, sums[before], 0.0)
    count = counts - np.where(before >= 0, counts[before], 0)
    means: Array = np.where(count > 0, total / np.maximum(count, 1), np.nan)
    return means


def plot(drawn: Sequence[Band], path: Path, *, metric: str = "reward", title: str | None = None) -> list[Path]:
    """Draw curves of one metric over steps; see `plot_panels`."""
    return plot_panels([(metric, drawn)], path, title=title)


def plot_panels(
    panels: Sequence[tuple[str, Sequence[Band]]], path: Path, *, against: str = STEP, title: str | None = None
) -> list[Path]:
    """Draw curves into `path` with the suffixes `.svg` and `.png`, and return the two files.

    If the x axis is a metric, a curve is a path in the order of the steps, with a mark at its end. The same runs give the same
    bytes.

    Args:
        panels: Metrics and their curves, drawn one above the other over the same x axis, with the same runs in each panel.
        path: Path of the files without a suffix.
        against: Name of the horizontal axis.
        title: Title above all panels.

    Raises:
        MissingDependencyError: If matplotlib is not installed.
        OSError: If a file can't be written.
    """
    try:
        import matplotlib
        from matplotlib.figure import Figure
    except ImportError as error:
        raise missing_dependency("matplotlib", "plots", "a plot") from error
    with matplotlib.rc_context(
        {"svg.hashsalt": "rlvr-envs", "svg.fonttype": "none", "font.size": 9, "text.parse_math": False}
    ):
        figure = Figure(figsize=(5.5, 3.4 if len(panels) == 1 else 0.6 + 2.3 * len(panels)), layout="constrained")
        stacked = figure.subplots(len(panels), sharex=True, squeeze=False)[:, 0]
        for axes, (metric, drawn) in zip(stacked, panels, strict=True):
            _draw(axes, drawn)
            axes.set(ylabel=metric.replace("_", " "))
            axes.spines[["top", "right"]].set_visible(False)
            axes.grid(alpha=0.25, linewidth=0.5)
        stacked[0].set_title(printable(title or ""))
        stacked[0].legend(frameon=False)
        stacked[-1].set_xlabel(against.replace("_", " "))
        files = [path.with_name(f"{path.name}{suffix}") for suffix in (".svg", ".png")]
        figure.savefig(files[0], metadata={"Date": None})
        figure.savefig(files[1], dpi=200, metadata={"Software": None})
    return files


def _draw(axes: Any, drawn: Sequence[Band]) -> None:
    for colour, band in zip(itertools.cycle(_COLOURS), drawn, strict=False):
        style = {"color": colour, "linewidth": 1.6, "label": printable(band.label)}
        if band.against is not None:
            axes.plot(band.against, band.mean, marker="o", markersize=4, markevery=[-1], **style)
            continue
        if len(band.raw):
            axes.plot(band.steps, band.raw, color=colour, alpha=0.25, linewidth=0.8)
        axes.fill_between(band.steps, band.low, band.high, color=colour, alpha=0.2, linewidth=0)
        axes.plot(band.steps, band.mean, **style)
