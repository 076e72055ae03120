"""Runs a program and its test file with pytest in one process of the jail; says from pytest's report and exit why it failed."""

from __future__ import annotations

import builtins
import contextlib
import json
import os
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from verifiers.errors import InvalidArgumentError, MissingDependencyError
from verifiers.sandbox import (
    Command,
    Contract,
    JobEnd,
    Limits,
    Packages,
    Plan,
    Pool,
    Role,
    UnplacedFilesError,
    clean,
    encode_request,
    excerpts,
    find_packages,
    folder_on_disk,
    memory_files,
    module_name,
    read_answer,
)
from verifiers.unit_tests.extraction.extraction import ExtractedProgram, continued, continues
from verifiers.unit_tests.results import JobResult, cost_of, process_of, without_surrogates
from verifiers.unit_tests.separate import imports, names
from verifiers.unit_tests.separate.report import MAX_REPORT
from verifiers.unit_tests.tests import FunctionTests
from verifiers.unit_tests.together.inspection import FAILS, LEFT_OUT, RAISES

_IN_JAIL = "verifiers.unit_tests.together"
_ROLE = Role("together", f"{_IN_JAIL}.run:run", confines_itself=True)
_CONTRACT = Contract(_IN_JAIL, (_ROLE,), prepare=f"{_IN_JAIL}.run:prepare")
_FILES = ("stdin", "stdout", "stderr", "request", "answer", "results")
_PLAN = Plan(_FILES, ((_ROLE.name, _FILES),))
_TEST_FILE = "test_file.py"
_PROGRAMS = ("/bin", "/usr/bin")
"""Folders of the programs that a test file may start."""
_COMMAND = Command((), folder_mib=64, folder_files=1024, processes=32)
_MOST_TESTS, _MOST_LINES, _MOST_INSPECTIONS = 10_000, 100_000, 256
_TEXT = 2000
_BEFORE_TESTS = (3, 4)
"""Exit statuses of pytest for an error outside of tests, such as `sys.exit()`, and for an error in a `conftest.py`."""
_SAME = "import importlib, sys\nsys.modules[__name__] = importlib.import_module({!r})\n"
"""Source of a file that gives a module a second name."""
_DEFINING = ("NameError", "exec(", "eval(", "globals(", "builtins")
_ALWAYS = frozenset({*dir(builtins), "__builtins__", "__file__"})
"""Names that every module has."""


def packages_with_pytest(packages: str | Sequence[str]) -> Packages:
    """The packages that a server needs: pytest and the requested ones.

    Raises:
        MissingDependencyError: If pytest is not installed.
    """
    names = packages.split(",") if isinstance(packages, str) else packages
    try:
        return find_packages(["pytest", *(name for name in names if name.strip())])
    except InvalidArgumentError as error:
        raise MissingDependencyError(
            f"tests that run together with the program need pytest: `pip install 'rlvr-envs[pytest]'` ({error})"
        ) from error


def pool_of(size: int, packages: Packages) -> Pool:
    """Fork servers that have loaded pytest and the packages; their children, but not the servers, enter jails."""
    return Pool(size, "none", packages, _CONTRACT)


