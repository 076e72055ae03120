# ruff: noqa: E501 - a program reads best on one line
"""Test files in pytest's and unittest's style."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from verifiers import Outcome, Problem, Verdict
from verifiers.unit_tests import FunctionTests, UnitTestVerifier

PROGRAM = """
class EmptyError(LookupError):
    def __init__(self, name):
        super().__init__(f"{name} is empty")
        self.name = name
class Stack:
    made = 0
    def __init__(self, items=()): self.items = list(items); Stack.made += 1
    def push(self, x): self.items.append(x); return self
    def pop(self):
        if not self.items: raise EmptyError("stack")
        return self.items.pop()
    def __len__(self): return len(self.items)
    def __eq__(self, other): return isinstance(other, Stack) and self.items == other.items
def mean(xs): return sum(xs) / len(xs)
"""
WRONG = PROGRAM.replace("self.items.append(x)", "self.items.insert(0, x)").replace("/ len(xs)", "/ (len(xs) + 1)")


@pytest.fixture(scope="module")
def verifier() -> Iterator[UnitTestVerifier]:
    verifier = UnitTestVerifier(timeout_s=2, partial_credit=True)
    yield verifier
    verifier.close()


def judge(verifier: UnitTestVerifier, test: str, program: str = PROGRAM) -> Verdict:
    return verifier(program, Problem("p", "", FunctionTests(test)))


def names(verdict: Verdict, *, passed: bool = True) -> list[str]:
    return [case["name"] for case in verdict.detail["cases"] if case["passed"] == passed]  # type: ignore[attr-defined]


PYTEST = """
import math
import pytest
from solution import EmptyError, Stack, mean

@pytest.fixture
def stack():
    return Stack([1, 2])

@pytest.fixture(params=[[3], [4, 5]], scope="module")
def items(request):
    yield request.param

@pytest.mark.parametrize("xs, expected", [([1, 2], 1.5), pytest.param([0.1, 0.2], 0.15, id="tenths")])
def test_mean(xs, expected):
    assert mean(xs) == pytest.approx(expected)

@pytest.mark.parametrize("k", [1, 2])
@pytest.mark.parametrize("n", [3])
def test_two(n, k):
    assert mean([n] * k) == n

def test_fixture(stack):
    assert stack.push(3).pop() == 3 and len(stack) == 2

def test_parametrized_fixture(items, stack):
    for item in items: stack.push(item)
    assert stack.pop() == items[-1]

class TestErrors:
    limit = 0

    @pytest.fixture(autouse=True)
    def prepare(self): self.stack = Stack()

    def setup_method(self, method): self.limit = 1

    def test_pop(self):
        with pytest.raises(EmptyError, match="stack is empty") as info:
            self.stack.pop()
        assert info.value.name == "stack" and info.type is EmptyError and self.limit == 1
        with pytest.raises(LookupError): self.stack.pop()
        pytest.raises(IndexError, list.pop, [])

    @pytest.mark.skip(reason="later")
    def test_left_out(self): assert False

@pytest.mark.skipif(True, reason="never")
def test_never(): assert False

def test_skipped_inside():
    pytest.skip("not now")

@pytest.mark.slow
def test_mark(stack): assert isinstance(stack, Stack)

async def test_coroutine(): assert mean([2]) == 2

def helper(): assert False
"""


def test_a_pytest_file(verifier: UnitTestVerifier) -> None:
    verdict = judge(verifier, PYTEST)
    assert verdict.score == 1, verdict.detail
    assert names(verdict) == [
        "test_mean[0]", "test_mean[tenths]", "test_two[3-1]", "test_two[3-2]", "test_fixture", "test_parametrized_fixture[0]",
        "test_parametrized_fixture[1]", "TestErrors::test_pop", "test_mark", "test_coroutine",
    ]  # fmt: skip
    wrong = judge(verifier, PYTEST, WRONG)
    assert names(wrong) == ["TestErrors::test_pop", "test_mark"]
    assert wrong.score == 0.2


UNITTEST = """
import unittest
from solution import *
import solution

class StackTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls): cls.log = []

    def setUp(self):
        self.stack = solution.Stack([1, 2])
        self.addCleanup(self.log.append, "clean")

    def test_a_push(self):
        self.stack.push(5)
        self.assertEqual(self.stack.pop(), 5)
        self.assertEqual(solution.Stack([1]), solution.Stack([1]))

    def test_b_cleaned(self): self.assertEqual(self.log, ["clean"])

    def test_c_raises(self):
        with self.assertRaisesRegex(solution.EmptyError, "is empty") as context:
            solution.Stack().pop()
        self.assertEqual(context.exception.name, "stack")

    def test_d_subtests(self):
        for n in (1, 2, 3):
            with self.subTest(n=n): self.assertAlmostEqual(solution.mean([n]), n)

    @unittest.skip("later")
    def test_e_skipped(self): self.fail()

    @unittest.expectedFailure
    def test_f_expected(self): self.assertEqual(solution.mean([1]), 2)

    def tearDown(self): self.stack = None

if __name__ == "__main__":
    unittest.main()
"""


def test_a_unittest_file(verifier: UnitTestVerifier) -> None:
    verdict = judge(verifier, UNITTEST)
    assert verdict.score == 1, verdict.detail
    assert [name.partition("::")[2][:6] for name in names(verdict)] == [
        "test_a",
        "test_b",
        "test_c",
        "test_d",
    ]
    wrong = judge(verifier, UNITTEST, WRONG)
    assert [name.partition("::")[2][:6] for name in names(wrong, passed=False)] == ["test_a", "test_d"]


@pytest.mark.parametrize(
    ("test", "reason"),
    [
        ("def test_it(caplog): pass", "the fixture 'caplog' is not supported"),
        ("def test_it(stack): pass", "the fixture 'stack' is not defined in the test file"),
        ("import pytest\n@pytest.mark.parametrize('x', [1], indirect=True)\ndef test_it(x): pass", "indirect"),
        ("import pytest\ndef test_it():\n    with pytest.warns(UserWarning): pass", "pytest.warns is not supported"),
        ("import numpy as np\ndef test_it(): pass", "No module named 'numpy'"),
        ("import other\ndef test_it(): pass", "names are given in FunctionTests.module"),
        (
            "class TestIt:\n    def __init__(self): pass\n    def test_a(self): pass",
            "test class TestIt has a constructor",
        ),
    ],
)
def test_what_is_not_supported_is_refused_with_a_reason(verifier: UnitTestVerifier, test: str, reason: str) -> None:
    verdict = judge(verifier, test)
    assert (verdict.outcome, verdict.detail["failure"]) == (Outcome.VERIFIER_ERROR, "unsupported")
    assert reason in str(verdict.detail["reason"])


def test_a_file_without_tests_is_broken(verifier: UnitTestVerifier) -> None:
    for test in ("import solution", "import pytest\ndef test_a(): pytest.skip()"):
        assert judge(verifier, test).detail["failure"] == "broken_test"


LIARS = [
    "class Stack:\n    def __getattr__(self, name): return lambda *a: self\n    __eq__ = lambda *a: True\n    __len__ = lambda s: 2\ndef mean(xs): return Stack()\nclass EmptyError(Exception): pass",
    "import sys, types\nfor name in ('pytest', 'unittest', 'math'): sys.modules[name] = types.SimpleNamespace(raises=None, approx=lambda *a, **k: 0)\ndef mean(xs): return 0",
    "import unittest\ndef mean(xs): raise unittest.SkipTest('no')",
    "class Skipped(Exception): pass\ndef mean(xs): raise Skipped",
    "class UnsupportedTestError(Exception): pass\ndef mean(xs): raise UnsupportedTestError",
    "class JobEndedError(BaseException): pass\ndef mean(xs): raise JobEndedError",
    "def mean(xs): raise KeyboardInterrupt",
    "def mean(xs): raise SystemExit(0)",
    "import os\ndef mean(xs): os._exit(0)",
    "def mean(xs): return type('A', (float,), {'__eq__': lambda *a: True, '__sub__': lambda *a: 0})(0)",
    "def __getattr__(name): return lambda *a: True",
    "def test_mean(*a): pass\ndef mean(xs): return None",
    "raise SystemExit(0)",
]


@pytest.mark.parametrize("program", LIARS)
@pytest.mark.parametrize(
    "test",
    [
        "import pytest\nfrom solution import mean\ndef test_mean(): assert mean([1, 2]) == pytest.approx(1.5)",
        "import unittest, solution\nclass T(unittest.TestCase):\n    def test_mean(self): self.assertAlmostEqual(solution.mean([1, 2]), 1.5)",
        "import math\nfrom solution import mean\nclass TestIt:\n    def test_mean(self): assert math.isclose(mean([1, 2]), 1.5)",
        "from solution import mean\nRESULT = mean([1, 2])\ndef test_mean(): assert RESULT == 1.5",
        "import pytest\nfrom solution import mean\n@pytest.fixture\ndef result(): return mean([1, 2])\ndef test_mean(result): assert result == 1.5",
    ],
)
def test_a_liar_passes_no_test_file(verifier: UnitTestVerifier, program: str, test: str) -> None:
    assert judge(verifier, test).score == 1
    verdict = judge(verifier, test, program)
    assert (verdict.outcome, verdict.score) == (Outcome.SCORED, 0.0), verdict.detail


STARRED = """
import math
from solution import *
from statistics import median

