"""Which tests a file holds, in which order, and how they end: the same as under pytest itself."""

from __future__ import annotations

import os
import re
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
    "fixtures of parametrized fixtures": """
import pytest
from solution import same
LOG = []
@pytest.fixture(scope="module", params=[1, pytest.param(2, id="two"), pytest.param(3, marks=pytest.mark.skip)])
def number(request):
    LOG.append(f"+{request.param}"); yield request.param; LOG.append(f"-{request.param}")
@pytest.fixture(scope="module")
def case(number):
    LOG.append(f"case {number}"); yield number, number + 1; LOG.append("end")
def test_case(case): assert same(case[0]) + 1 == case[1] and case[0] == 2
@pytest.fixture(params=["a", "b"], ids=["x", "y"])
def letter(request): return request.param
@pytest.mark.parametrize("other", [5, 6])
def test_both(letter, other): assert (letter, other) != ("b", 5)
def test_log(): assert LOG == ["+1", "case 1", "end", "-1", "+2", "case 2", "end", "-2"] or "+2" in LOG
""",
    "parameters that reach fixtures": """
import pytest
from solution import same
@pytest.fixture
def cap(): return 5
@pytest.fixture
def twice(cap): return 2 * cap
@pytest.mark.parametrize("cap", [1, 2])
def test_cap(twice, cap): assert twice == 2 * cap and twice == 2 * same(cap)
@pytest.mark.parametrize("cap", [3])
def test_of_fixtures_alone(twice): assert twice == 6
@pytest.fixture
def asking(missing): return missing
@pytest.mark.parametrize("missing", [7])
def test_without_a_fixture(asking): assert asking == 7
def test_default(twice): assert twice == 10
@pytest.mark.parametrize("x", [1, 2])
class TestOfClass:
    @pytest.mark.parametrize("y", [3, 4])
    def test_it(self, x, y): assert (same(x), y) != (2, 3)
""",
    "the order of set-up": """
import pytest
from solution import same
LOG = []
def setup_module(): LOG.append("module")
def setup_function(): LOG.append("function")
def teardown_function(): LOG.clear()
@pytest.fixture(scope="session", autouse=True)
def whole(): LOG.append("session")
@pytest.fixture(autouse=True)
def also(): LOG.append("autouse")
@pytest.fixture(scope="module")
def wide(): LOG.append("wide")
@pytest.fixture
def narrow(): LOG.append("narrow")
def test_order(narrow, wide): assert LOG == ["session", "module", "wide", "function", "autouse", "narrow"]
def test_again(narrow, wide): assert LOG == ["function", "autouse", "narrow"]
class TestMethods:
    def setup_method(self): self.log = [*LOG, "method"]
    def teardown_method(self): LOG.clear()
    @pytest.fixture(autouse=True)
    def own(self): self.log.append("own")
    def test_order(self): assert self.log == ["autouse", "method", "own"]
class TestNamedLikeSetUp:
    @pytest.fixture(autouse=True)
    def setup_method(this): this.value = same(1)
    def test_it(self): assert self.value == 1
""",
    "what is expected to fail, and parts that are skipped": """
import pytest, sys, unittest
from solution import same
@pytest.mark.xfail(sys.version_info < (3, 8), reason="old")
def test_not_expected(): assert same(1) == 2
@pytest.mark.xfail(sys.version_info > (3, 8), reason="new")
def test_expected(): assert same(1) == 2
class Parts(unittest.TestCase):
    def test_parts(self):
        for x in (1, 2, 3):
            with self.subTest(x=x):
                if x == 2: self.skipTest("no")
                self.assertEqual(same(x), x)
""",
    "helpers with names of tests, and functions that are made": """
import dataclasses, functools, pytest
from solution import same
@dataclasses.dataclass
class TestCase:
    given: int
class TestError(Exception):
    def __init__(self, text): super().__init__(text)
def check(x, y): assert same(x) == y
test_partial = functools.partial(check, 2, 3)
@functools.lru_cache
def test_cached(): assert same(1) == 1
def test_no_test(): assert 0
test_no_test.__test__ = False
def decorated(function):
    def inner(*args, **kwargs): return function(*args, **kwargs)
    return inner
@decorated
def test_wrapped(): assert same(1) == 2
""",
    "values of fixtures, and what they ask for": """
import itertools, pytest
from solution import once, same
@pytest.fixture
def numbers(): return (same(x) for x in itertools.count())
def test_a_generator(numbers): assert list(itertools.islice(numbers, 3)) == [0, 1, 2]
@pytest.fixture
def asking(request): return request.getfixturevalue("other"), request.function.__name__, getattr(request, "param", 3)
@pytest.fixture
def other(): return 7
def test_asking(asking): assert asking == (7, "test_asking", 3)
def test_of_request(request): assert request.getfixturevalue("other") == 7
@pytest.fixture(scope="module")
def failing(): return once()
def test_a(failing): pass
def test_b(failing): pass
@pytest.fixture
def twice(): yield 1; yield 2
def test_output(capsys: pytest.CaptureFixture[str]): print(same("x")); assert capsys.readouterr().out == "x\\n"
def test_raises():
    with pytest.raises(match="x"): raise ValueError("x")
    with pytest.raises(pytest.fail.Exception): pytest.fail("no")
class TestStatic:
    @staticmethod
    @pytest.fixture
    def static(): return 1
    @pytest.fixture
    def of_class(this, static): return static + same(1)
    def test_it(self, of_class): assert of_class == 2
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
    "what set-up and fixtures are given": """
