"""The console of every command: data, completions and exceptions that it prints can't steer the terminal."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from typing import Any

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

from agents.console.printable import printable


class TerminalConsole(Console):
    """A console that shows what it prints, and has no markup: styles come from the code alone."""

    def __init__(self, **options: Any) -> None:
        """Take the options of `rich.console.Console`."""
        super().__init__(**{"markup": False, "emoji": False, **options})

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Make printable what is rendered, in the one place through which all output goes."""
        for segment in super().render(renderable, options):
            yield segment if segment.control else Segment(printable(segment.text), segment.style)


_format = warnings.formatwarning


def print_warnings_safely() -> None:
    """Make the text of warnings printable too, which Python itself writes to standard error."""
    warnings.formatwarning = _format_safely


def _format_safely(*arguments: Any, **options: Any) -> str:
    return printable(_format(*arguments, **options))