@dataclass(frozen=True, slots=True)
class TogetherJob:
    """One program and the test file that pytest runs with it."""

    program: ExtractedProgram
    tests: FunctionTests
    seed: str
    limits: Limits
    isolation: str
    readable: Sequence[str]
    """Paths of the packages, which the process may read."""
    inspections: dict[object, JobResult | Mapping[str, str]]
    """Results of earlier inspections, by test file: why the file is broken, or the expected outcomes of its tests."""

    def run(self, pool: Pool) -> JobResult:
        """Run the file on a worker.

        Raises:
            WorkerDiedError: If the worker's server ended.
            SandboxUnavailableError, LaunchError: As for `CommandRunner`.
        """
        key = (self.tests.test, self.tests.module, self.tests.modules, *self.tests.files.items())
        if len(self.inspections) >= _MOST_INSPECTIONS:
            self.inspections.clear()
        found = self.inspections.get(key)
        if found is None:
            found = self._inspect(pool, key)
        if isinstance(found, JobResult):
            return found
        try:
            return _result(self._run(pool, self._files()), found)
        except UnplacedFilesError as error:  # the inspection has placed the problem's own files
            detail = {"cases": (), "tests": "together", "reason": clean(str(error))}
            return JobResult("output_limit", False, 0, len(found), detail, {})

    def _inspect(self, pool: Pool, key: object) -> JobResult | Mapping[str, str]:
        """Collect the tests without the program, which is replaced by a file from which any name can be imported."""
        tests, modules = self.tests, (self.tests.module, *self.tests.modules)
        absent = (Path(__file__).parent / "together" / "absent.py").read_text(encoding="utf-8")
        content = {**tests.files, **{_path_of(name): absent for name in modules}, _TEST_FILE: tests.test}
        try:
            run = self._run(pool, content, {"modules": [*modules, *map(module_name, tests.files)]})
        except UnplacedFilesError as error:
            return JobResult(
                "broken_test", True, 0, 0, {"cases": (), "tests": "together", "reason": clean(str(error))}, {}
            )
        told = {name: line[name] for line in reversed(run.lines or ()) for name in line}
        expected = {line["test"]: line["expected"] for line in run.lines or () if "test" in line}
        broken = str(told.get("broken", ""))
        if not broken and "needed" not in told:
            broken = _unusable(run, told, [*expected.values()].count(LEFT_OUT))
        broken = broken or _undefined(tests.test)
        detail = {"cases": (), "tests": "together", "reason": clean(broken), **run.streams}
        found = JobResult("broken_test", True, 0, 0, detail, {}) if broken else expected
        if not run.end.stopped:  # another run need not be stopped
            self.inspections[key] = found
        return found

    def _run(self, pool: Pool, content: Mapping[str, str], more: Mapping[str, object] = MappingProxyType({})) -> _Run:
        seed = zlib.crc32(self.seed.encode("utf-8", "surrogatepass"))
        own = {"test": _TEST_FILE, "seed": seed, "has_conftest": "conftest.py" in self.tests.files, **more}
        sources = {name: source.encode("utf-8", "surrogatepass") for name, source in content.items()}
        command = replace(_COMMAND, files=sources, readable=(*self.readable, *_PROGRAMS))
        with folder_on_disk() as folder, memory_files(b"", b"", b"", b"", b"", b"") as files:
            os.pwrite(files[3], encode_request(command, self.limits, self.isolation, folder, own), 0)
            with pool.worker() as worker:
                end = worker.run(_PLAN, files, self.limits)
            layers, ended, _ = read_answer(os.pread(files[4], MAX_REPORT, 0), end)
            lines, streams = _lines(os.pread(files[5], MAX_REPORT, 0)), excerpts(files[1], files[2])
        return _Run(lines, ended.get("status"), end, {**streams, "isolation": "+".join(layers) or "none"})

    def _files(self) -> dict[str, str]:
        tests, program = self.tests, self.program
        prefix, text = tests.prefix, program.text
        if prefix:
            goes_on = continues(text, prefix, *filter(None, [tests.entry_point]))
            text = continued(prefix, text) if goes_on else f"{prefix}\n\n{text}"
        own = _path_of(tests.module)
        path = program.path or own
        files = {name: source for name, source in program.others.items() if not name.endswith("conftest.py")}
        main = {path: text}
        # One module under two names, the completion's and the tests'. In a folder it may import neighbours by relative names.
        if module_name(path) != tests.module and "/" in path and path not in tests.files:
            main[own] = _SAME.format(module_name(path))
        elif module_name(path) != tests.module:
            main, files[path] = {own: text}, _SAME.format(tests.module)
        # A program replaces none of the problem's other files.
        return {**files, **tests.files, **main, _TEST_FILE: tests.test}


class _Run(NamedTuple):
    """How a run ended: the reported lines (None if there are more than pytest reports), and the end of the process."""

    lines: Sequence[Mapping[str, Any]] | None
    status: int | None
    end: JobEnd
    streams: Mapping[str, str]


def _path_of(module: str) -> str:
    return f"{module.replace('.', '/')}.py"


def _undefined(test: str) -> str:
    """An error about names that nothing defines; empty if the file may define or expect names while it runs."""
    hidden = "*" in imports.imported(test) or any(word in test for word in _DEFINING)
    undefined = () if hidden else names.free_names([test]) - _ALWAYS
    return f"names that nothing defines: {', '.join(sorted(undefined))}" if undefined else ""


def _unusable(run: _Run, told: Mapping[str, Any], left_out: int) -> str:
    """Why a test file can't be used although it reported no error; empty if it can be used."""
    status, total = told.get("status"), told.get("total", 0)
    if status is None:
        return f"the test file ends pytest when it is imported: {run.end.stopped or run.status}"
    if status in _BEFORE_TESTS:
        return f"pytest can't use the problem's files: {run.streams.get('stderr', '')}"
    if total > _MOST_TESTS:
        return f"there are more than {_MOST_TESTS} tests"
    return "pytest finds no tests, or skips them all" if total == left_out else ""


