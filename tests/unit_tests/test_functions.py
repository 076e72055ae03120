"""Test files in pytest's and unittest's style."""

from __future__ import annotations

import pytest

from tests import sandbox
from tests.sandbox import Case, cases, load
from verifiers import Outcome, Verdict
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


DATA = load("unit_tests/functions")
pytestmark = pytest.mark.sandbox(partial_credit=True)


def judge(verifier: UnitTestVerifier, test: str, program: str = PROGRAM) -> Verdict:
    return sandbox.judge(verifier, program, FunctionTests(test))


def names(verdict: Verdict, *, passed: bool = True) -> list[str]:
    return [case["name"] for case in verdict.detail["cases"] if case["passed"] == passed]  # type: ignore[attr-defined]


@pytest.mark.parametrize("case", cases(DATA["unsupported"]))
def test_what_is_not_supported_is_refused_with_a_reason(verifier: UnitTestVerifier, case: Case) -> None:
    case.check(verifier, PROGRAM)


@pytest.mark.parametrize("program", DATA["liars"].values(), ids=DATA["liars"])
@pytest.mark.parametrize("case", cases(DATA["means"]))
def test_a_liar_passes_no_test_file(verifier: UnitTestVerifier, program: str, case: Case) -> None:
    assert sandbox.judge(verifier, PROGRAM, case.tests).score == 1
    case.check(verifier, program)


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
    main = 'if __name__ == "__main__":\n    pytest.main([__file__])\n'
    assert judge(verifier, STARRED + main).score == 1
    counter = """
from solution import *
def test_it():
    c = Counter(); c.click(); c.click()
    assert c.clicks == 2 and total(c) == 2
"""
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


SEVERAL = Case("several", "", FunctionTests(STARRED), {"outcome": "scored", "score": 0})


@pytest.mark.parametrize("case", [pytest.param(SEVERAL, id="several"), *cases(DATA["starred"])])
def test_a_star_gives_a_program_none_of_the_names_that_judge_it(verifier: UnitTestVerifier, case: Case) -> None:
    case.check(verifier, LIAR_BY_NAMES)


BAG = """
class Bag:
    def __init__(s, xs): s.xs = xs
    def add(s, x): s.xs = s.xs + [x]
    def __eq__(s, o): return s.xs == o
    def __contains__(s, x): return x in s.xs
    def __add__(s, n): return len(s.xs) + n
"""
WRONG_BAG = """
def mean(xs): return 0
class Stack: pop = lambda s: 1 / 0
class Bag:
    def __init__(s, xs): pass
    def add(s, x): pass
    def __eq__(s, o): return False
"""


@pytest.mark.parametrize("case", cases(DATA["idioms"]))
def test_idioms_of_test_files(verifier: UnitTestVerifier, case: Case) -> None:
    case.check(verifier, PROGRAM + BAG)
    verdict = sandbox.judge(verifier, WRONG_BAG, case.tests)
    assert (verdict.outcome, verdict.score) == (Outcome.SCORED, 0), verdict.detail
