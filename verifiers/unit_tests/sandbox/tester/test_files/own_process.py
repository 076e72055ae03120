"""The tester of a job with arbitrary test code: test files, and asserts and checks that leave traces."""

from __future__ import annotations

import ast
import builtins
import errno
import functools
import importlib
import io
import json
import operator
import os
import sys
import types
from collections.abc import Collection, Iterator, Mapping
from typing import Any, NoReturn

from verifiers.sandbox.contract import CONTROL
from verifiers.sandbox.memory_files import read_all
from verifiers.sandbox.programs.source_files import SourceFiles, module_name

from ...protocol import packages
from ...protocol.channel import Channel
from ...protocol.packages import root_of
from ..analysis import name_resolution as resolution
from ..analysis.compilation import compile_tests
from ..report import UNSUPPORTED, JobEndedError, Report
from ..tester import Tester, provide_standard, run_job
from . import code_guard, pytest_api, unittest_api, waiting
from .collect import CollectedTest, collect
from .import_hook import ProgramFinder
from .patch_mirroring import Mirror


class OwnProcessTester(Tester):
    """Runs one job's tests, including test files, in a process that serves no job after it."""

    _mirror: Mirror

    def _begin(self) -> None:
        sources, session = [*_sources(self._tests)], self._session
        text = "\n".join(sources)
        code_guard.begin(lambda: session.has_answered, lambda: session.has_own_texts, sources, self._refuse_text)
        self._mirror = Mirror(self._session, text)
        self._session.around_request = self._mirror.held
        self._session.before_callback = self._mirror.take_output
        if "unittest" in text:
            unittest_api.prepare()
        if "catch_warnings" in text:
            unittest_api.refuse_recorded_warnings()
        sys.modules["pytest"] = pytest_api
        # The tests' `os`: this module has a copy of its own.
        sys.modules["os"].__dict__["_exit"] = _raise_exit
        waiting.install(self._session)
        if self._tests["files"]:
            sys.meta_path.append(SourceFiles(self._tests["files"]))
        self._mirror.watch()

    def _refuse_text(self, reason: str) -> NoReturn:
        self.report.end(failure=UNSUPPORTED, reason=reason)

    def _is_missing_name(self, error: BaseException) -> bool:
        modules = self._session.program_modules
        return super()._is_missing_name(error) or (
            isinstance(error, ImportError) and root_of(error.name or "") in modules
        )

    def _names_of_program(self, tree: ast.Module) -> Collection[str]:
        modules = set(self._session.program_modules)
        for _ in self._tests["files"]:  # one may import another that imports the program
            using = (path for path, text in self._tests["files"].items() if any(name in text for name in modules))
            modules |= {root_of(module_name(path)) for path in using}
        return {*super()._names_of_program(tree), *resolution.imported_names(tree, modules), *modules}

    def _functions(self) -> None:
        code = compile_tests(self._tests["test"])
        self._session.program_modules = frozenset(map(root_of, self._tests["modules"]))
        for name in self._session.program_modules & sys.modules.keys():
            raise ImportError(
                f"a module of the program is called like the package {name!r}, which the tests would import"
            )
        module = types.ModuleType("tests")
        if all(root_of(module_name(path)) != "tests" for path in self._tests["files"]):
            sys.modules["tests"] = module
        module.__dict__.update(self._trusted_namespace(drop=[self._tests["entry_point"]]))
        namespace = module.__dict__
        self._provide_for_star(namespace)
        tried = resolution.tried_lines(ast.parse(self._source))
        sys.meta_path.append(ProgramFinder(self._session, starred=self._required_names, tried=tried))
        self._run_test_code(code, namespace)
        self._mirror.watch()
        if not self._run_collected(self._collect(namespace)) and (self._session.has_answered or self._uses_program(0)):
            # Otherwise a program could have all its tests skipped, and not be judged.
            message = "every test was skipped because of what the program is or does"
            self.report.end(failure="wrong_answer", exception={"type": "Skipped", "message": message})

    def _provide_for_star(self, namespace: dict[str, Any]) -> None:
        """Resolve `from solution import *` from the tests alone, so that no program can influence it.

        A test file imports what it uses, so undefined names are the program's, except for builtins, modules of the standard
        library and comparison functions, unless the tests can mean nothing else.
        """
        tree = ast.parse(self._tests["test"])
        if self._session.program_modules.isdisjoint(resolution.starred_modules(tree)):
            return
        names = {name for name in resolution.free_names([self._source]) if not name.startswith("_")}
        own = {name for name in names if hasattr(builtins, name) or packages.judge(name) or name == "isclose"}
        own |= set(filter(resolution.module_called, resolution.names_with_attributes(tree)))
        standard = names & own if names - own else resolution.standard_names([self._source], names) & own
        self._required_names = names - standard
        self._programs |= names - standard
        provide_standard(namespace, standard - namespace.keys())

    def _collect(self, namespace: dict[str, Any]) -> list[CollectedTest]:
        try:
            conftest = vars(importlib.import_module("conftest")) if "conftest.py" in self._tests["files"] else {}
            return collect(namespace, conftest)
        except JobEndedError:
            raise
        except BaseException as error:  # noqa: BLE001 - recorded in the report
            self._blame(error)

    def _run_collected(self, cases: list[CollectedTest]) -> int:
        """Run the tests and return how many were not skipped."""
        total = len(cases)
        self.report.write(total=total)
        for case in cases:
            if not self._case(case.run, name=case.name):
                total -= 1
                self.report.write(total=total)
        return total


def _raise_exit(status: int) -> NoReturn:
    """Replace `os._exit`: if tests silently ended their process, a program that led them there would go unjudged."""
    raise SystemExit(status)


def _sources(tests: Mapping[str, Any]) -> Iterator[str]:
    """All test code, with the prompt's and, where test code can import them, the supplied files."""
    yield from (tests[name] for name in ("prefix", "test", "setup") if name in tests)
    yield from tests.get("asserts", ())
    yield from tests["files"].values() if "test" in tests else ()


def _refuse_to_open(descriptors: Collection[int]) -> None:
    """Make `open` find these descriptors closed: where tests open what a program returns, that could be the number of one."""
    really = io.open

    @functools.wraps(really)
    def open_other(file: Any, *args: Any, **kwargs: Any) -> Any:
        if hasattr(type(file), "__index__"):
            file = operator.index(file)
            if file in descriptors:
                raise OSError(errno.EBADF, os.strerror(errno.EBADF))
        return really(file, *args, **kwargs)

    for module in ("io", "builtins"):  # the tests': this module has a copy of the first
        sys.modules[module].__dict__["open"] = open_other


def run_alone(replies: int, requests: int, tests: int, report: int) -> NoReturn:
    """Run one job's tests, and end this process; the descriptors are pipes from and to the candidate, and two files."""
    content = json.loads(read_all(tests))
    _refuse_to_open({CONTROL, replies, requests, tests, report})
    run_job(OwnProcessTester(content, Channel(replies, requests), Report(report, ends_process=True)))
    raise AssertionError("a report ends the process")
