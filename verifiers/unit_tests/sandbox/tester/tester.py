"""The tester: runs the tests, calls the candidate, and writes the report; the candidate can reach neither tests nor report.

Test code sees the candidate's functions as proxies. Arguments and results are sent as plain data and compared here, as real
builtins. One process serves job after job, as long as their tests are calls or code that leaves no trace in it. A job with any
other test code is the only one of its process, run by a subclass of `Tester` that this module does not depend on.
"""

from __future__ import annotations

import ast
import builtins
import contextlib
import functools
import gc
import importlib
import inspect
import json
import os
import random
import resource
import socket
import sys
import traceback
import types
import zlib
from collections.abc import Callable, Collection, Mapping
from typing import Any, NoReturn

from verifiers.sandbox.contract import CONTROL, DECLINED, READY
from verifiers.sandbox.memory_files import read_all

from ..protocol import packages
from ..protocol.channel import Channel
from ..protocol.codec import Decoder
from ..protocol.entry_points import SOLUTION_CLASS, entry_point_steps, reach
from .analysis import name_resolution as resolution
from .analysis.compilation import can_fail, compile_prefix, compile_tests, leave_no_trace, tidied
from .comparison import Equality
from .outcomes import Skipped, UnsupportedTestError, runs_whole
from .report import (
    MAX_TEXT,
    TEST_FILE,
    UNSUPPORTED,
    JobEndedError,
    Report,
    absent,
    finding,
    is_unsupported,
    passed,
    refusals,
    text_of,
)
from .rpc.session import Assumption, Session

_JOB_DESCRIPTORS = 4
_GROWTH_KIB = 112 << 10
"""A process that has grown by more than this serves no further job."""
_RECURSION = 10_000
"""Recursion limit: nested data is decoded by recursion."""


