"""Describes a program's exceptions, in code that hostile exceptions can't break."""

from __future__ import annotations

import os
import traceback
from collections.abc import Collection

from ..isolation.library_folders import library_paths

_RESERVE = [bytes(4 << 20)]
"""Address space that is never written to; it is released when a program runs out of memory, so that this can be recorded."""


def make_room(error: BaseException) -> None:
    """Release the reserve if an error says that memory has run out."""
    if issubclass(type(error), MemoryError):  # `isinstance` would consult the error too
        _RESERVE.clear()


def message_of(error: BaseException) -> str:
    """The exception's text."""
    try:
        text = str(error)
    except BaseException as second:  # noqa: BLE001 - recorded: an exception whose text raises is described by that
        text = f"<its text raised {type(second).__name__}>"
    return str.__str__(text)


def location(error: BaseException, files: Collection[str]) -> tuple[str | None, int | None]:
    """The file and line of the program that raised an exception; both are None if the program did not raise it."""
    if isinstance(error, SyntaxError) and error.filename in files:
        return error.filename, error.lineno
    location: tuple[str | None, int | None] = None, None
    for frame, number in traceback.walk_tb(error.__traceback__):
        if frame.f_code.co_filename in files:
            location = frame.f_code.co_filename, number
    return location


def is_forbidden(error: BaseException) -> bool:
    """Whether an exception means that the program tried something forbidden.

    A path outside the sandbox is missing under namespaces and denied under Landlock; both count as forbidden.
    """
    try:
        if isinstance(error, FileNotFoundError) and isinstance(error.filename, str):
            path = os.path.normpath(error.filename)
            return path.startswith("/") and not any(f"{path}/".startswith(f"{root}/") for root in library_paths())
        return isinstance(error, PermissionError)
    except Exception:  # noqa: BLE001 - an exception that raises when it is inspected doesn't
        return False
