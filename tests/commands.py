"""Commands as they are typed: the fixture `rlvr` runs one in this process."""

from __future__ import annotations

from collections.abc import Callable

Command = Callable[..., tuple[int, str, str]]
"""Takes the words of a command; returns its exit code, what it printed, and its errors on one line."""
