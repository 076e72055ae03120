"""Runs one program against one problem's tests on a worker, and reads the result from the report."""

from __future__ import annotations

import functools
import json
import os
import re
import signal
import zlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Any

from verifiers import _integers
from verifiers.errors import InvalidArgumentError
from verifiers.unit_tests.extraction.extraction import ExtractedProgram, announced, continues
from verifiers.unit_tests.host.pool import Pool, WorkerDiedError
from verifiers.unit_tests.host.portable import memory_file
from verifiers.unit_tests.host.stdio import matches
from verifiers.unit_tests.sandbox.protocol.codec import Encoder, NotPlainError, Wire
from verifiers.unit_tests.sandbox.protocol.entry_points import SOLUTION_CLASS, entry_point_steps
from verifiers.unit_tests.sandbox.protocol.exit_signals import FAILURES, MEMORY
from verifiers.unit_tests.sandbox.protocol.limits import Limits
from verifiers.unit_tests.sandbox.tester.report import MAX_REPORT, UNSUPPORTED
from verifiers.unit_tests.tests import AssertTests, CallTests, CheckTests, FunctionTests, StdioCase, StdioTests, Tests

_EXCERPT = 1000
_LOST = 3
"""Failing cases together may take this many times the limit of one case; after that no further case is run."""
_FAULTS = frozenset(-number for number in (signal.SIGSEGV, signal.SIGBUS, signal.SIGABRT, signal.SIGFPE, signal.SIGILL))
"""Exit statuses of a process whose interpreter has failed."""
_CUT = b"\n[...]\n"
_ERROR_LINE = re.compile(r"^(?P<type>\w+): (?P<message>.*?)(?: \((?P<file>[^()]*), line (?P<line>\d+)\))?\Z")
"""The exception that ended a script, as its process writes it in the last line of standard error."""
_ADDRESS = re.compile(r"0x[0-9a-fA-F]{6,}")


@dataclass(frozen=True, slots=True)
class JobResult:
    """The result of one program."""

    failure: str | None
    """The class of the first failure, None if every case passed."""
    errored: bool
    """Whether the tests are broken or need something unsupported whatever the program does, so that it can't be judged."""
    passed: int
    total: int
    detail: Mapping[str, object]
    cost: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Job:
    """One program and its tests."""

    program: ExtractedProgram
    tests: Tests
    seed: str
    limits: Limits
    every_case: bool
    """Whether to continue after a case that failed."""
    packages: Collection[str]
    """Modules that can be imported: arrays may be sent if NumPy is one of them, frames if pandas is."""

    def run(self, pool: Pool) -> JobResult:
        """Run the program on a worker, which is lent only while the program and its tests run.

        Raises:
            WorkerDiedError: If the worker's server ended, or its tester was killed.
            InvalidArgumentError: If the tests contain values that can't be sent to a program.
        """
        return self._run_script(pool, self.tests) if isinstance(self.tests, StdioTests) else self._run_tested(pool)

    def _run_tested(self, pool: Pool) -> JobResult:
        program, tests = self._program(), _encoded(self._tests())
        with _files(b"", b"", b"", program, tests, b"") as files:
            with pool.worker() as worker:
                answer = worker.run(_request(self.limits, tested=True), files, self.limits.wall_s)
            streams = _streams(files)
            report = os.pread(files[5], min(os.fstat(files[5]).st_size, MAX_REPORT), 0)
        return _read_report(_report_lines(report), answer, streams)

    def _run_script(self, pool: Pool, tests: StdioTests) -> JobResult:
        runs: list[dict[str, Any]] = []
        lost = 0.0
        for number, case in enumerate(tests.cases):
            name = f"case {number}"
            runs.append(self._run_case(pool, tests, case, name) if lost < _LOST * self.limits.cpu_s else _not_run(name))
            lost += self._lost(runs[-1])
            if runs[-1]["failure"] and not self.every_case:
                break
        return _summarise(runs, len(tests.cases))

    def _lost(self, run: Mapping[str, Any]) -> float:
        """The seconds that a case wasted, 0 if it passed."""
        if not run["failure"]:
            return 0.0
        return self.limits.cpu_s if run["answer"]["stopped"] else float(run["answer"]["candidate"]["cpu_s"])

    def _run_case(self, pool: Pool, tests: StdioTests, case: StdioCase, name: str) -> dict[str, Any]:
        output, streams, answer = run_script(pool, self.limits, self._program(), case.stdin)
        failure = script_failure(answer, len(output) >= self.limits.output_mib << 20)
        text = output.decode(errors="replace")
        accepted = (case.expected, *case.alternatives)
        if failure is None and not any(matches(text, one, tests.comparison, tests.tolerance) for one in accepted):
            failure = "wrong_answer"
        exception = _script_exception(streams) if answer["candidate"]["exit"] in FAILURES else None
        return {"name": name, "failure": failure, "exception": exception, "streams": streams, "answer": answer}

    def _program(self) -> bytes:
        tests = self.tests
        prefix, text = getattr(tests, "prefix", ""), self.program.text
        solution = (SOLUTION_CLASS,) if isinstance(tests, CallTests) else ()
        if prefix and continues(text, prefix, self._entry_point, *solution):
            text, prefix = _continued(prefix, text), ""
        alias = tests.module if isinstance(tests, FunctionTests) else ""
        path = self.program.path or f"{(alias or 'solution').replace('.', '/')}.py"
        content = _script(path, {**tests.files, **self.program.others, path: text}, self.seed)
        content |= {"prefix": prefix, "prelude": getattr(tests, "prelude", "")}
        return _encoded(content | {"entry_point": self._entry_point, "alias": alias})

    @property
    def _entry_point(self) -> str:
        """The function that a completion defines by continuing the prefix."""
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


