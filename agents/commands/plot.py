"""The command `rlvr plot`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro
from rich.console import Console

from agents.runs.files.outputs import check_new_file
from agents.runs.plots import STEP, TrainingCurve, bands, plot_panels
from agents.runs.reading import check_named_once
from verifiers import AtLeast, InvalidArgumentError

_SUFFIXES = (".svg", ".png")


@dataclass(frozen=True)
class Plot:
    """Draw metrics of training runs as SVG and PNG; runs that differ only in their seed form one curve with a band."""

    runs: Annotated[tuple[Path, ...], tyro.conf.Positional, tyro.conf.arg(metavar="RUN")]
    """Folders of training runs, one or more."""
    metric: tuple[str, ...] = ("reward",)
    """Names of metrics in metrics.jsonl, such as entropy; several metrics are drawn one above the other."""
    against: str = STEP
    """Horizontal axis of the plot: step, or a metric, such as kl to see reward and gold_reward diverge."""
    smooth: Annotated[int, AtLeast(1)] = 10
    """Number of steps of the running mean; 1 draws the measured values."""
    out: Path = Path("curves")
    """Path of the two files to write, without the suffixes .svg and .png."""
    title: str | None = None
    """Title of the plot."""
    overwrite: bool = False
    """Replace files that already exist."""

    def __post_init__(self) -> None:
        if not self.runs:
            raise InvalidArgumentError("a plot needs at least one run, got none")
        check_named_once(self.runs)
        if not self.metric:
            raise InvalidArgumentError("a plot needs at least one metric, got none")

    def run(self, console: Console) -> int:
        """Draw the curves, and print where the files are."""
        out = self.out.with_suffix("") if self.out.suffix in _SUFFIXES else self.out
        panels = [
            (metric, [TrainingCurve.read(folder, metric, self.against) for folder in self.runs])
            for metric in self.metric
        ]
        for suffix in _SUFFIXES:
            check_new_file(out.with_name(f"{out.name}{suffix}"), overwrite=self.overwrite)
        drawn = [(metric, bands(curves, self.smooth)) for metric, curves in panels]
        files = plot_panels(drawn, out, against=self.against, title=self.title)
        console.print(f"written to {files[0]} and {files[1]}")
        return 0
