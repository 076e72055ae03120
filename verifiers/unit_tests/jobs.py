"""Runs a program against a problem's tests on a worker; says from report and exit why it failed: timeout, memory, crash."""

from __future__ import annotations

import functools
import json
import os
import signal
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from verifiers import _integers
from verifiers.errors import InvalidArgumentError
from verifiers.sandbox import (
    MEMORY,
    SCRIPT,
    CommandRunner,
    Contract,
    JobEnd,
    Limits,
    Plan,
    Pool,
    ProcessEnd,
    ProgramOutput,
    Role,
    WorkerDiedError,
    clean,
    encode_program,
    excerpts,
    excerpts_of,
    memory_files,
    run_script,
)
from verifiers.unit_tests.extraction.extraction import PYTHON, ExtractedProgram, announced, continued, continues
from verifiers.unit_tests.languages import CompileError, Executable
from verifiers.unit_tests.results import JobResult, cost_of, process_of, without_surrogates
from verifiers.unit_tests.separate.entry_points import SOLUTION_CLASS, entry_point_steps
from verifiers.unit_tests.separate.report import MAX_REPORT
from verifiers.unit_tests.separate.values import NotPlainError, Wire, to_wire
from verifiers.unit_tests.stdio import matches
from verifiers.unit_tests.tests import AssertTests, CallTests, CheckTests, FunctionTests, StdioCase, StdioTests, Tests

_IN_JAIL = "verifiers.unit_tests.separate"
CONTRACT = Contract(
    _IN_JAIL,
    (
        Role("program", f"{_IN_JAIL}.program:answer"),
        # A report has room whatever the limit on the program's output.
        Role("tests", f"{_IN_JAIL}.serve:serve", lasting=True, output_mib=MAX_REPORT >> 20),
    ),
    prepare=f"{_IN_JAIL}.packages:register",
    sample=f"{_IN_JAIL}.program:run_sample",
)
"""The two processes of a job; the process of the tests may serve several jobs."""
_PLAN = Plan(
    ("stdin", "stdout", "stderr", "source", "tests", "report"),
    (
        ("program", ("stdin", "stdout", "stderr", "<requests", ">replies", "source")),
        ("tests", ("<replies", ">requests", "tests", "report")),
    ),
)
_LOST = 3
"""Maximum time of all failing cases together, as a multiple of the limit of one case; after that, no further case is run."""
_FAULTS = frozenset(-number for number in (signal.SIGSEGV, signal.SIGBUS, signal.SIGABRT, signal.SIGFPE, signal.SIGILL))
"""Exit statuses that mean that the interpreter of a process crashed."""