def test_mean():
    numbers = [1, 2, 6]
    assert mean(numbers) == 3 and math.isclose(mean([0.1, 0.2]), 0.15) and len(numbers) == 3 and median(numbers) == 2

def test_stack():
    mean = 5  # a name of this function's own
    with pytest.raises(EmptyError): Stack().pop()
    assert len(Stack([1]).push(2)) == 2 and isinstance(Stack(), Stack) and sorted({2, 1}) == [1, 2]

import pytest
"""


def test_a_star_takes_what_the_tests_use(verifier: UnitTestVerifier) -> None:
    assert judge(verifier, STARRED).score == 1
    assert names(judge(verifier, STARRED, WRONG)) == ["test_stack"]
    hidden = PROGRAM + "__all__ = []\n"
    assert judge(verifier, STARRED, hidden).score == 1, "names that a program hides are there all the same"
    counter = "from solution import *\ndef test_it():\n    c = Counter(); c.click(); c.click()\n    assert c.clicks == 2 and total(c) == 2"
    own = "class Counter:\n    clicks = 0\n    def click(self): self.clicks += 1\ndef total(c): return c.clicks"
    assert judge(verifier, counter, own.replace("+= 1", "+= 2")).score == 0
    assert judge(verifier, counter, own).score == 1, (
        "a class under test may go by the name of one of the standard library"
    )


LIAR_BY_NAMES = """
def lie(*a, **k): return True
abs = lambda x: 0
len = sorted = median = isinstance = isclose = all = any = lie
class Ok(Exception): pass
class raises:
    def __init__(self, *a, **k): pass
    def __enter__(self): return self
    def __exit__(self, *a): return True
class pytest:
    raises = raises
class math:
    isclose = staticmethod(lie)
