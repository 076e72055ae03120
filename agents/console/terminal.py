"""The console of all commands: it escapes terminal control sequences in data, completions and exceptions."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from typing import Any

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.table import Table

from agents.console.printable import printable


class TerminalConsole(Console):
    """A console that escapes unprintable characters and prints text as it is, without markup, highlighting and wrapping."""

    def __init__(self, **options: Any) -> None:
        """Accept the options of `rich.console.Console`."""
        super().__init__(**{"markup": False, "emoji": False, "highlight": False, "soft_wrap": True, **options})

    def print(self, *objects: Any, **options: Any) -> None:
        """Print objects; a table wraps its title at its own width."""
        if any(isinstance(one, Table) for one in objects):
            options = {"soft_wrap": False, **options}
        super().print(*objects, **options)

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Make rendered text printable; all output passes through here."""
        for segment in super().render(renderable, options):
            yield segment if segment.control else Segment(printable(segment.text), segment.style)


_format = warnings.formatwarning


def print_warnings_safely() -> None:
    """Make the text of the warnings that Python writes to standard error printable."""
    warnings.formatwarning = _format_safely


def _format_safely(*arguments: Any, **options: Any) -> str:
    return printable(_format(*arguments, **options))
