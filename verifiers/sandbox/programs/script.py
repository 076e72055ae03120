"""The role of the jail itself: it runs a program that reads standard input and writes standard output."""

from __future__ import annotations

import atexit
import contextlib
import errno
import gc
import io
import os
import sys
import threading
from collections.abc import Collection
from typing import NoReturn

from .exceptions import is_forbidden, location, make_room, message_of
from .source_files import Program, ProgramError

EXCEPTION, SYNTAX, MEMORY, FORBIDDEN, OUTPUT = 50, 51, 52, 53, 54
"""Real-time signals of Linux that nothing else uses. A process sends one of them to itself to end and to show why the program
failed, which an exit status could not show.
"""
FAILURES = {
    -EXCEPTION: "exception",
    -SYNTAX: "syntax_error",
    -MEMORY: "memory",
    -FORBIDDEN: "forbidden",
    -OUTPUT: "output_limit",
}
"""The class of failure for each exit status; the program or the kernel chose any other status except 0."""
_PROGRAM = 3
"""Descriptor of the program's source, above the standard streams."""
_TEXT = 2000
"""Maximum number of characters of an exception's text that are written."""
# Bound once, since a program may replace them.
_exit, _kill, _getpid = os._exit, os.kill, os.getpid


def run_script() -> None:
    """Run a program; exit with its status."""
    gc.enable()
    try:
        status = _run_program(Program.read(_PROGRAM))
    except MemoryError:
        # There was no memory even to write the error.
        status = -MEMORY
    if status < 0:
        end(-status)
    _exit(status)


def run_sample() -> None:
    """Do what most processes do: run a program."""
    _run_program(Program.read(_PROGRAM))


def _run_program(program: Program) -> int:
    """Run a script to its end; return its exit status, or if it failed, a negative number from `FAILURES`."""
    try:
        program.run("__main__")
        status = 0
    except SystemExit as error:
        status = _exit_status(error)
    except ProgramError as error:
        _print_error(error.error, program.files)
        status = -SYNTAX if error.phase == "compile" else -MEMORY
    except BaseException as error:  # noqa: BLE001 - recorded on stderr and in the status
        make_room(error)
        _print_error(error, program.files)
        status = -_failure_status(error)
    return _finish(status)


def end(reason: int) -> NoReturn:
    """End this process by one of the signals of `FAILURES`."""
    with contextlib.suppress(OSError):
        _kill(_getpid(), reason)
    _exit(1)  # the program has blocked the signal


def _failure_status(error: BaseException) -> int:
    if issubclass(type(error), MemoryError):
        return MEMORY
    if issubclass(type(error), OSError) and error.errno == errno.EFBIG:  # type: ignore[attr-defined]  # its type was just checked
        return OUTPUT
    return FORBIDDEN if is_forbidden(error) else EXCEPTION


def _exit_status(error: SystemExit) -> int:
    if error.code is None:
        return 0
    return error.code & 0xFF if isinstance(error.code, int) else 1


def _print_error(error: BaseException, files: Collection[str]) -> None:
    try:
        name, message, (file, line) = type(error).__name__, message_of(error)[:_TEXT], location(error, files)
    except Exception as second:  # noqa: BLE001 - recorded: an exception that raises, or recurses, when it is inspected
        name, message = "RuntimeError", f"<its description raised {type(second).__name__}>"
        file, line = None, None
    # On a single line, the last one, since readers look for it there.
    where = f" ({file}, line {line})" if line else ""
    # The program may have closed or replaced its stderr; the exit status still shows the failure.
    with contextlib.suppress(OSError, ValueError, AttributeError):
        sys.stderr.write(f"{name}: {message.replace(chr(10), chr(92) + 'n').removesuffix(where)}{where}\n")


def _finish(status: int) -> int:
    """Do what an interpreter does when it ends: join threads, run exit handlers, and flush."""
    try:
        threading._shutdown()  # type: ignore[attr-defined]  # what Py_Finalize calls
        atexit._run_exitfuncs()
        _flush_streams()
    except BaseException as error:  # noqa: BLE001 - recorded on stderr and in the status
        if status < 0:
            return status  # the error that ended the program takes precedence
        _print_error(error, ())
        return status or -EXCEPTION
    return status


def _flush_streams() -> None:
    for stream in (sys.stdout, sys.stderr):
        if stream is not None and not getattr(stream, "closed", False):
            stream.flush()
    # At its end an interpreter also deletes all other streams, which flushes them and ignores errors.
    others = [sys.__stdout__, *gc.get_objects()]
    for stream_type in (io.TextIOWrapper, io.BufferedWriter):
        for stream in (other for other in others if issubclass(type(other), stream_type)):
            with contextlib.suppress(OSError, ValueError):
                stream.flush()
