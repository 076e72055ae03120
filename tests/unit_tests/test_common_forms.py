"""Forms in which people write tests: a right program passes, and the same one with a mistake does not."""

from __future__ import annotations

import pytest

from tests.sandbox import Case, cases, judge, load
from verifiers import Outcome
from verifiers.unit_tests import (
    CallCase,
    CallTests,
    FunctionTests,
    StdioCase,
    StdioTests,
    UnitTestVerifier,
)

DATA = load("unit_tests/common_forms")
pytestmark = pytest.mark.sandbox(timeout_s=5)
NOTHING = "".join(f"def {name}(*_): pass\n" for name in ("add", "sub", "gcd", "lcm", "is_prime", "factorial", "area"))
"""The names under test, and nothing behind them."""


@pytest.mark.parametrize("case", cases(DATA["asserts"]))
def test_assert_lists(verifier: UnitTestVerifier, case: Case) -> None:
    case.check(verifier)
    assert judge(verifier, case.mistaken(), case.tests).outcome is Outcome.INCORRECT
    assert judge(verifier, NOTHING, case.tests).outcome is Outcome.INCORRECT


@pytest.mark.parametrize("case", cases(DATA["test_files"]))
def test_test_files(verifier: UnitTestVerifier, case: Case) -> None:
    case.check(verifier)
    assert judge(verifier, case.mistaken(), case.tests).outcome is Outcome.INCORRECT


def test_exceptions_of_the_files_that_a_problem_gives(verifier: UnitTestVerifier) -> None:
    files = {"shop/__init__.py": "", "shop/errors.py": "class TaxError(ValueError): pass\n"}
    test = """
import pytest
from shop.errors import TaxError
from solution import tax
def test_it():
    with pytest.raises(TaxError, match='no'): tax(-1)
"""
    tests = FunctionTests(test, files=files)
    program = "from shop.errors import TaxError\ndef tax(x):\n    if x < 0: raise TaxError('no')"
    assert judge(verifier, program, tests).outcome is Outcome.CORRECT
    assert judge(verifier, program.replace("raise TaxError", "raise ValueError"), tests).outcome is Outcome.INCORRECT


RECURSIVE = "class E(Exception):\n    def __getattribute__(self, name): return self.x\n"


@pytest.mark.parametrize("raising", ["def f(x): raise E()", "raise E()"])
def test_an_exception_that_can_not_be_looked_at_is_one(verifier: UnitTestVerifier, raising: str) -> None:
    verdict = judge(verifier, f"{RECURSIVE}{raising}", CallTests("f", (CallCase((1,), 1),)))
    assert verdict.detail["failure"] == "exception", verdict.detail
    script = judge(verifier, f"{RECURSIVE}raise E()", StdioTests((StdioCase("", "1"),)))
    assert script.detail["failure"] == "exception", script.detail


def test_the_lowest_recursion_limit_is_the_programs_own(verifier: UnitTestVerifier) -> None:
    program = """
import sys
def f(x):
    for limit in range(1, 100):
        try: sys.setrecursionlimit(limit)
        except (ValueError, RecursionError): continue
        return [[x]]
"""
    verdict = judge(verifier, program, CallTests("f", (CallCase((1,), [[1]]),) * 2))
    assert verdict.score == 1, verdict.detail


def test_many_large_answers_count_together(verifier: UnitTestVerifier) -> None:
    test = "from solution import part, join\ndef test_it(): assert join([part(i) for i in range(10)]) == 1"
    program = "def part(i): return 'x' * 1_900_000\ndef join(parts): return 1"
    verdict = judge(verifier, program, FunctionTests(test))
    assert (verdict.outcome, verdict.detail["failure"]) == (Outcome.INCORRECT, "output_limit")


def test_what_is_no_class_is_no_base(verifier: UnitTestVerifier) -> None:
    test = "from solution import Base\nclass Derived(Base): pass\ndef test_it(): pass"
    assert judge(verifier, "def Base(): pass", FunctionTests(test)).outcome is Outcome.INCORRECT
