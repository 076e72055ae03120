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
    test = UNITTEST.replace("from solution import *\n", "")
    verdict = judge(verifier, test)
    assert verdict.score == 1, verdict.detail
    assert [name.partition("::")[2][:6] for name in names(verdict)] == [
        "test_a",
        "test_b",
        "test_c",
        "test_d",
        "test_f",
    ]
    wrong = judge(verifier, test, WRONG)
    assert [name.partition("::")[2][:6] for name in names(wrong, passed=False)] == ["test_a", "test_d"]


@pytest.mark.parametrize(
    ("test", "reason"),
    [
        ("def test_it(capsys): pass", "the fixture 'capsys' is not supported"),
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