def _lines(results: bytes) -> list[dict[str, Any]] | None:
    """The lines that have the reporter's form, since a program can write other lines; None if there are too many."""
    if len(results) >= MAX_REPORT or results.count(b"\n") > _MOST_LINES:
        return None
    lines = []
    for line in results.split(b"\n")[:-1]:
        with contextlib.suppress(ValueError, RecursionError):
            content = json.loads(line)
            if isinstance(content, dict) and all(map(_is_flat, content.values())):
                lines.append(content)
    return lines


def _result(run: _Run, expected: Mapping[str, str]) -> JobResult:
    lines = run.lines or ()
    named = (name for line in lines for name in _list(line.get("collected")) if isinstance(name, str))
    phases: dict[str, list[Mapping[str, Any]]] = {name: [] for name in named if expected.get(name) != LEFT_OUT}
    for line in lines:
        if isinstance(line.get("test"), str) and line["test"] in phases:
            phases[line["test"]].append(line)
    is_full = run.lines is None or len(phases) > _MOST_TESTS
    cases = () if is_full else tuple(_case(name, own, expected.get(name)) for name, own in phases.items())
    failure, reason = _failure(run, lines, cases, is_full)
    passed = 0 if failure in _OF_THE_WHOLE else sum(bool(case["passed"]) for case in cases)
    detail: dict[str, object] = {"cases": cases, "tests": "together", **({"reason": _plain(reason)} if reason else {})}
    cost = cost_of(run.end, process_of(run.end))
    return JobResult(failure, False, passed, len(cases), {**detail, **run.streams}, cost)


_OF_THE_WHOLE = frozenset({"exit", "crash", "replaced"})
"""Failures after which no report is trusted."""


def _failure(
    run: _Run, lines: Sequence[Mapping[str, Any]], cases: Sequence[Mapping[str, object]], is_full: bool
) -> tuple[str | None, str]:
    """The class of failure and its reason; None and an empty text if the run did not fail."""
    status, end = run.status, run.end
    if end.stopped:
        return ("memory" if end.stopped == "memory" else "timeout"), f"{end.stopped} limit"
    if status is not None and status < 0:
        return "crash", f"killed by signal {-status}"
    if is_full:
        return "output_limit", "more is reported than pytest does"
    last = lines[-1] if lines else {}
    if status != 0 or "status" not in last:
        return "exit", "the process ended before pytest did"
    if replaced := _list(last.get("changed")):
        return "replaced", f"other functions than before: {', '.join(map(_plain, replaced[:5]))}"
    if broken := next((line for line in lines if "not_collected" in line), None):
        return "exception", str(broken.get("text"))
    if not cases:
        return "exception", "pytest found no tests"
    failed = next((case for case in cases if not case["passed"]), None)
    if failed is not None:
        return str(failed["failure"]), ""
    return (None, "") if last["status"] == 0 else ("exit", f"pytest ended with status {last['status']}")


def _case(name: str, phases: Sequence[Mapping[str, Any]], expected: str | None) -> dict[str, object]:
    """The result of a test: it has passed if all phases were reported and each has passed or has failed as expected."""
    fine = ("passed", *{RAISES: ("expected",), FAILS: ("expected", "called off")}.get(expected or "", ()))
    worst = next((phase for phase in phases if phase.get("outcome") not in fine), None)
    whens = {str(phase.get("when")) for phase in phases}
    # After a set-up that fails as expected there is no call.
    if any(phase.get("when") == "setup" and phase.get("outcome") != "passed" for phase in phases):
        whens.add("call")
    name = _plain(name)
    if worst is None and whens == {"setup", "call", "teardown"}:
        return {"name": name, "passed": True}
    if worst is None:
        return {"name": name, "passed": False, "failure": "exit", "exception": None}
    text = _plain(worst.get("text", ""))
    failure = "exception" if worst.get("outcome") == "failed" else "skipped"
    if failure == "exception" and text.startswith(("assert", "AssertionError", "Failed", "[XPASS")):
        failure = "wrong_answer"
    return {"name": name, "passed": False, "failure": failure, "exception": {"message": text}}


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def _is_flat(value: object) -> bool:
    return (
        all(isinstance(item, str | int) for item in value) if isinstance(value, list) else isinstance(value, str | int)
    )


def _plain(text: object) -> str:
    """A text from a report as a plain string; a program may have written anything there."""
    return str(without_surrogates(clean(str(text)[:_TEXT])))
