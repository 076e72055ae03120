"""Runs a program and its test file in one process of the jail, by pytest itself, and reads what it reports."""

from __future__ import annotations

import contextlib
import json
import os
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

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
    clean,
    encode_request,
    excerpts,
    find_packages,
    folder_on_disk,
    memory_files,
    read_answer,
)
from verifiers.unit_tests.extraction.extraction import ExtractedProgram, continued, continues
from verifiers.unit_tests.results import JobResult, cost_of, process_of, without_surrogates
from verifiers.unit_tests.separate.report import MAX_REPORT
from verifiers.unit_tests.tests import FunctionTests

_IN_JAIL = "verifiers.unit_tests.together"
_ROLE = Role("together", f"{_IN_JAIL}.run:run", confines_itself=True)
_CONTRACT = Contract(_IN_JAIL, (_ROLE,), prepare=f"{_IN_JAIL}.run:prepare")
_FILES = ("stdin", "stdout", "stderr", "request", "answer", "results")
_PLAN = Plan(_FILES, ((_ROLE.name, _FILES),))
_TEST_FILE = "test_file.py"
_PROGRAMS = ("/bin", "/usr/bin")
"""Which a test file may start."""
_FOLDER_MIB, _FOLDER_FILES, _PROCESSES = 64, 1024, 32


def packages_with_pytest(packages: str | Sequence[str]) -> Packages:
    """The packages that a server needs.

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
    """Fork servers that have loaded pytest and the packages; they are in no jail, each of their children enters one."""
    return Pool(size, "none", packages, _CONTRACT)


@dataclass(frozen=True, slots=True)
class TogetherJob:
    """One program and its test file."""

    program: ExtractedProgram
    tests: FunctionTests
    seed: str
    limits: Limits
    every_case: bool
    isolation: str
    readable: Sequence[str]
    """Paths of the packages."""

    def run(self, pool: Pool) -> JobResult:
        """Run the file on a worker.

        Raises:
            WorkerDiedError: If the worker's server ended.
            SandboxUnavailableError, LaunchError: As for `CommandRunner`.
        """
        own = {
            "test": _TEST_FILE,
            "seed": zlib.crc32(self.seed.encode("utf-8", "surrogatepass")),
            "has_conftest": "conftest.py" in self.tests.files,
        }
        command = Command(
            (),
            self._files(),
            readable=(*self.readable, *_PROGRAMS),
            folder_mib=_FOLDER_MIB,
            folder_files=_FOLDER_FILES,
            processes=_PROCESSES,
        )
        with folder_on_disk() as folder, memory_files(b"", b"", b"", b"", b"", b"") as files:
            os.pwrite(files[3], encode_request(command, self.limits, self.isolation, folder, own), 0)
            with pool.worker() as worker:
                end = worker.run(_PLAN, files, self.limits)
            layers, ended, _ = read_answer(os.pread(files[4], MAX_REPORT, 0), end)
            results = os.pread(files[5], MAX_REPORT, 0)
            streams = excerpts(files[1], files[2])
        streams["isolation"] = "+".join(layers) or "none"
        return _result(list(_lines(results)), ended.get("status"), end, streams)

    def _files(self) -> dict[str, bytes]:
        tests, program = self.tests, self.program
        prefix, text = tests.prefix, program.text
        if prefix:
            goes_on = continues(text, prefix, *filter(None, [tests.entry_point]))
            text = continued(prefix, text) if goes_on else f"{prefix}\n\n{text}"
        path = program.path or f"{tests.module.replace('.', '/')}.py"
        others = {name: source for name, source in program.others.items() if not name.endswith("conftest.py")}
        # The problem's own files last: a program replaces none of them.
        content = {**others, path: text, **tests.files, _TEST_FILE: tests.test}
        return {name: source.encode("utf-8", "surrogatepass") for name, source in content.items()}


def _lines(results: bytes) -> list[dict[str, Any]]:
    """The lines that are what the reporter writes; a program can write others."""
    lines = []
    for line in results.split(b"\n")[:-1]:
        with contextlib.suppress(ValueError, RecursionError):
            content = json.loads(line)
            if isinstance(content, dict):
                lines.append(without_surrogates(content))
    return lines


def _result(
    lines: Sequence[Mapping[str, Any]], status: int | None, end: JobEnd, streams: Mapping[str, str]
) -> JobResult:
    names = [str(name) for line in lines for name in _list(line.get("collected"))]
    cases = tuple(_case(name, [line for line in lines if line.get("test") == name]) for name in dict.fromkeys(names))
    failure, reason = _failure(lines, cases, status, end)
    passed = 0 if failure in _OF_THE_WHOLE else sum(bool(case["passed"]) for case in cases)
    detail: dict[str, object] = {"cases": cases, "tests": "together", **({"reason": clean(reason)} if reason else {})}
    return JobResult(failure, False, passed, len(cases), {**detail, **streams}, cost_of(end, process_of(end)))


_OF_THE_WHOLE = frozenset({"exit", "crash", "replaced"})
"""Failures after which no report is believed."""


def _failure(
    lines: Sequence[Mapping[str, Any]], cases: Sequence[Mapping[str, object]], status: int | None, end: JobEnd
) -> tuple[str | None, str]:
    """The class of failure, or None, and a reason or nothing."""
    if end.stopped:
        return ("memory" if end.stopped == "memory" else "timeout"), f"{end.stopped} limit"
    if status is not None and status < 0:
        return "crash", f"killed by signal {-status}"
    last = lines[-1] if lines else {}
    if status != 0 or "status" not in last:
        return "exit", "the process ended before pytest did"
    if replaced := _list(last.get("changed")):
        return "replaced", f"other functions than before: {', '.join(map(str, replaced[:5]))}"
    if broken := next((line for line in lines if "not_collected" in line), None):
        return "exception", str(broken.get("text"))
    if not cases:
        return "exception", "pytest found no tests"
    failed = next((case for case in cases if not case["passed"]), None)
    if failed is not None:
        return str(failed["failure"]), ""
    return (None, "") if last["status"] == 0 else ("exit", f"pytest ended with status {last['status']}")


def _case(name: str, phases: Sequence[Mapping[str, Any]]) -> dict[str, object]:
    """A test, which has passed if each of its phases has, and all are named."""
    worst = next((phase for phase in phases if phase.get("outcome") != "passed"), None)
    if worst is None and {str(phase.get("when")) for phase in phases} == {"setup", "call", "teardown"}:
        return {"name": name, "passed": True}
    if worst is None:
        return {"name": name, "passed": False, "failure": "exit", "exception": None}
    text = clean(str(worst.get("text", "")))
    failure = "skipped" if worst.get("outcome") == "skipped" else _class_of(text)
    return {"name": name, "passed": False, "failure": failure, "exception": {"message": text}}


def _class_of(text: str) -> str:
    return "wrong_answer" if text.startswith(("assert", "AssertionError", "Failed")) else "exception"


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []
