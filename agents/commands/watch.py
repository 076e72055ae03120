"""The command `rlvr watch`."""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro
from rich.console import Console

from agents.commands.serving import Port
from agents.interrupts import sigterm_interrupts
from agents.loopback import listen
from agents.runs.reading import check_named_once
from verifiers import InvalidArgumentError


@dataclass(frozen=True)
class Watch:
    """Show training runs and evaluations in a browser while they run, on a page that only this machine can open."""

    folders: Annotated[tuple[Path, ...], tyro.conf.Positional, tyro.conf.arg(metavar="RUN")]
    """Folders that rlvr train, rlvr eval or rlvr grade has written, or is still writing."""
    port: Port = 0
    """Port of this machine to listen on; 0 takes a free port."""

    def __post_init__(self) -> None:
        if not self.folders:
            raise InvalidArgumentError("expected the folder of at least one run")
        check_named_once(self.folders)

    def run(self, console: Console) -> int:
        """Serve the page until interrupted."""
        from agents.watching.runs import WatchedRun
        from agents.watching.server import WatchServer

        runs = [WatchedRun(folder) for folder in self.folders]
        with sigterm_interrupts(), listen("127.0.0.1", self.port) as listener:
            server = WatchServer(listener, runs, secrets.token_urlsafe(24))
            console.print(f"watching at {server.address} until Ctrl-C")
            server.serve_forever()
        return 0
