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

    def __init__(self, out: io.StringIO, err: io.StringIO) -> None:
        self._streams = out, err

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
    with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(io.StringIO()) as err:
        yield CaptureFixture(out, err)


OWN_FIXTURES = {"capsys": Fixture(_capsys)}
"""How a test asks for what pytest itself provides."""
