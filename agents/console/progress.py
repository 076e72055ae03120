"""Progress bars for long-running work."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Column

from agents.console.printable import in_one_line
from agents.console.terminal import TerminalConsole


class Advance(Protocol):
    """Moves a progress bar."""

    def __call__(self, done: float, text: str = "") -> None:
        """Show the progress so far, in total, and a short text."""


@contextmanager
def progress(title: str, total: float, *, disable: bool = False) -> Iterator[Advance]:
    """Show a progress bar on standard error while the block runs; standard output can still be piped."""
    columns = (
        TextColumn("{task.description}", markup=False),  # the title may contain what the user typed
        BarColumn(bar_width=20),
        MofNCompleteColumn(),
        TextColumn("{task.fields[text]}", markup=False, table_column=Column()),  # wraps on a narrow terminal
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=TerminalConsole(stderr=True, soft_wrap=False), disable=disable) as bar:
        task = bar.add_task(in_one_line(title), total=total, text="")

        begun = False

        def advance(done: float, text: str = "") -> None:
            nonlocal begun
            begun = True
            bar.update(task, completed=done, text=text)

        try:
            yield advance
        finally:
            bar.update(task, visible=begun)  # hide an empty bar, such as above an error
