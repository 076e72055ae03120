"""The process of the tests: it serves one job after another, as long as their tests leave no trace in the process.

A job whose tests may leave a trace gets a process of its own, since its tests could find state that programs of earlier jobs
have influenced, such as flags of the decimal context, subclasses, and memory in use. Sharing the process saves about a third of
the CPU time of a short program.
"""

from __future__ import annotations

import contextlib
import gc
import json
import os
import resource
import socket
import sys
from collections.abc import Iterable, Mapping
from typing import Any, NoReturn

from verifiers.sandbox.contract import CONTROL, DECLINED, READY
from verifiers.sandbox.memory_files import read_all

from . import packages
from .channel import Channel
from .compilation import compile_prefix, compile_tests, tidied
from .judging import Judge
from .report import (
    BrokenTestError,
    JobEndedError,
    Report,
    UnsupportedTestError,
    finding,
    is_programs,
    text_of,
)
from .side_effects import leaves_no_trace
from .test_files import TestFileJudge, pytest_module

_JOB_DESCRIPTORS = 4
_GROWTH_KIB = 112 << 10
"""Growth in KiB after which a process serves no further job."""
_RECURSION = 10_000


def serve() -> NoReturn:
    """Serve jobs. A job arrives as four descriptors: the pipes from and to the program, and the files of tests and report."""
    gc.enable()
    sys.setrecursionlimit(_RECURSION)  # not only in the judge: the compiler uses it too, for nested code
    control = socket.socket(fileno=CONTROL)
    # The memory that packages take is included from the beginning.
    most_kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss + _GROWTH_KIB
    is_fresh = True
    while True:
        _, descriptors, _, _ = socket.recv_fds(control, 1, _JOB_DESCRIPTORS)
        if len(descriptors) != _JOB_DESCRIPTORS:
            os._exit(0)
        replies, requests, tests, report = descriptors
        content = json.loads(read_all(tests))
        if not _leave_no_trace(content):
            if is_fresh:
                run_alone(*descriptors)
            control.send(DECLINED)
            os._exit(0)
        is_fresh = False
        run_job(Judge(content, Channel(replies, requests), Report(report, ends_process=False)))
        if resource.getrusage(resource.RUSAGE_SELF).ru_maxrss > most_kib:
            os._exit(0)
        for descriptor in descriptors:
            os.close(descriptor)
        control.send(READY)


def run_alone(replies: int, requests: int, tests: int, report: int) -> NoReturn:
    """Run a job whose tests may leave a trace, and end this process."""
    content = json.loads(read_all(tests))
    os.close(tests)  # a test that opens a descriptor by a number from the program must not find the file of the tests
    channel, findings = Channel(replies, requests), Report(report, ends_process=True)
    judge = (TestFileJudge if content["kind"] == "functions" else Judge)(content, channel, findings)
    sys.modules["pytest"] = pytest_module()
    run_job(judge)
    os._exit(0)


def run_job(judge: Judge) -> None:
    """Run tests and write the report."""
    with contextlib.suppress(JobEndedError):
        try:
            judge.run()
        except JobEndedError:
            raise
        except MemoryError:
            # A program can make the tests hold any amount of memory.
            judge.report.end(failure="memory")
        except UnsupportedTestError as error:
            judge.end_unsupported(error)
        except BaseException as error:  # noqa: BLE001 - recorded in the report
            if is_programs(error) or (judge.program.has_resolved and not isinstance(error, BrokenTestError)):
                # The program can have led the tests to this error.
                judge.report.end(**finding(error))
            exception = {"type": type(error).__name__, "message": text_of(error)}
            judge.report.end(failure="broken_test", exception=exception)


def _leave_no_trace(tests: Mapping[str, Any]) -> bool:
    """Whether a process that has run a job's tests can run other tests as if it had never run the first."""
    if tests["kind"] == "calls":
        return True  # calls and their values are data
    if tests["kind"] == "functions" or tests["files"] or packages.any_loaded():
        return False  # packages have state of their own, such as numpy.seterr
    try:
        harmless_prefix = leaves_no_trace(compile_prefix(tests["prefix"]))
        return harmless_prefix and all(map(leaves_no_trace, map(compile_tests, _code(tests))))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False  # the job itself then ends with this error, and reports it


def _code(tests: Mapping[str, Any]) -> Iterable[str]:
    return [tests["test"]] if tests["kind"] == "check" else map(tidied, (tests["setup"], *tests["asserts"]))