@dataclass(frozen=True, slots=True)
class Job:
    """One program and its tests."""

    program: ExtractedProgram
    tests: Tests
    seed: str
    limits: Limits
    every_case: bool
    """Whether to continue after a case that failed."""
    commands: CommandRunner
    """Runs programs in languages other than Python."""
    packages: Collection[str]
    """Modules that can be imported; arrays may be sent if NumPy is one of them."""

    def run(self, pool: Pool) -> JobResult:
        """Run the program on a worker, which is lent only while the program and its tests run.

        Raises:
            WorkerDiedError: If the worker's server ended, or the tests' process was killed.
            InvalidArgumentError: If the tests contain values that can't be sent to a program.
            LaunchError: If a program in another language could not be started, for a reason outside the program.
        """
        return self._run_script(pool, self.tests) if isinstance(self.tests, StdioTests) else self._run_tested(pool)

    def _run_tested(self, pool: Pool) -> JobResult:
        program, tests = self._program(), _encoded(self._tests())
        with memory_files(b"", b"", b"", program, tests, b"") as files:
            with pool.worker() as worker:
                end = worker.run(_PLAN, files, self.limits)
            streams = excerpts(files[1], files[2])
            report = os.pread(files[5], min(os.fstat(files[5]).st_size, MAX_REPORT), 0)
        return _read_report(_report_lines(report), end, streams)

    def _run_script(self, pool: Pool, tests: StdioTests) -> JobResult:
        runs: list[dict[str, Any]] = []
        lost = 0.0
        try:
            run = self._runner(pool)
        except CompileError as error:
            streams = excerpts_of(error.finished.stdout, error.finished.stderr)
            return JobResult(error.failure, False, 0, len(tests.cases), {"cases": (), **streams}, {})
        for number, case in enumerate(tests.cases):
            name = f"case {number}"
            runs.append(
                _judged(run(case.stdin), tests, case, name) if lost < _LOST * self.limits.cpu_s else _not_run(name)
            )
            lost += self._lost(runs[-1])
            if runs[-1]["failure"] and not self.every_case:
                break
        return _summarise(runs, len(tests.cases))

    def _lost(self, run: Mapping[str, Any]) -> float:
        """The seconds that a failing case used up; 0 if the case passed."""
        if not run["failure"]:
            return 0.0
        end: JobEnd = run["end"]
        return self.limits.cpu_s if end.stopped else process_of(end).cpu_s

    def _runner(self, pool: Pool) -> Callable[[str], ProgramOutput]:
        """Make a function that runs the program on a standard input; raises CompileError if the program does not compile."""
        program, files = self.program, self.tests.files
        if program.language == PYTHON:
            encoded = self._program()
            return lambda stdin: run_script(pool, self.limits, encoded, stdin)
        executable = Executable.of(program.text, program.language, files, self.limits, self.commands)
        return executable.run

    def _program(self) -> bytes:
        tests = self.tests
        prefix, text = getattr(tests, "prefix", ""), self.program.text
        solution = (SOLUTION_CLASS,) if isinstance(tests, CallTests) else ()
        if prefix and continues(text, prefix, self._entry_point, *solution):
            text, prefix = continued(prefix, text), ""
        module = tests.module if isinstance(tests, FunctionTests) else "solution"
        path = self.program.path or f"{module.replace('.', '/')}.py"
        more = {"prelude": getattr(tests, "prelude", "")}
        if not isinstance(tests, StdioTests):
            more |= {"prefix": prefix, "entry_point": self._entry_point}
        return encode_program({**tests.files, **self.program.others, path: text}, path, self.seed, **more)

    @property
    def _entry_point(self) -> str:
        """The name of the function that a completion defines by continuing the prefix."""
        tests = self.tests
        if isinstance(tests, AssertTests):
            return tests.entry_points[-1] if tests.entry_points else announced(tests.prefix)
        if isinstance(tests, FunctionTests):
            return tests.entry_point or announced(tests.prefix)
        return "" if isinstance(tests, StdioTests) else entry_point_steps(tests.entry_point)[0]

    def _tests(self) -> dict[str, object]:
        tests = self.tests
        common = {"seed": self.seed, "every_case": self.every_case, "prefix": getattr(tests, "prefix", "")}
        common |= {"entry_point": self._entry_point, "files": dict(tests.files)}
        if isinstance(tests, CheckTests):
            return common | {"kind": "check", "test": tests.test, "entry_point": tests.entry_point}
        if isinstance(tests, AssertTests):
            entry_points = tests.entry_points or tuple(filter(None, [self._entry_point]))
            sources = {"asserts": tests.asserts, "setup": tests.setup, "entry_points": entry_points}
            return common | {"kind": "asserts"} | sources
        if isinstance(tests, FunctionTests):
            return common | {"kind": "functions", "test": tests.test, "modules": (tests.module, *tests.modules)}
        assert isinstance(tests, CallTests)
        encode = functools.partial(_plain, packages=self.packages)
        cases = [[encode(case.args), encode(dict(case.kwargs)), encode(case.expected)] for case in tests.cases]
        comparison = {name: getattr(tests, name) for name in ("tolerance", "tuples_as_lists", "wrapped_outputs")}
        return common | {"kind": "calls", "cases": cases, "entry_point": tests.entry_point} | comparison


def _encoded(content: object) -> bytes:
    # Not in ASCII: as escapes, two adjacent lone surrogates would be decoded as one character.
    return json.dumps(content, ensure_ascii=False).encode("utf-8", "surrogatepass")


def _plain(value: object, *, packages: Collection[str]) -> Wire:
    """Encode one value of a call case separately, so that the values share no objects."""
    opaque = None
    if "numpy" in packages:
        from verifiers.unit_tests.separate import arrays

        opaque = arrays.encode
    try:
        return to_wire(value, opaque)
    except NotPlainError as error:
        raise InvalidArgumentError(
            f"a CallCase holds plain data (numbers, text, lists, dicts, dates, ...), got {_integers.shown(value)}: {error}"
        ) from error


def _report_lines(report: bytes) -> list[dict[str, Any]]:
    # The last line may have been cut short by a kill.
    lines = [without_surrogates(json.loads(line)) for line in report.split(b"\n")[:-1]]
    full = [{"failure": "output_limit", "reason": "the report is full"}] if len(report) >= MAX_REPORT else []
    return lines + full