class Tester:
    """Runs one job's tests: those of kind `"calls"` by the method `_calls`, and so on."""

    def __init__(self, tests: dict[str, Any], channel: Channel, report: Report) -> None:
        self._tests = tests
        self.report = report
        self._session = Session(channel, report)
        self._source: str = tidied(tests["setup"]) if "setup" in tests else tests.get("test", "")
        """The test code that runs outside of cases."""
        self._programs: set[str] = set()
        """Names in the test code that are the program's."""
        self._required_names: Collection[str] = ()
        """Names in the test code that only the program can define."""
        self._everything: bool = tests["every_case"]
        self._refused = refusals()
        """Their number up to the last case."""
        self._undecided: list[tuple[list[Assumption], dict[str, object]]] = []
        """Cases that passed if assumptions hold, with what the report says of them."""
        self.leaves_no_trace = True
        """False if the program could influence what the tests did to this process."""

    def run(self) -> None:
        """Run the tests and write the report."""
        sys.setrecursionlimit(_RECURSION)
        self._session.load()
        random.seed(self._tests["seed"])
        packages.seed(zlib.crc32(self._tests["seed"].encode("utf-8", "surrogatepass")))
        self._begin()
        getattr(self, f"_{self._tests['kind']}")()
        for assumptions, fields in self._undecided:  # grows meanwhile
            self._case(functools.partial(self._session.verify, assumptions), **fields)
        self.report.end(done=True)

    def _begin(self) -> None:
        """Prepare this process for the test code; code that leaves no trace needs no preparation."""

    def _case(self, run: Callable[[], object], **fields: object) -> bool:
        """Run one case and report it; return False if it was skipped."""
        result = self._run_case(run)
        if result is None:
            return False
        self._write(result, **fields)
        return True

    def _write(self, result: Mapping[str, Any], **fields: object) -> None:
        """Report a case; later, if it has passed by answers that the program was not asked for."""
        assumptions = self._session.take_assumptions()
        if result["passed"] and assumptions:
            self._undecided.append((assumptions, fields))
            return
        self.report.write(**result, **fields)
        if not (result["passed"] or self._everything):
            self.report.end(done=True)

    def _run_case(self, run: Callable[[], object]) -> dict[str, Any] | None:
        """Run one case; return its line of the report, or None if it was skipped."""
        unsupported_uses = self._session.unsupported_uses
        try:
            run()
            return passed(self._refused)
        except BaseException as error:  # noqa: BLE001 - recorded in the report
            return self._failed_case(error, unsupported_uses)
        finally:
            self._refused = refusals()

    def _failed_case(self, error: BaseException, unsupported_uses: int) -> dict[str, Any] | None:
        """What the report says of a case that an exception ended, None if the case was skipped."""
        if isinstance(error, UnsupportedTestError):
            self._end_unsupported(error, chosen=self._session.has_answered)
        if isinstance(error, JobEndedError) or self._is_undefined(error):
            raise error
        if isinstance(error, Skipped):
            return None
        if _needs_files(error) and not self._session.has_answered:
            self._end_unsupported(error, chosen=False)
        result = self._finding(error)
        if _needs_files(error):
            result["failure"] = UNSUPPORTED
        if result["failure"] == "wrong_answer" and self._session.unsupported_uses > unsupported_uses:
            result["failure"] = UNSUPPORTED
        return {"passed": False, **result}

    def _finding(self, error: BaseException) -> dict[str, Any]:
        return finding(absent(type(error), text_of(error)) if self._is_missing_name(error) else error)

    def _is_missing_name(self, error: BaseException) -> bool:
        """Whether the test code failed because the program does not define a name."""
        return isinstance(error, NameError) and error.name in self._required_names

    def _is_undefined(self, error: BaseException) -> bool:
        """Whether a test failed by a name that nothing defines, before the program had a say in what it does."""
        if not isinstance(error, NameError) or "candidate_error" in error.__dict__ or self._session.has_answered:
            return False
        return not self._is_missing_name(error) and error.name in resolution.free_names([self._source])

    def _missing(self, name: str) -> NoReturn:
        self.report.end(**finding(absent(NameError, f"name {name!r} is not defined")))

    def _trusted_namespace(self, drop: Collection[str] = ()) -> dict[str, Any]:
        """A namespace for test code, with the tester's own copy of what the prompt defines, except the names in `drop`."""
        namespace: dict[str, Any] = {"__name__": "tests", "__builtins__": builtins, "__file__": f"/{TEST_FILE}"}
        exec(compile_prefix(self._tests["prefix"]), namespace)
        self._take_classes(namespace)
        for name in drop:
            namespace.pop(name, None)
        return namespace

    def _take_classes(self, namespace: dict[str, Any]) -> None:
        """Use the program's copy of the prompt's classes: their instances must live where the program can use them."""
        classes = [name for name, value in namespace.items() if isinstance(value, type) and value.__module__ == "tests"]
        for name, answer in self._session.resolve(classes).items():
            if answer[0] in ("value", "exception"):
                namespace[name] = self._session.value_of(answer)
                self._programs.add(name)

    def _run_test_code(self, code: types.CodeType, namespace: dict[str, Any]) -> None:
        """Run test code outside of cases; end the job if it fails."""
        try:
            exec(code, namespace)
        except JobEndedError:
            raise
        except BaseException as error:  # noqa: BLE001 - recorded in the report
            self._blame(error, *_lines_of(error)[:2])

    def _blame(self, error: BaseException, line: int = 0, *inner: int) -> NoReturn:
        """End the job because test code outside of cases failed; the program is to blame if it may have caused the failure.

        `line` is one of the top-level statement of the test file that failed; 0 if collecting the tests failed. `inner` is one
        of a function of the test file that the statement called, if it did.
        """
        if self._is_missing_name(error) or "candidate_error" in error.__dict__:
            self.report.end(**self._finding(error))
        tree = ast.parse(self._source)
        depends = self._uses_program(line)
        # What a program has answered or done may be behind any name; before, its names alone can steer the tests.
        answered = self._session.has_answered and resolution.reads_names(tree, line)
        steered = bool(inner) or resolution.is_conditional(tree, line)
        unknown = isinstance(error, NameError) and error.name in resolution.free_names([self._source])
        chosen = steered if answered and unknown else answered or (depends and steered)
        if isinstance(error, ModuleNotFoundError | UnsupportedTestError):
            self._end_unsupported(error, chosen=chosen)
        if chosen or (depends and not isinstance(error, _FAULTS_OF_TESTS)):
            self.report.end(**finding(error))
        raise error

    def _uses_program(self, line: int) -> bool:
        """Whether the top-level statement at a line of the test file, 0 for all decorators, depends on the program's names."""
        tree = ast.parse(self._source)
        return resolution.depends_on(tree, self._names_of_program(tree), line)

    def _end_unsupported(self, error: BaseException, *, chosen: bool) -> NoReturn:
        """End the job over something unsupported: the program's failure if it can influence whether the tests need it."""
        hint = f": {_TEST_MODULES}" if isinstance(error, ModuleNotFoundError) else ""
        self.report.end(failure=UNSUPPORTED, reason=text_of(error) + hint, broken=not (chosen or is_unsupported(error)))

    def _names_of_program(self, tree: ast.Module) -> Collection[str]:
        """Names in the test code that are the program's."""
        return self._programs

    def _calls(self) -> None:
        find = self._callee()
        self.report.write(total=len(self._tests["cases"]))
        names = ("tuples_as_lists", "wrapped_outputs")
        equal = Equality(self._tests["tolerance"], **{name: self._tests[name] for name in names})
        for number, case in enumerate(self._tests["cases"]):
            args, kwargs, expected = (Decoder(self._session.decode_special).decode(wire) for wire in case)
            run = functools.partial(_call_and_compare, find, args, kwargs, expected, equal)
            self._case(run, name=f"case {number}")

    def _callee(self) -> Callable[[], Callable[..., object]]:
        """A getter of the function under test: a global function, or a method of a new instance for each case."""
        name, *steps = entry_point_steps(self._tests["entry_point"])
        answers = self._session.resolve([name, SOLUTION_CLASS])
        if answers[name][0] != "missing":
            function = self._session.value_of(answers[name])
            return lambda: reach(function, steps)
        if steps or answers[SOLUTION_CLASS][0] == "missing":
            self._missing(name)
        solution: Any = self._session.value_of(answers[SOLUTION_CLASS])
        return lambda: getattr(solution(), name)

    def _check(self) -> None:
        name, *steps = entry_point_steps(self._tests["entry_point"])
        answer = self._session.resolve([name])[name]
        if answer[0] == "missing":
            self._missing(name)
        code = compile_tests(self._tests["test"])
        namespace = self._trusted_namespace()
        function = namespace[name] = self._session.value_of(answer)
        self._programs.add(name)
        self._run_test_code(code, namespace)
        check: Callable[[object], object] | None = namespace.get("check")
        if not callable(check):
            raise NameError("the tests define no function `check`")
        if not runs_whole(check):
            raise TypeError("calling `check` would run none of its asserts, since it is a generator or a coroutine")
        with contextlib.suppress(ValueError):  # a callable without a signature
            inspect.signature(check).bind(function)
        self._case(lambda: check(reach(function, steps)), name="check")

    def _asserts(self) -> None:
        setup, statements = self._tests["setup"], self._tests["asserts"]
        sources = [tidied(source) for source in (setup, *statements)]
        codes = [*map(compile_tests, sources)]
        for source in sources[1:]:
            if not can_fail(source):
                raise ValueError(f"no program could fail the assert {source!r}")
        self.report.write(total=len(statements))
        namespace = self._trusted_namespace(drop=self._tests["entry_points"])
        self._provide(namespace, sources)
        if setup.strip():
            self._run_test_code(codes[0], namespace)
        for statement, code in zip(statements, codes[1:], strict=True):
            self._case(functools.partial(_run_assert, code, namespace, sources), name=statement.strip()[:MAX_TEXT])

    def _provide(self, namespace: dict[str, Any], sources: list[str]) -> None:
        """Add names that the tests use but don't define to their namespace, from the program or the standard library."""
        names = resolution.free_names(sources) - namespace.keys()
        standard = resolution.standard_names(sources, names) - set(self._tests["entry_points"])
        self._required_names = names - standard
        self._programs |= names - standard
        for name, answer in self._session.resolve(sorted(names - standard)).items():
            if answer[0] == "module":
                # Side effects were analysed without knowing which module the program binds to the name.
                self.leaves_no_trace = False
                namespace[name] = self._session.module_of(answer, name)
            elif answer[0] != "missing":
                namespace[name] = self._session.value_of(answer)
        provide_standard(namespace, standard)


