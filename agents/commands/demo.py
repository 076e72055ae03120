"""The command `rlvr demo`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from rich.console import Console

from agents.commands.common import DEVICE, Device, on_device
from agents.runs.files.outputs import check_folder
from verifiers import AtLeast


@dataclass(frozen=True)
class Demo:
    """Watch GRPO, and a control run, teach a tiny transformer to add; this takes about 3 minutes on two cores."""

    folder: Path = Path("runs/demo")
    """Folder for the starting checkpoint and the runs."""
    steps: Annotated[int, AtLeast(1)] = 160
    """Number of training steps of GRPO."""
    device: Device = DEVICE

    @on_device
    def run(self, console: Console) -> int:
        """Run the demonstration and print the results."""
        check_folder(self.folder)
        from agents.experiments.demo import DemoConfig, run_demo

        run_demo(DemoConfig(folder=self.folder, steps=self.steps), console)
        return 0
