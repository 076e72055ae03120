"""The tester's report: what became of each case, line by line, and the classes of failure."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any, NoReturn, TypeVar

TEST_FILE = "test.py"
"""The name under which test code is compiled."""
MAX_TEXT = 1000
"""Characters of a message or a name in a report."""
_FULL = 1 << 20
"""Bytes after which a report leaves messages out: what counts is which cases passed."""
MAX_REPORT = 16 << 20
"""Bytes, and"""
_LAST = 64 << 10
"""how many of them are kept for the last line: more cases than there is room for are the program's doing."""
_EFBIG = 27
UNSUPPORTED = "unsupported"
"""The class of failure of what the sandbox does not do."""


class JobEndedError(BaseException):
    """The report is complete, and the process goes on to the next job."""


class Report:
    """The tester's findings, written line by line so that what was found before a kill is kept."""

    def __init__(self, descriptor: int, *, ends_process: bool) -> None:
        """Begin a report.

        Args:
            descriptor: Where it goes.
            ends_process: Whether the process ends with the report.
        """
        self._descriptor = descriptor
        self.ends_process = ends_process
        self._size = 0
        self._ended = False

    def write(self, **fields: object) -> None:
        """Add one line; after the last one, none."""
        if self._ended:
            return
        if self._size > _FULL and "exception" in fields:
            fields["exception"] = {"type": "", "message": ""}
        line = _line(fields)
        if self._size + len(line) > MAX_REPORT - _LAST:
            self.end(failure="output_limit", reason="there are more cases than a report holds")
        self._size += os.write(self._descriptor, line)

    def end(self, **fields: object) -> NoReturn:
        """Add the last line and end the job: nothing that runs later can add to it."""
        if not self._ended:
            os.write(self._descriptor, _line(fields))
        if self.ends_process:
            os._exit(0)
        self._ended = True
        raise JobEndedError


def _line(fields: Mapping[str, object]) -> bytes:
    return (json.dumps(fields) + "\n").encode()


def classify(error: Mapping[str, Any]) -> str:
    """Name the class of failure that an exception of the program is."""
    bases = error["bases"]
    if error["unsupported"]:
        return UNSUPPORTED
    if error["unsendable"]:
        return "output_limit" if error["type"] in ("InvalidMessageError", "MemoryError") else "exception"
    if "MemoryError" in bases:
        return "memory"
    if error["forbidden"]:
        return "forbidden"
    if error["errno"] == _EFBIG:
        return "output_limit"
    if "SystemExit" in bases:
        return "exit"
    return "exception"


def finding(error: BaseException) -> dict[str, Any]:
    """Describe why a case failed: by an exception of the program, or of the test."""
    theirs = error.__dict__.get("candidate_error")
    if theirs is not None:
        return {"failure": classify(theirs), "exception": described(theirs)}
    failure = UNSUPPORTED if is_unsupported(error) else "wrong_answer"
    return {"failure": failure, "exception": {"type": type(error).__name__, "message": text_of(error)}}


_Error = TypeVar("_Error", bound=BaseException)


def unsupported(error: _Error) -> _Error:
    """Mark an exception: the test asks of an object what the sandbox does not do, and the program chose the object."""
    error.__dict__[UNSUPPORTED] = True
    return error


def is_unsupported(error: BaseException) -> bool:
    """Whether an exception is marked so."""
    return error.__dict__.get(UNSUPPORTED) is True


def text_of(error: BaseException) -> str:
    """An exception's text, which the program has a say in where it shows one of its objects."""
    try:
        return str(error)[:MAX_TEXT]
    except JobEndedError:
        raise
    except BaseException as second:  # noqa: BLE001 - recorded in the text
        return f"<its text raised {type(second).__name__}>"


def lacking(cls: type[BaseException], message: str) -> BaseException:
    """The exception of a program that lacks what the tests ask of it."""
    error = cls(message)
    error.__dict__["candidate_error"] = {
        **{"type": cls.__name__, "message": message, "file": None, "line": None},
        **{"bases": [], "errno": None, "unsendable": False, "forbidden": False, "unsupported": False},
    }
    return error


def described(error: Mapping[str, Any]) -> dict[str, Any]:
    """What a report says of an exception of the program."""
    return {name: error[name] for name in ("type", "message", "file", "line")}
