"""Which tests a file holds, and how they end: the same as under pytest itself."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.sandbox import judge
from verifiers.unit_tests import FunctionTests, UnitTestVerifier

pytestmark = pytest.mark.sandbox(partial_credit=True)

PROGRAM = """
CALLS = []
def same(x):
    CALLS.append(x)
    return x
def once():
    CALLS.append("once")
    if CALLS.count("once") == 1: raise ValueError("the first time")
    return 1
"""
FILES = {
    "classes and their order": """
import pytest, unittest
from solution import same
class Base:
    def test_z(self): assert same(0) == 0
    def test_y(self): assert same(1) == 1
class TestDerived(Base):
    def test_b(self): assert same(2) == 2
    def test_c(self, x=4): assert same(x) == 4
    def test_y(self): assert same(6) == 7
class Helper:
    def test_no(self): assert 0
def test_last(): assert same(9) == 9
""",
    "classes of unittest between others": """
import unittest
from solution import same
class TestFirst(unittest.TestCase):
    def test_b(self): self.assertEqual(same(1), 1)
    def test_a(self): self.assertEqual(same(1), 2)
def test_between(): assert same(1) == 1
class Second(unittest.TestCase):
    def test_it(self): self.assertEqual(same(1), 1)
""",
    "what is skipped": """
import pytest, unittest
from solution import same
@unittest.skip("no")
class Skipped(unittest.TestCase):
    def test_it(self): assert 0
class SkippedBySetUp(unittest.TestCase):
    @classmethod
    def setUpClass(cls): raise unittest.SkipTest("no")
    def test_a(self): assert 0
class SkippedInPart(unittest.TestCase):
    @unittest.skip("no")
    def test_b(self): assert 0
    def test_c(self): assert same(1) == 1
    def test_d(self): raise unittest.SkipTest("no")
def test_that_skips(): pytest.skip("no")
""",
    "set-up of unittest": """
import unittest
from solution import once, same
class First(unittest.TestCase):
    @classmethod
    def setUpClass(cls): cls.log = []
    def setUp(self): self.log.append(same(1))
    def tearDown(self): self.log.append("end")
    def test_a(self): self.assertEqual(self.log, [1])
    def test_b(self): self.assertEqual(self.log, [1])
class Failing(unittest.TestCase):
    def setUp(self): once()
    def test_a(self): pass
    def test_b(self): pass
""",
    "set-up of classes": """
from solution import once, same
class TestMethods:
    def setup_method(self): self.log = [same(1)]
    def teardown_method(self): self.log.clear()
    def test_a(self): assert self.log == [1]
    def test_b(self): assert self.log == [2]
class TestNamed:
    def setup_method(self, method): self.name = method.__name__
    def test_it(self): assert self.name == "test_it"
class TestFailing:
    def setup_method(self): once()
    def test_a(self): pass
    def test_b(self): pass
""",
    "parts of a test": """
import unittest
from solution import same
class Parts(unittest.TestCase):
    def test_parts(self):
        for x in (1, 2, 3):
            with self.subTest(x=x): self.assertEqual(same(x), x)
""",
    "what a handler of exceptions catches": """
import contextlib, pytest, unittest
from solution import once, same
def test_nested():
    with pytest.raises(Exception), pytest.raises(ValueError): raise TypeError(same(1))
def test_another_text():
    with pytest.raises(AssertionError), pytest.raises(ValueError, match="y"): raise ValueError("x")
def test_suppressed():
    with contextlib.suppress(ValueError): raise ValueError(same(1))
class TestUnit(unittest.TestCase):
    def test_handled(self):
        try: self.fail("no")
        except Exception: pass
def test_arguments():
    info = pytest.raises(ValueError, once)
    assert "the first time" in str(info.value) and info.match("first") and info.type is ValueError
def test_no_error():
    with pytest.raises(ValueError): same(1)
""",
    "numbers that are close": """
import pytest, unittest
from solution import same
def test_close(): assert same(0.1) + 0.2 == pytest.approx(0.3) and same([0.1]) == pytest.approx([0.1 + 1e-9])
def test_not_close(): assert same(0.1) == pytest.approx(0.2)
class Close(unittest.TestCase):
    def test_places(self): self.assertAlmostEqual(same(1.00001), 1, places=4)
    def test_too_many(self): self.assertAlmostEqual(same(1.00001), 1, places=6)
    def test_delta(self): self.assertAlmostEqual(same(1.1), 1, delta=0.2)
""",
}


def by_pytest(folder: Path, test: str) -> list[tuple[str, bool]]:
    """Names of the tests that pytest runs in this file and does not skip, and whether they pass."""
    (folder / "solution.py").write_text(PROGRAM)
    (folder / "test_it.py").write_text(test)
    command = [sys.executable, "-m", "pytest", "-v", "-p", "no:cacheprovider", "-c", os.devnull, "--rootdir=."]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    environment["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    run = subprocess.run(
        [*command, "test_it.py"], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    ends = re.findall(r"^test_it\.py::(\S+) (PASSED|FAILED|ERROR)\b", run.stdout, re.MULTILINE)
    assert ends, run.stdout + run.stderr
    return [(name, end == "PASSED") for name, end in ends]


@pytest.mark.parametrize("test", FILES.values(), ids=FILES)
def test_files_hold_the_tests_that_pytest_finds_and_they_end_alike(
    verifier: UnitTestVerifier, tmp_path: Path, test: str
) -> None:
    cases = judge(verifier, PROGRAM, FunctionTests(test)).detail["cases"]
    ends = [(case["name"].partition("[")[0], case["passed"]) for case in cases]  # type: ignore[attr-defined]
    assert sorted(ends) == sorted((name.partition("[")[0], passed) for name, passed in by_pytest(tmp_path, test))