def _read_report(lines: list[dict[str, Any]], ended: JobEnd, streams: Mapping[str, str]) -> JobResult:
    cases = [line for line in lines if "passed" in line]
    total = max([len(cases), *[line["total"] for line in lines if "total" in line][-1:]])
    end = lines[-1] if lines and "passed" not in lines[-1] and "total" not in lines[-1] else {}
    failure, reason = _failure(cases, end, ended)
    errored = failure == "broken_test" or (end.get("failure") == failure and end.get("broken") is True)
    detail: dict[str, object] = {"cases": tuple(_case_detail(case) for case in cases)}
    for source in (end, *(case for case in cases if not case["passed"])):
        if "exception" in source:
            detail["exception"] = _clean_exception(source["exception"])
            break
    if reason:
        detail["reason"] = clean(reason)
    passed = sum(case["passed"] for case in cases)
    return JobResult(failure, errored, passed, total, {**detail, **streams}, cost_of(ended, ended.processes["program"]))


def _clean_exception(exception: Mapping[str, Any]) -> dict[str, object]:
    return {name: clean(value) if isinstance(value, str) else value for name, value in exception.items()}


def _case_detail(case: Mapping[str, Any]) -> dict[str, object]:
    failure, exception = case.get("failure"), case.get("exception")
    detail: dict[str, object] = {"name": case["name"], "passed": not failure}
    if failure:
        detail |= {"failure": failure, "exception": exception and _clean_exception(exception)}
    return detail


def _failure(cases: Sequence[Mapping[str, Any]], end: Mapping[str, Any], ended: JobEnd) -> tuple[str | None, str]:
    """The class of failure or None, and a reason or ""; WorkerDiedError if the tests' process was killed from outside."""
    if ended.stopped == "cpu":
        return "timeout", "CPU time limit"
    if ended.stopped:
        return "timeout", f"{ended.stopped} time limit"
    tests_exit, program_exit = (ended.processes[role].exit_code for role in ("tests", "program"))
    if not end and tests_exit == -signal.SIGKILL:
        raise WorkerDiedError("the process of the tests was killed")
    if not end and tests_exit in _FAULTS:
        # Data crashed the interpreter, and the program can influence the data.
        return "crash", f"the process that runs the tests was ended by signal {-tests_exit}"
    if not end:
        # The program may have led the tests to end their process.
        return "unsupported", f"the tests end their process, with status {tests_exit}"
    if end.get("failure") == "exit":
        assert program_exit is not None, "it has been reaped"
        return _exit_failure(program_exit)
    if "failure" in end:
        return end["failure"], end.get("reason", "")
    if not cases:
        return "broken_test", "there are no tests"
    return next((case["failure"] for case in cases if not case["passed"]), None), ""


def _exit_failure(status: int) -> tuple[str, str]:
    """Classify the early end of a program by its exit status, which is negative for a signal."""
    if status == -signal.SIGXCPU:
        return "timeout", "CPU time limit"
    if status == -MEMORY:
        return "memory", "the program's objects leave no memory for an answer"
    if status in (-signal.SIGKILL, 0) or status > 0:
        # The server kills a candidate that has closed its channel but keeps running.
        return "exit", "the program ended itself or closed the channel to its tests"
    return "crash", f"killed by signal {-status}"


def _judged(run: ProgramOutput, tests: StdioTests, case: StdioCase, name: str) -> dict[str, Any]:
    failure = run.failure
    accepted = (case.expected, *case.alternatives)
    if failure is None and not any(matches(run.stdout, one, tests.comparison, tests.tolerance) for one in accepted):
        failure = "wrong_answer"
    return {"name": name, "failure": failure, "exception": run.exception, "streams": run.excerpts, "end": run.end}


def _not_run(name: str) -> dict[str, Any]:
    """The result of a case for which no time was left."""
    nothing = JobEnd("cpu", 0.0, {SCRIPT.name: ProcessEnd(0, 0.0, 0)})
    return {"name": name, "failure": "timeout", "exception": None, "streams": {}, "end": nothing}


def _summarise(runs: Sequence[Mapping[str, Any]], total: int) -> JobResult:
    failed = next((run for run in runs if run["failure"]), None)
    cases = tuple(_case_detail(run) for run in runs)
    passed = sum(not run["failure"] for run in runs)
    costs = [cost_of(run["end"], process_of(run["end"])) for run in runs]
    cost = {name: sum(cost[name] for cost in costs) for name in ("seconds", "cpu_seconds")}
    cost["bytes"] = max((cost["bytes"] for cost in costs), default=0.0)
    shown = failed or (runs[-1] if runs else {"streams": {}, "failure": "broken_test"})
    exception = {"exception": shown["exception"]} if shown.get("exception") else {}
    detail = {"cases": cases} | exception | shown["streams"]
    return JobResult(shown["failure"], not runs, passed, total, detail, cost)
