"""Which tests a file holds, in which order, and how they end: the same as under pytest itself."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.sandbox import judge
from verifiers import Outcome
from verifiers.unit_tests import AssertTests, FunctionTests, UnitTestVerifier

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
    "classes in classes, static tests, and the order of bases": """
import pytest, unittest
from solution import same
class Base:
    def test_z(self): assert same(0) == 0
    def test_y(self): assert same(1) == 1
class TestDerived(Base):
    def test_b(self): assert same(2) == 2
    @staticmethod
    def test_a(): assert same(3) == 3
    @pytest.mark.parametrize("x", [4, 5])
    @classmethod
    def test_c(cls, x): assert same(x) == 4 and cls is TestDerived
    @staticmethod
    @pytest.mark.parametrize("x", [4, 5])
    def test_d(x): assert same(x) == 5
    def test_y(self): assert same(6) == 6
    class TestInner:
        @pytest.fixture
        def seven(self): return 7
        def test_it(self, seven): assert same(seven) == 7
        def test_wrong(self, seven): assert same(seven) == 8
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
class TestOuter:
    class Inner(unittest.TestCase):
        def test_it(self): self.assertEqual(same(1), 3)
""",
    "what is no test": """
import pytest, unittest
from solution import same
class TestHelper:
    __test__ = False
    def test_it(self): assert 0
class TestAgain(TestHelper):
    __test__ = True
    def test_it(self): assert same(1) == 1
@pytest.mark.skip
class TestSkipped:
    class TestInner:
        def test_it(self): assert 0
class TestMarked:
    pytestmark = pytest.mark.skip
    def test_it(self): assert 0
class TestOfMarked(TestMarked):
    pytestmark = [pytest.mark.usefixtures()]
    def test_other(self): assert 0
@pytest.mark.skipif(True, reason="no")
class Marked(unittest.TestCase):
    def test_it(self): assert 0
@unittest.skip("no")
class Skipped(unittest.TestCase):
    @classmethod
    def setUpClass(cls): raise ValueError
    def test_it(self): assert 0
class SkippedBySetUp(unittest.TestCase):
    @classmethod
    def setUpClass(cls): raise unittest.SkipTest("no")
    def test_a(self): assert 0
    def test_b(self): assert 0
class SkippedInPart(unittest.TestCase):
    @pytest.mark.skip
    def test_a(self): assert 0
    @unittest.skip("no")
    def test_b(self): assert 0
    def test_c(self): assert same(1) == 1
    def test_d(self): raise unittest.SkipTest("no")
def test_that_skips(): raise unittest.SkipTest("no")
""",
    "set-up that fails once fails every test of its class": """
import pytest, unittest
from solution import once, same
class TestPytest:
    @classmethod
    def setup_class(cls): once()
    def test_a(self): pass
    def test_b(self): pass
class TestLater:
    @classmethod
    def setup_class(cls): once()
    def test_a(self): pass
""",
    "set-up of unittest that fails once": """
import unittest
from solution import once
class First(unittest.TestCase):
    @classmethod
    def setUpClass(cls): once()
    def test_a(self): pass
    def test_b(self): pass
class Second(First):
    def test_c(self): pass
""",
    "fixtures that unittest's classes use": """
import pytest, unittest
from solution import same
LOG = []
@pytest.fixture(autouse=True)
def each(): LOG.append("begin"); yield; LOG.append("end")
@pytest.fixture
def asked(): LOG.append("asked")
class First(unittest.TestCase):
    @pytest.fixture(autouse=True)
    def own(self, capsys): self.capsys = capsys
    def setUp(self): LOG.append("setUp")
    def test_1(self):
        print(same("hi"))
        self.assertEqual(self.capsys.readouterr().out, "hi\\n")
        self.assertEqual(LOG, ["begin", "setUp"])
@pytest.mark.usefixtures("asked")
class Second(unittest.TestCase):
    def test_2(self): self.assertEqual(LOG, ["begin", "setUp", "end", "begin", "asked"])
def test_3(): assert LOG[-3:] == ["asked", "end", "begin"]
""",
}


def by_pytest(folder: Path, test: str) -> list[tuple[str, bool]]:
    """Names of the tests that pytest runs in this file and does not skip, and whether they pass."""
    (folder / "solution.py").write_text(PROGRAM)
    (folder / "test_it.py").write_text(test)
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-v",
        "-p",
        "no:cacheprovider",
        "-c",
        os.devnull,
        "--rootdir=.",
        "test_it.py",
    ]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    run = subprocess.run(
        command,
        cwd=folder,
        env={**environment, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    lines = [line.split() for line in run.stdout.splitlines() if line.startswith("test_it.py::")]
    assert lines, run.stdout + run.stderr
    return [(line[0].removeprefix("test_it.py::"), line[1] == "PASSED") for line in lines if line[1] != "SKIPPED"]


@pytest.mark.parametrize("test", FILES.values(), ids=FILES)
def test_files_hold_the_tests_that_pytest_finds_and_they_end_alike(
    verifier: UnitTestVerifier, tmp_path: Path, test: str
) -> None:
    cases = judge(verifier, PROGRAM, FunctionTests(test)).detail["cases"]
    assert [(case["name"], case["passed"]) for case in cases] == by_pytest(tmp_path, test)  # type: ignore[attr-defined]


def test_set_up_of_an_outer_class_is_not_supported(verifier: UnitTestVerifier) -> None:
    test = """
from solution import same
class TestOuter:
    def setup_method(self): self.value = same(1)
    class TestInner:
        def test_it(self): assert same(1) == 1
"""
    verdict = judge(verifier, PROGRAM, FunctionTests(test))
    assert (verdict.outcome, verdict.detail["failure"]) == (Outcome.VERIFIER_ERROR, "unsupported")
    assert "TestInner is defined in a class with fixtures or set-up methods" in str(verdict.detail["reason"])


def test_names_that_only_text_holds_are_not_supported(verifier: UnitTestVerifier) -> None:
    asserts = AssertTests(("assert eval('same(2)') == 2",))
    verdict = judge(verifier, PROGRAM, asserts)
    assert (verdict.outcome, verdict.detail["failure"]) == (Outcome.VERIFIER_ERROR, "unsupported")
    assert "'same'" in str(verdict.detail["reason"])
    missing = judge(verifier, "def other(): pass", AssertTests(("assert same(2) == 2",)))
    assert (missing.score, missing.detail["failure"]) == (0, "exception")