def run_script(
    pool: Pool, limits: Limits, program: bytes, stdin: str
) -> tuple[bytes, Mapping[str, str], Mapping[str, Any]]:
    """Run an encoded program by itself; gives its standard output, excerpts of both streams, and the worker's answer."""
    with _files(stdin.encode(), b"", b"", program) as files:
        with pool.worker() as worker:
            answer = worker.run(_request(limits, tested=False), files, limits.wall_s)
        return os.pread(files[1], os.fstat(files[1]).st_size, 0), _streams(files), answer


def _script(main: str, files: Mapping[str, str], seed: str) -> dict[str, object]:
    # The seed is a number, since each child would pay for deriving one from a string.
    return {"files": dict(files), "main": main, "seed": zlib.crc32(seed.encode("utf-8", "surrogatepass"))}


def encode_script(text: str, seed: str) -> bytes:
    """Encode a program of one file, which runs by itself."""
    return _encoded(_script("solution.py", {"solution.py": text}, seed))


@functools.lru_cache(8)
def _request(limits: Limits, *, tested: bool) -> bytes:
    return json.dumps({"tested": tested, "limits": asdict(limits)}).encode()


def _encoded(content: object) -> bytes:
    # Not in ASCII: as escapes, two lone surrogates side by side would become one character.
    return json.dumps(content, ensure_ascii=False).encode("utf-8", "surrogatepass")


def _continued(prefix: str, source: str) -> str:
    # A prompt may end with the indentation of the next line, which a completion continues or repeats.
    goes_on = prefix.endswith((" ", "\t")) and not prefix.rpartition("\n")[2].strip() and not source[:1].isspace()
    joint = "" if goes_on or not prefix or prefix.endswith("\n") or source.startswith("\n") else "\n"
    return prefix + joint + source


def _plain(value: object, *, packages: Collection[str]) -> Wire:
    """Encode one value of a call case, separately, so that values share nothing."""
    encoder = Encoder(lambda other: _of_package(encoder, other, packages))
    try:
        return encoder.encode(value)
    except NotPlainError as error:
        raise InvalidArgumentError(
            f"a CallCase holds plain data (numbers, text, lists, dicts, dates, ...), got {_integers.shown(value)}: {error}"
        ) from error