def _run_assert(code: types.CodeType, namespace: dict[str, Any], sources: list[str]) -> None:
    """Run an assert, one of these sources; those of their names that are the program's have been looked up."""
    try:
        exec(code, namespace)
    except NameError as error:
        nodes = (node for source in sources for node in ast.walk(ast.parse(source)))
        written = any(isinstance(node, ast.Name) and node.id == error.name for node in nodes)
        if written or error.name is None or "candidate_error" in error.__dict__:
            raise
        raise UnsupportedTestError(
            f"text that runs as code uses {error.name!r}, which no test names otherwise"
        ) from None


def _needs_files(error: BaseException) -> bool:
    """Whether test code tried to use a file, a folder or a process, which it does not have."""
    refused = isinstance(error, PermissionError | FileNotFoundError) and error.errno is not None
    return refused and "candidate_error" not in error.__dict__


def provide_standard(namespace: dict[str, Any], names: Collection[str]) -> None:
    """Put names of the standard library into a namespace."""
    for name in names:
        if not hasattr(builtins, name):
            module = resolution.module_called(name)
            namespace[name] = importlib.import_module(module) if module else resolution.helper(name)


def _lines_of(error: BaseException) -> list[int]:
    """The test file's lines in an exception's traceback, the outermost first."""
    frames = traceback.walk_tb(error.__traceback__)
    return [line for frame, line in frames if frame.f_code.co_filename == TEST_FILE]