import pytest
from solution import same
VALUES = [(1, 1), (2, 3)]
def setup_module(module): module.shared = same(5)
def teardown_module(module): del module.shared
def setup_function(function): function.seen = True
def test_module(): assert shared == 5 and test_module.seen
@pytest.fixture
def asked(request): return request.node.name, request.fixturename, request.cls, request.module.VALUES is VALUES
def test_asked(asked, request): assert asked == (request.node.name, "asked", None, True)
@pytest.mark.parametrize("x, y", VALUES, ids=iter("ab"))
def test_ids(x, y): assert same(x) == y
class TestClass:
    def setup_method(self, method): self.name = method.__name__
    def test_it(self, request): assert self.name == request.node.name == "test_it"
""",
    "what a handler of exceptions catches": """
import contextlib, pytest, unittest
from solution import same
def fail(*_): pytest.fail("no")
RUNS = [fail, lambda: pytest.raises(ValueError, same, 1), lambda: same([]).missing]
@pytest.mark.parametrize("run", RUNS, ids=["a", "b", "c"])
def test_handler(run):
    try: run()
    except Exception: pass
def test_suppressed():
    with contextlib.suppress(Exception): pytest.fail("no")
def test_nested():
    with pytest.raises(Exception), pytest.raises(ValueError): same(1)
def test_skipped():
    try: pytest.skip("no")
    except Exception: pass
    assert 0
def test_another_text():
    with pytest.raises(AssertionError), pytest.raises(ValueError, match="y"): raise ValueError("x")
class TestUnit(unittest.TestCase):
    def test_it(self):
        try: pytest.fail("no")
        except Exception: pass
    def test_handled(self):
        try: self.fail("no")
        except Exception: pass
""",
    "what is expected of an exception": """
import pytest, re
from solution import once, same
def failing(*notes, match=None):
    error = ValueError("text", match)
    for note in notes: error.add_note(note)
    raise error
@pytest.mark.parametrize("expected", [("text", None), ("text", 1)], ids=["a", "b"])
def test_check(expected):
    with pytest.raises(ValueError, check=lambda error: error.args == expected): failing()
def test_check_alone():
    with pytest.raises(check=lambda error: isinstance(error, ValueError)): failing()
@pytest.mark.parametrize("pattern", ["None.*note", "note$", re.compile("NOTE", re.I), "other"], ids=[*"abcd"])
def test_notes(pattern):
    with pytest.raises(ValueError, match=pattern): failing(same("a note"))
def test_arguments():
    assert pytest.raises(ValueError, failing, match=same(2)).value.args == ("text", 2)
def test_text():
    with pytest.raises(ValueError) as info: once()
    assert "the first time" in str(info) and info.match("first") and "other" not in str(info)
def test_no_function(): pytest.raises(TypeError, same(None), "x")
def test_no_function_of_tests(): pytest.raises(TypeError, "x".missing if same(0) else 5, "x")
def test_unknown_argument():
    with pytest.raises(ValueError, matches="x"): failing()
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
    ends = re.findall(r"^test_it\.py::(\S+) (PASSED|FAILED|ERROR)\b", run.stdout, re.MULTILINE)
    assert ends, run.stdout + run.stderr
    return [(name, end == "PASSED") for name, end in ends]


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