def _of_package(encoder: Encoder, value: object, packages: Collection[str]) -> Wire:
    """Encode a value of NumPy or pandas; None if it is not one, or may not be sent."""
    wire = None
    if "numpy" in packages:
        from verifiers.unit_tests.sandbox.protocol import arrays

        wire = arrays.encode_or_none(encoder, value)
    if wire is None and "pandas" in packages:
        from verifiers.unit_tests.sandbox.protocol import frames

        wire = frames.encode_or_none(encoder, value)
    return wire


@contextmanager
def _files(*contents: bytes) -> Iterator[list[int]]:
    """Files in memory with these contents, closed at the end."""
    files: list[int] = []
    try:
        for content in contents:
            files.append(memory_file("job"))
            if content:
                with os.fdopen(files[-1], "wb", closefd=False) as file:
                    file.write(content)
                os.lseek(files[-1], 0, os.SEEK_SET)
        yield files
    finally:
        for descriptor in files:
            os.close(descriptor)


def _streams(files: Sequence[int]) -> dict[str, str]:
    texts = {"stdout": _excerpt(files[1]), "stderr": _excerpt(files[2])}
    return {name: clean(text.decode(errors="replace")) for name, text in texts.items() if text}


def _excerpt(file: int) -> bytes:
    """The beginning and the end of a file."""
    size = os.fstat(file).st_size
    if size <= _EXCERPT:
        return os.pread(file, _EXCERPT, 0)
    half = _EXCERPT // 2
    return os.pread(file, half, 0) + _CUT + os.pread(file, half, size - half)


def clean(text: str) -> str:
    """Drop memory addresses, which differ from run to run, from a text."""
    return _ADDRESS.sub("0x...", text)


def _report_lines(report: bytes) -> list[dict[str, Any]]:
    # The last line may have been cut short by a kill.
    lines = [_without_surrogates(json.loads(line)) for line in report.split(b"\n")[:-1]]
    full = [{"failure": "output_limit", "reason": "the report is full"}] if len(report) >= MAX_REPORT else []
    return lines + full


def _without_surrogates(value: Any) -> Any:
    """Plain data with lone surrogates escaped, which a program may have in messages and names and UTF-8 can't encode."""
    if isinstance(value, str):
        return value if value.isascii() else value.encode("utf-8", "backslashreplace").decode()
    if isinstance(value, list):
        return [_without_surrogates(item) for item in value]
    if isinstance(value, dict):
        return {_without_surrogates(key): _without_surrogates(item) for key, item in value.items()}
    return value


def _read_report(lines: list[dict[str, Any]], answer: Mapping[str, Any], streams: Mapping[str, str]) -> JobResult:
    waiting = sum(line["waiting"] for line in lines if "waiting" in line)
    lines = [line for line in lines if "waiting" not in line]
    cases = [line for line in lines if "passed" in line]
    total = max([len(cases), *[line["total"] for line in lines if "total" in line][-1:]])
    end = lines[-1] if lines and "passed" not in lines[-1] and "total" not in lines[-1] else {}
    failure, reason = _failure(cases, end, answer)
    errored = failure == "broken_test" or (end.get("failure") == failure and end.get("broken") is True)
    if answer["stopped"] == "idle" and waiting:
        failure, reason = UNSUPPORTED, _BLOCKED
    detail: dict[str, object] = {"cases": tuple(_case_detail(case) for case in cases)}
    for source in (end, *(case for case in cases if not case["passed"])):
        if "exception" in source:
            detail["exception"] = _clean_exception(source["exception"])
            break
    if reason:
        detail["reason"] = clean(reason)
    passed = sum(case["passed"] for case in cases)
    return JobResult(failure, errored, passed, total, {**detail, **streams}, _cost(answer))


_BLOCKED = (
    "the job stood still while one thread of the tests waited for the answer to another's call: "
    "a program answers one call at a time, so calls that wait for each other are not supported"
)


def _clean_exception(exception: Mapping[str, Any]) -> dict[str, object]:
    return {name: clean(value) if isinstance(value, str) else value for name, value in exception.items()}


def _case_detail(case: Mapping[str, Any]) -> dict[str, object]:
    failure, exception = case.get("failure"), case.get("exception")
    detail: dict[str, object] = {"name": case["name"], "passed": not failure}
    if failure:
        detail |= {"failure": failure, "exception": exception and _clean_exception(exception)}
    return detail