_FAULTS_OF_TESTS = (NameError, ImportError)
"""Errors of test code that don't depend on what a program returns."""
_TEST_MODULES = (
    "tests import from the standard library, this library's subset of pytest, the files that the problem gives, and the "
    "program's modules, whose names are given in FunctionTests.module and FunctionTests.modules"
)


def _call_and_compare(
    find: Callable[[], Callable[..., object]],
    args: tuple[object, ...],
    kwargs: Mapping[str, Any],
    expected: object,
    equal: Callable[[object, object], bool],
) -> None:
    result = find()(*args, **kwargs)
    if not equal(result, expected):
        raise AssertionError(f"got {_short(result)}, expected {_short(expected)}")


def _short(value: object) -> str:
    try:
        return repr(value)[:200]
    except ValueError:  # an int of more digits than Python will print
        return f"a {type(value).__name__} too long to print"


def serve(run_alone: Callable[[int, int, int, int], NoReturn]) -> NoReturn:
    """Serve one job after another as the tester; `run_alone` runs one whose tests leave a trace if it is the first.

    A later one is declined: its tests could find what programs of earlier jobs had a say in, such as flags of the decimal
    context, subclasses, and memory in use. Each job arrives as four descriptors, the pipes from and to the candidate and
    the files of tests and report, and is answered with one byte or by the end of this process.
    """
    gc.enable()
    sys.setrecursionlimit(_RECURSION)  # not only in `Tester.run`: by it the compiler decides what is nested too deeply
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
        if not leave_no_trace(content):
            if is_fresh:
                run_alone(*descriptors)
            control.send(DECLINED)
            os._exit(0)
        is_fresh = False
        tester = Tester(content, Channel(replies, requests), Report(report, ends_process=False))
        if not run_job(tester) or resource.getrusage(resource.RUSAGE_SELF).ru_maxrss > most_kib:
            os._exit(0)
        for descriptor in descriptors:
            os.close(descriptor)
        control.send(READY)


def run_job(tester: Tester) -> bool:
    """Run tests and write the report; return whether the process is unchanged."""
    with contextlib.suppress(JobEndedError):
        try:
            tester.run()
        except JobEndedError:
            raise
        except MemoryError:
            # A program can make the tests hold any amount of memory.
            tester.report.end(failure="memory")
        except BaseException as error:  # noqa: BLE001 - recorded in the report
            exception = {"type": type(error).__name__, "message": text_of(error)}
            tester.report.end(failure="broken_test", exception=exception)
    return tester.leaves_no_trace
