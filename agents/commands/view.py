"""The command `rlvr view`."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro
from rich.console import Console

from agents.console.counting import counted
from agents.runs.files.outputs import check_new_file
from agents.runs.inspect_log import is_log_of, write_inspect_log
from agents.runs.reading import read_run
from verifiers import Between, InvalidArgumentError

LOG = "inspect.eval"
"""Name of the log in a run's folder."""
OLDEST = "0.3.275"
"""The first version of inspect-ai whose viewer has a setting to show completions without rendering them."""


@dataclass(frozen=True)
class View:
    """Write recorded completions as an Inspect log, and show the log in Inspect's viewer if it is installed."""

    folder: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="RUN")]
    """Folder written by rlvr eval, rlvr grade or rlvr train."""
    log: Path | None = None
    """File to write, whose name ends in .eval; by default inspect.eval in the folder RUN."""
    start: bool = True
    """Start the viewer after the log is written."""
    port: Annotated[int, Between(1, 65535)] = 7575
    """Port on which this machine serves the viewer."""
    overwrite: bool = False
    """Replace the log even if it belongs to another run."""

    def __post_init__(self) -> None:
        if self.log is not None and self.log.suffix != ".eval":
            raise InvalidArgumentError(f"--log must be a file whose name ends in .eval, got {str(self.log)!r}")

    def run(self, console: Console) -> int:
        """Write the log, then replace this process by the viewer, or print how to start the viewer."""
        log = self.log or self.folder / LOG
        recorded = read_run(self.folder)
        if is_log_of(log, recorded):
            console.print(f"{log} is the log of this run")
        else:
            check_new_file(log, overwrite=self.overwrite)
            log.parent.mkdir(parents=True, exist_ok=True)
            write_inspect_log(recorded, log)
            console.print(f"{counted(len(recorded.rows), 'sample')} written to {log}")
        if self.start:
            self._start(console, log.parent)
        return 0

    def _start(self, console: Console, folder: Path) -> None:
        arguments = ["view", "start", "--log-dir", str(folder), "--host", "127.0.0.1", "--port", str(self.port)]
        arguments.append("--no-trust-content")  # older versions, which would render completions, refuse this option
        program = _program()
        if program is None:
            for line in (
                "the viewer is not installed; it brings some 80 packages, so give it an environment of its own:",
                f"  uv tool install 'inspect-ai>={OLDEST}'   or   pipx install 'inspect-ai>={OLDEST}'",
                "then run this command again, or:",
                f"  {shlex.join(['inspect', *arguments])}",
            ):
                console.print(line)
            return
        console.print(
            f"starting {program} (inspect-ai {OLDEST} or newer) at http://127.0.0.1:{self.port}; Ctrl-C ends it"
        )
        sys.stdout.flush()
        os.execv(program, [program, *arguments])


def _program() -> str | None:
    """Find Inspect's command, first in the Python environment of this process."""
    own = Path(sys.executable).with_name("inspect")
    return str(own) if os.access(own, os.X_OK) else shutil.which("inspect")
