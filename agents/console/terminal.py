"""The console of all commands: it escapes terminal control sequences in data, completions and exceptions."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from typing import Any

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

from agents.console.printable import printable


class TerminalConsole(Console):
    """A console that escapes unprintable characters, and prints text as it is: without markup, colors and wrapping."""

    def __init__(self, **options: Any) -> None:
        """Accept the options of `rich.console.Console`."""
        super().__init__(**{"markup": False, "emoji": False, "highlight": False, "soft_wrap": True, **options})

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
