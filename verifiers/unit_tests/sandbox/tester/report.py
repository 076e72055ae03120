"""The tester's report: the result of each case, one a line, and the classes of failure."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any, NoReturn, TypeVar

TEST_FILE = "test.py"
"""The name under which test code is compiled."""
MAX_TEXT = 1000
"""Characters of a message or a name in a report; any other text of it is cut there."""
_FULL = 1 << 20
"""Size in bytes above which messages are left out of a report; it still says which cases passed."""
MAX_REPORT = 16 << 20
"""Maximum size in bytes."""
_LAST = 64 << 10
"""Bytes reserved for the last line. The program is to blame for more cases than fit into the rest."""
_EFBIG = 27
UNSUPPORTED = "unsupported"
"""The class of failure for what the sandbox does not support."""
MARK = "candidate_unsupported"
"""The attribute by which `unsupported` marks an exception."""


class JobEndedError(BaseException):
    """The report is complete, and the process goes on to the next job."""


class Report:
    """The tester's findings, written line by line so that what was found before a kill is kept."""

    def __init__(self, descriptor: int, *, ends_process: bool) -> None:
        self._descriptor = descriptor
        self.ends_process = ends_process
        self._size = 0
        self._ended = False

    def write(self, **fields: object) -> None:
        """Add a line, unless the report has ended."""
        if self._ended:
            return
        if self._size > _FULL and "exception" in fields:
            fields["exception"] = {"type": "", "message": ""}
        line = _line(fields)
        if self._size + len(line) > MAX_REPORT - _LAST:
            self.end(failure="output_limit", reason="there are more cases than a report holds")
        self._size += os.write(self._descriptor, line)

    def end(self, **fields: object) -> NoReturn:
        """Write the last line and end the job for good. `broken=True` says that no program has a say in the failure."""
        if not self._ended:
            os.write(self._descriptor, _line(fields))
        if self.ends_process:
            os._exit(0)
        self._ended = True
        raise JobEndedError


def _line(fields: Mapping[str, object]) -> bytes:
    return (json.dumps(_shortened(fields)) + "\n").encode()


def _shortened(value: object) -> object:
    """Cut the texts in a line, which may be the program's, so that each line and the last one fit into the report."""
    if isinstance(value, Mapping):
        return {name: _shortened(item) for name, item in value.items()}
    return value[:MAX_TEXT] if isinstance(value, str) else value


def tidy(error: Any) -> dict[str, Any]:
    """Reduce the candidate's description of an exception to the expected fields and types."""
    line, code, file = error.get("line"), error.get("errno"), error.get("file")
    return {
        "type": str(error["type"])[:MAX_TEXT],
        "bases": [str(name) for name in error["bases"]][:20],
        "message": str(error["message"])[:MAX_TEXT],
        "file": file[:MAX_TEXT] if type(file) is str else None,
        "line": line if type(line) is int else None,
        "forbidden": error.get("forbidden") is True,
        "errno": code if type(code) is int else None,
        "unsendable": error.get("unsendable") is True,
        "unsupported": error.get("unsupported") is True,
        "class": error["class"],
        "args": error.get("args"),
        "attributes": error.get("attributes"),
        "links": error.get("links"),
        **{key: n if type(n := error.get(key)) is int else None for key in ("number", "class_number")},
        "made": error.get("made") is True,
    }


def classify(error: Mapping[str, Any]) -> str:
    """Return the class of failure of an exception that the program raised."""
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
    """Mark an exception: the sandbox does not support the operation on this object, which the program chose."""
    error.__dict__[MARK] = True
    return error


_refused: list[int] = [0]


def refusal(error: _Error) -> _Error:
    """Mark an exception in place of the program's own answer: a test that expects one must not pass by it."""
    _refused[0] += 1
    return unsupported(error)


def refusals() -> int:
    """How many answers have been refused in this process."""
    return _refused[0]


def passed(refusals_before: int) -> dict[str, Any]:
    """The line of a case that passed, unless by an exception that may not be the program's."""
    if refusals() == refusals_before:
        return {"passed": True}
    error = TypeError(
        "an exception of the sandbox, in place of the program's own answer, may be what this test expects"
    )
    return {"passed": False, **finding(unsupported(error))}


def is_unsupported(error: BaseException) -> bool:
    """Whether `unsupported` has marked the exception."""
    return error.__dict__.get(MARK) is True


def text_of(error: BaseException) -> str:
    """An exception's text, which the program can influence if it contains one of its objects."""
    try:
        return str(error)[:MAX_TEXT]
    except JobEndedError:
        raise
    except BaseException as second:  # noqa: BLE001 - recorded in the text
        return f"<its text raised {type(second).__name__}>"[:MAX_TEXT]


def absent(cls: type[BaseException], message: str) -> BaseException:
    """An exception for a name or attribute that the program fails to define; it counts as raised by the program."""
    error = cls(message)
    error.__dict__["candidate_error"] = tidy(
        {"type": cls.__name__, "class": cls.__name__, "bases": [], "message": message}
    )
    return error


def described(error: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of the program's exception that a report contains."""
    return {name: error[name] for name in ("type", "message", "file", "line")}
