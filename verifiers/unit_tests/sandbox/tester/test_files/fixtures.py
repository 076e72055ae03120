"""The fixture `capsys`, which pytest itself provides."""

from __future__ import annotations

import contextlib
import io
import sys
from collections.abc import Iterator
from typing import NamedTuple

from .pytest_api import Fixture


class CaptureResult(NamedTuple):
    """Captured output."""

    out: str
    err: str


class CaptureFixture:
    """The value of the fixture `capsys`."""

    def __init__(self) -> None:
        self._streams = io.StringIO(), io.StringIO()

    @contextlib.contextmanager
    def capturing(self) -> Iterator[None]:
        """Capture output in the block."""
        out, err = self._streams
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            yield

    @contextlib.contextmanager
    def disabled(self) -> Iterator[None]:
        """Suspend capturing in the block."""
        with contextlib.redirect_stdout(sys.__stdout__), contextlib.redirect_stderr(sys.__stderr__):
            yield

    def readouterr(self) -> CaptureResult:
        """Return what was written to standard output and error since the last call."""
        texts = [stream.getvalue() for stream in self._streams]
        for stream in self._streams:
            stream.seek(0)
            stream.truncate()
        return CaptureResult(*texts)


def _capsys() -> Iterator[CaptureFixture]:
    made = CaptureFixture()
    with made.capturing():
        yield made


OWN_FIXTURES = {"capsys": Fixture(_capsys)}
"""How a test asks for what pytest itself provides."""