def _failure(
    cases: Sequence[Mapping[str, Any]], end: Mapping[str, Any], answer: Mapping[str, Any]
) -> tuple[str | None, str]:
    """The class of failure, or None, and a reason or nothing; WorkerDiedError if the tester was killed from outside."""
    if answer["stopped"] == "cpu":
        return "timeout", "CPU time limit"
    if answer["stopped"]:
        return "timeout", f"{answer['stopped']} time limit"
    if not end and answer["tester_exit"] == -signal.SIGKILL:
        raise WorkerDiedError("the tester was killed")
    if not end and answer["tester_exit"] in _FAULTS:
        # Data crashed the interpreter, and the program can influence the data.
        return "crash", f"the process that runs the tests was ended by signal {-answer['tester_exit']}"
    if not end:
        return "broken_test", f"the tester ended with status {answer['tester_exit']}"
    if end.get("failure") == "exit":
        return _exit_failure(answer["candidate"]["exit"])
    if "failure" in end:
        return end["failure"], end.get("reason", "")
    if not cases:
        return "broken_test", "there are no tests"
    return next((case["failure"] for case in cases if not case["passed"]), None), ""


def _exit_failure(status: int) -> tuple[str, str]:
    """Classify the early end of a program by its exit status, negative for a signal."""
    if status == -signal.SIGXCPU:
        return "timeout", "CPU time limit"
    if status == -MEMORY:
        return "memory", "the program's objects leave no memory for an answer"
    if status in (-signal.SIGKILL, 0) or status > 0:
        # The server kills a candidate that has closed its channel but keeps running.
        return "exit", "the program ended itself or closed the channel to its tests"
    return "crash", f"killed by signal {-status}"


def _not_run(name: str) -> dict[str, Any]:
    """The result of a case for which no time was left."""
    nothing = {"stopped": "cpu", "seconds": 0.0, "candidate": {"exit": 0, "cpu_s": 0.0, "memory_bytes": 0}}
    return {"name": name, "failure": "timeout", "exception": None, "streams": {}, "answer": nothing}


def script_failure(answer: Mapping[str, Any], output_full: bool) -> str | None:
    """Say in which class a program by itself failed, None if it did not."""
    status = answer["candidate"]["exit"]
    if answer["stopped"] or status == -signal.SIGXCPU:
        return "timeout"
    if output_full:
        return "output_limit"
    if status == 0:
        return None
    return FAILURES.get(status, "crash" if status < 0 else "exit")


def _script_exception(streams: Mapping[str, str]) -> dict[str, object] | None:
    """The exception that ended a script, from its standard error; None if it is not found."""
    lines = streams.get("stderr", "").rstrip("\n").split("\n")
    match = _ERROR_LINE.match(lines[-1])
    if match is None:
        return None
    line = match["line"]
    return match.groupdict() | {"line": None if line is None else int(line)}


def _summarise(runs: Sequence[Mapping[str, Any]], total: int) -> JobResult:
    failed = next((run for run in runs if run["failure"]), None)
    cases = tuple(_case_detail(run) for run in runs)
    passed = sum(not run["failure"] for run in runs)
    costs = [_cost(run["answer"]) for run in runs]
    cost = {name: sum(cost[name] for cost in costs) for name in ("seconds", "cpu_seconds")}
    cost["bytes"] = max((cost["bytes"] for cost in costs), default=0.0)
    shown = failed or (runs[-1] if runs else {"streams": {}, "failure": "broken_test"})
    exception = {"exception": shown["exception"]} if shown.get("exception") else {}
    detail = {"cases": cases} | exception | shown["streams"]
    return JobResult(shown["failure"], not runs, passed, total, detail, cost)


def _cost(answer: Mapping[str, Any]) -> dict[str, float]:
    return {
        "seconds": answer["seconds"],
        "cpu_seconds": answer["candidate"]["cpu_s"],
        "bytes": float(answer["candidate"]["memory_bytes"]),
    }
