"""The report of the tests' process: one line for the result of each case, and the classes of failure."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any, NoReturn

TEST_FILE = "test.py"
"""The name under which test code is compiled."""
MAX_TEXT = 1000
"""Maximum number of characters of a text in a report."""
MAX_REPORT = 16 << 20
"""Maximum size of a report in bytes."""
_EFBIG = 27
UNSUPPORTED = "unsupported"
"""The class of failure for anything that is not supported."""
_THEIRS = "__program_error__"
_REFUSED = "__refused__"


class JobEndedError(BaseException):
    """The report is complete, so the process continues with the next job."""


class UnsupportedTestError(BaseException):
    """A test needs something unsupported; like pytest's outcomes, this can't be caught as an `Exception`."""


class BrokenTestError(Exception):
    """The tests are broken: no program could pass them, or none could fail them."""


class Skipped(BaseException):
    """A test is skipped, so it is not judged."""


class Report:
    """The results, written line by line, so that those found before a kill are kept."""

    def __init__(self, descriptor: int, *, ends_process: bool) -> None:
        self._descriptor = descriptor
        self._ends_process = ends_process
        self._ended = False

    def write(self, **fields: object) -> None:
        """Add a line, unless the report has ended."""
        if self._ended:
            return
        os.write(self._descriptor, _line(fields))

    def end(self, **fields: object) -> NoReturn:
        """Write the last line and end the job. `broken=True` means that the failure does not depend on the program."""
        if not self._ended:
            os.write(self._descriptor, _line(fields))
        if self._ends_process:
            os._exit(0)
        self._ended = True
        raise JobEndedError


def _line(fields: Mapping[str, object]) -> bytes:
    return (json.dumps(_shortened(fields)) + "\n").encode()


def _shortened(value: object) -> object:
    """Shorten the texts in a line of the report, since they may come from the program."""
    if isinstance(value, Mapping):
        return {name: _shortened(item) for name, item in value.items()}
    return value[:MAX_TEXT] if isinstance(value, str) else value


def as_programs(error: BaseException, description: Mapping[str, Any]) -> BaseException:
    """Mark an exception as raised by the program, with its description; raises TypeError or KeyError if that is invalid."""
    numbers = {name: n if type(n := description.get(name)) is int else None for name in ("line", "errno")}
    texts = {name: str(description[name])[:MAX_TEXT] for name in ("type", "text")}
    file = description.get("file")
    flags = {name: description.get(name) is True for name in ("forbidden", "unsendable", "unsupported")}
    error.__dict__[_THEIRS] = {
        **texts,
        **numbers,
        **flags,
        "file": file[:MAX_TEXT] if type(file) is str else None,
        "bases": [str(name) for name in description["bases"]][:20],
    }
    return error


def missing(cls: type[BaseException], text: str) -> BaseException:
    """An exception for a name that the program should define but doesn't; it counts as raised by the program."""
    return as_programs(cls(text), {"type": cls.__name__, "text": text, "bases": []})


def is_programs(error: BaseException) -> bool:
    """Whether the program raised an exception."""
    return _THEIRS in error.__dict__


def refused(error: BaseException) -> BaseException:
    """Mark an exception that replaces the program's own answer."""
    error.__dict__[_REFUSED] = True
    return error


def finding(error: BaseException) -> dict[str, Any]:
    """Describe the exception of the program or the test that made a case fail."""
    theirs = error.__dict__.get(_THEIRS)
    if theirs is not None:
        names = {"type": "type", "text": "message", "file": "file", "line": "line"}
        return {"failure": _class_of(theirs), "exception": {names[name]: theirs[name] for name in names}}
    is_refused = isinstance(error, UnsupportedTestError) or _REFUSED in error.__dict__
    exception = {"type": type(error).__name__, "message": text_of(error)}
    return {"failure": UNSUPPORTED if is_refused else "wrong_answer", "exception": exception}


def _class_of(error: Mapping[str, Any]) -> str:
    """The class of failure for an exception that the program raised."""
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
    return "exit" if "SystemExit" in bases else "exception"


def text_of(error: BaseException) -> str:
    """The text of an exception; the program can influence it through its own objects in the exception."""
    try:
        return str(error)[:MAX_TEXT]
    except JobEndedError:
        raise
    except BaseException as second:  # noqa: BLE001 - recorded in the text
        return f"<its text raised {type(second).__name__}>"[:MAX_TEXT]
