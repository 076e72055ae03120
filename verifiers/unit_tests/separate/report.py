"""The report of the tests' process: the result of each case, one a line, and the classes of failure."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any, NoReturn

TEST_FILE = "test.py"
"""The name under which test code is compiled."""
MAX_TEXT = 1000
"""Characters of a text in a report."""
MAX_REPORT = 16 << 20
"""Maximum size in bytes."""
_EFBIG = 27
UNSUPPORTED = "unsupported"
"""The class of failure for what is not supported."""
_THEIRS = "__program_error__"
_REFUSED = "__refused__"


class JobEndedError(BaseException):
    """The report is complete, and the process goes on to the next job."""


class UnsupportedTestError(BaseException):
    """A test needs what is not supported; as in pytest's outcomes, no handler of `Exception` prevents the end of the test."""


class BrokenTestError(Exception):
    """No program could pass the tests, or fail them."""


class Skipped(BaseException):
    """A test is not to be judged."""


class Report:
    """The findings, written line by line so that what was found before a kill is kept."""

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
        """Write the last line and end the job for good. `broken=True` says that no program has a say in the failure."""
        if not self._ended:
            os.write(self._descriptor, _line(fields))
        if self._ends_process:
            os._exit(0)
        self._ended = True
        raise JobEndedError


def _line(fields: Mapping[str, object]) -> bytes:
    return (json.dumps(_shortened(fields)) + "\n").encode()


def _shortened(value: object) -> object:
    """Cut the texts in a line, which may be the program's."""
    if isinstance(value, Mapping):
        return {name: _shortened(item) for name, item in value.items()}
    return value[:MAX_TEXT] if isinstance(value, str) else value


def as_programs(error: BaseException, description: Mapping[str, Any]) -> BaseException:
    """Mark an exception as raised by the program, which describes it so; TypeError or KeyError if it does not."""
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
    """An exception for a name that the program fails to define; it counts as raised by the program."""
    return as_programs(cls(text), {"type": cls.__name__, "text": text, "bases": []})


def is_programs(error: BaseException) -> bool:
    """Whether the program has raised an exception."""
    return _THEIRS in error.__dict__


def refused(error: BaseException) -> BaseException:
    """Mark an exception that stands in place of the program's own answer."""
    error.__dict__[_REFUSED] = True
    return error


def finding(error: BaseException) -> dict[str, Any]:
    """Describe why a case failed: by an exception of the program, or of the test."""
    theirs = error.__dict__.get(_THEIRS)
    if theirs is not None:
        names = {"type": "type", "text": "message", "file": "file", "line": "line"}
        return {"failure": _class_of(theirs), "exception": {names[name]: theirs[name] for name in names}}
    is_refused = isinstance(error, UnsupportedTestError) or _REFUSED in error.__dict__
    exception = {"type": type(error).__name__, "message": text_of(error)}
    return {"failure": UNSUPPORTED if is_refused else "wrong_answer", "exception": exception}


def _class_of(error: Mapping[str, Any]) -> str:
    """The class of failure of an exception that the program raised."""
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
    """An exception's text, which the program can influence if it contains one of its objects."""
    try:
        return str(error)[:MAX_TEXT]
    except JobEndedError:
        raise
    except BaseException as second:  # noqa: BLE001 - recorded in the text
        return f"<its text raised {type(second).__name__}>"[:MAX_TEXT]
