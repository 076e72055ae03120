"""The role in which pytest runs a test file with the program, and reports on a channel that was opened beforehand."""

from __future__ import annotations

import builtins
import gc
import importlib
import io
import json
import os
import pathlib
import random
import sys
import tempfile
from collections.abc import Generator, Mapping
from typing import Any

from verifiers.sandbox.programs.command import close_answer, run_in_folder

from .identity import changed, functions
from .inspection import Inspector

_RESULTS = 4
"""The descriptor of the results in the confined process."""
_ALSO_LOADED = """
csv doctest logging.handlers pathlib pdb pprint shutil sqlite3 subprocess tempfile unittest.mock urllib.request
xml.etree.ElementTree zipfile
"""
"""Modules that tests commonly import, besides pytest's own plugins."""
_RECURSION = 200
"""Number of stack frames that pytest uses below a test."""
_OPTIONS = ("--assert=plain", "-p", "no:terminal", "-p", "no:cacheprovider", "-c", os.devnull)
"""Options of pytest; there is no terminal report, since it would hold paths of the machine and times."""
_EXCEPTION = 2000
_SAMPLE = """
import unittest
import pytest

@pytest.fixture
def three():
    return 3

@pytest.mark.parametrize("number", [3, 4])
def test_number(number, three):
    assert number == three

class TestMore(unittest.TestCase):
    def test_more(self):
        self.assertEqual(1, 1)
"""
# Bound once, since a program may replace them.
_write, _exit, _dumps, _open = os.write, os._exit, json.dumps, io.open
_before: list[Any] = []
_configs: list[Any] = []
"""A configuration of pytest with its plugins registered; every session needs one, and making one takes a third of its time."""


def prepare(packages: Mapping[str, Any]) -> None:
    """Load the parts of pytest that each file needs, and record pytest's functions."""
    command = importlib.import_module("verifiers.sandbox.programs.command")
    command.prepare(packages)
    config = importlib.import_module("_pytest.config")
    plugins = [importlib.import_module(f"_pytest.{plugin}") for plugin in config.default_plugins]
    for name in _ALSO_LOADED.split():
        importlib.import_module(name)
    _Reporter.pytest_runtest_makereport = importlib.import_module("pytest").hookimpl(wrapper=True)(_make_report)
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    _warm_up()
    _configs.append(config.get_config([*_OPTIONS]))  # this reads the hooks
    for plugin in plugins:
        _show_fixtures_alone(plugin)
    _before.extend(functions())


def _warm_up() -> None:
    """Run a session of pytest, so that its code is specialised and its caches are full before the fork."""
    path = [*sys.path]
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder, "test_of_no_problem.py")
        file.write_text(_SAMPLE)
        importlib.import_module("pytest").main([*_OPTIONS, "--noconftest", "--rootdir", folder, str(file)])
    sys.path[:], tempfile.tempdir = path, None  # a child has a folder of its own
    del sys.modules[file.stem]
    for name in ("last_type", "last_value", "last_traceback", "last_exc"):  # set by the test that fails
        vars(sys).pop(name, None)


def _show_fixtures_alone(plugin: Any) -> None:
    """Let `dir` of a plugin list only fixtures: searching all other names would take pytest a third of a session."""
    fixture = sys.modules["_pytest.fixtures"].FixtureFunctionDefinition
    names = [name for name, value in vars(plugin).items() if isinstance(value, fixture)]
    plugin.__dir__ = lambda: names


def run() -> None:
    """Run the test file that the request names."""
    run_in_folder(_test, more=1)


def _test(asked: Mapping[str, Any]) -> None:
    """Run pytest, and end the process."""
    close_answer()
    gc.enable()
    builtins.open = io.open = _open  # the fork server has set another `open`, for programs that can't write files
    folder, own = asked["folder"], asked["own"]
    os.environ.update({"HOME": folder, "TMPDIR": folder, "PYTHONPATH": folder})
    sys.path.insert(0, folder)
    sys.argv = ["pytest"]
    sys.setrecursionlimit(sys.getrecursionlimit() + _RECURSION)
    _seed(own["seed"])
    pytest = importlib.import_module("pytest")
    plugin, more = (Inspector(_report, own["modules"]), ["--collect-only"]) if "modules" in own else (_Reporter(), [])
    conftest = [] if own["has_conftest"] else ["--noconftest"]
    _use_prepared_config()
    status = pytest.main([*_OPTIONS, *conftest, *more, "--rootdir", folder, own["test"]], plugins=[plugin])
    _report({"status": int(status), "changed": changed(_before)})
    for stream in (sys.__stdout__, sys.__stderr__):
        if stream is not None:
            stream.flush()
    _exit(0)


def _use_prepared_config() -> None:
    """Let the next session use the server's configuration, but with the session's own arguments."""
    module: Any = sys.modules["_pytest.config"]
    own = module.get_config

    def get_config(args: list[str], plugins: list[object], **more: object) -> Any:
        module.get_config = own
        config = _configs.pop()
        config.invocation_params = config.InvocationParams(args=args, plugins=plugins, dir=pathlib.Path.cwd())
        return config

    module.get_config = get_config


def _seed(seed: int) -> None:
    random.seed(seed)
    if "numpy.random" in sys.modules:
        sys.modules["numpy.random"].seed(seed)


def _report(line: Mapping[str, object]) -> None:
    _write(_RESULTS, _dumps(line).encode() + b"\n")


def _make_report(self: object, call: Any) -> Generator[None, Any, Any]:
    """Record whether `pytest.xfail` ended a test, since the program may have called it."""
    report = yield
    report.called_off = call.excinfo is not None and isinstance(
        call.excinfo.value, sys.modules["pytest"].xfail.Exception
    )
    return report


class _Reporter:
    """A pytest plugin that reports each phase of each test as it ends."""

    pytest_runtest_makereport: Any

    def pytest_collection_finish(self, session: Any) -> None:
        _report({"collected": [item.nodeid for item in session.items]})

    def pytest_collectreport(self, report: Any) -> None:
        if report.failed:
            _report({"not_collected": report.nodeid, "text": _text(report)})

    def pytest_runtest_logreport(self, report: Any) -> None:
        failed = {} if report.passed else {"text": _text(report)}
        fails = report.skipped and hasattr(report, "wasxfail")
        outcome = report.outcome if not fails else "called off" if report.called_off else "expected"
        _report({"test": report.nodeid, "when": report.when, "outcome": outcome, **failed})


def _text(report: Any) -> str:
    """The text of a failure's exception, without the traceback, which contains paths of the machine."""
    crash = getattr(report.longrepr, "reprcrash", None)
    if crash:
        return str(crash.message)[-_EXCEPTION:]
    text = str(report.longrepr)
    marked = [line[1:].strip() for line in text.splitlines() if line.startswith("E ")]
    return "\n".join(marked or [text])[-_EXCEPTION:]