AssertionError = ValueError = EmptyError = Ok
class Stack: pass
def mean(xs): return 0
def approx(x): return 0
"""


@pytest.mark.parametrize(
    "test",
    [
        STARRED,
        "from solution import *\ndef test_it(): assert mean([1]) == 1 and all([])",
        "from solution import *\ndef test_it():\n    n = mean([1])\n    assert abs(n - 1) < 0.1",
        "from solution import *\ndef test_it(): assert isclose(mean([1]), 1)",
        "from solution import *\ndef test_it(): assert len({mean([1]), 1}) == 1",
        "import pytest\nfrom solution import *\ndef test_it():\n    with pytest.raises(ValueError): mean([])",
        "from pytest import approx\nfrom solution import *\ndef test_it(): assert mean([1]) == approx(1)",
    ],
)
def test_a_star_gives_a_program_none_of_the_names_that_judge_it(verifier: UnitTestVerifier, test: str) -> None:
    verdict = judge(verifier, test, LIAR_BY_NAMES)
    assert (verdict.outcome, verdict.score) == (Outcome.SCORED, 0), verdict.detail


HONEST = {
    "the file's own place": "import os, sys\nfrom pathlib import Path\nsys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))\nsys.path.append(str(Path(__file__).resolve().parent.parent))\nfrom solution import mean\ndef test_it(): assert mean([1]) == 1",
    "what may be missing": "import solution\naverage = getattr(solution, 'average', None) or solution.mean\ndef test_it(): assert average([1]) == 1 and not hasattr(solution, 'average') and hasattr(solution, 'mean')",
    "either name": "try:\n    from solution import average\nexcept ImportError:\n    from solution import mean as average\ndef test_it(): assert average([1]) == 1",
    "either attribute": "import solution\ntry: average = solution.average\nexcept AttributeError: average = solution.mean\ndef test_it(): assert average([1]) == 1",
    "either module": "try: import solution.extra\nexcept ImportError: from solution import mean\ndef test_it(): assert mean([1]) == 1",
    "a class by another name": "from solution import Bag as B\ndef test_it():\n    b = B([1]); b.add(2)\n    assert b == [1, 2] and 2 in b and b + 1 == 3",
    "a class assigned to another name": "import solution\nB = solution.Bag\nC = B\ndef test_it():\n    b = C([1]); b.add(2)\n    assert b == [1, 2]",
    "a class's fixture over the file's": "import pytest\nfrom solution import mean\n@pytest.fixture\ndef base(): return [1]\n@pytest.fixture\ndef other(base): return base * 2\nclass TestIt:\n    @pytest.fixture\n    def base(self, base): return base + [3]\n    def test_it(self, base, other): assert mean(base) == 2 and other == [1, 3, 1, 3]\ndef test_file(base): assert mean(base) == 1",
    "the file's fixture over pytest's": "import pytest\nfrom solution import mean\n@pytest.fixture\ndef capsys(capsys):\n    yield [mean([1]), capsys]\ndef test_it(capsys): assert capsys[0] == 1 and capsys[1].readouterr().out == ''",
    "a fixture's parameters behind another": "import pytest\nfrom solution import mean\n@pytest.fixture(params=[1, 2])\ndef base(request): return request.param\nclass TestIt:\n    @pytest.fixture\n    def base(self, base): return [base, base]\n    def test_it(self, base): assert mean(base) in (1, 2)",
    "the exception's name": "import pytest\nfrom solution import Stack\ndef test_it():\n    with pytest.raises(LookupError) as info: Stack().pop()\n    assert info.typename == 'EmptyError'",
}  # fmt: skip
BAG = "class Bag:\n    def __init__(s, xs): s.xs = xs\n    def add(s, x): s.xs = s.xs + [x]\n    def __eq__(s, o): return s.xs == o\n    def __contains__(s, x): return x in s.xs\n    def __add__(s, n): return len(s.xs) + n\n"


@pytest.mark.parametrize("name", HONEST)
def test_idioms_of_test_files(verifier: UnitTestVerifier, name: str) -> None:
    verdict = judge(verifier, HONEST[name], PROGRAM + BAG)
    assert verdict.score == 1, verdict.detail
    wrong = "def mean(xs): return 0\nclass Stack: pop = lambda s: 1 / 0\nclass Bag:\n    def __init__(s, xs): pass\n    def add(s, x): pass\n    def __eq__(s, o): return False\n"
    verdict = judge(verifier, HONEST[name], wrong)
    assert (verdict.outcome, verdict.score) == (Outcome.SCORED, 0), verdict.detail


def test_a_fixture_that_asks_for_itself_is_broken(verifier: UnitTestVerifier) -> None:
    test = "import pytest\nfrom solution import mean\n@pytest.fixture\ndef base(base): return base\ndef test_it(base): assert mean(base)"
    assert judge(verifier, test).detail["failure"] == "broken_test"
