"""`rlvr plot`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro
from rich.console import Console

from agents.commands.common import check_at_least
from agents.files.outputs import check_new_file
from agents.results.plots import TrainingCurve, bands, plot


@dataclass(frozen=True)
class Plot:
    """Draw a metric of training runs as SVG and PNG; runs that differ in their seed alone are one curve with a band."""

    runs: Annotated[tuple[Path, ...], tyro.conf.Positional, tyro.conf.arg(metavar="RUN")]
    """Folders of training runs, one or more."""
    metric: str = "reward"
    """Metric to draw, a name in metrics.jsonl, such as entropy."""
    smooth: int = 10
    """Number of steps of the running mean; 1 draws what was measured."""
    out: Path = Path("curves")
    """File to write, without its suffix."""
    title: str | None = None
    """Title of the plot."""
    overwrite: bool = False
    """Replace files that are there already."""

    def __post_init__(self) -> None:
        check_at_least(1, smooth=self.smooth)

    def run(self, console: Console) -> int:
        """Draw, and print where the files are."""
        for suffix in (".svg", ".png"):
            check_new_file(self.out.with_name(f"{self.out.name}{suffix}"), overwrite=self.overwrite)
        drawn = bands([TrainingCurve.read(folder, self.metric) for folder in self.runs], self.smooth)
        files = plot(drawn, self.out, metric=self.metric, title=self.title)
        console.print(f"written to {files[0]} and {files[1]}", markup=False, soft_wrap=True)
        return 0
