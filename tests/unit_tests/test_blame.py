"""Whose fault it is that tests can't run: a program turns no failure of its own into an error of the verifier."""

from __future__ import annotations

import pytest

from tests.sandbox import Case, cases, judge, load
from verifiers import Outcome
from verifiers.unit_tests import CheckTests, FunctionTests, UnitTestVerifier

DATA = load("unit_tests/blame")
RAISES, NO_TEXT, EXITS = "raise ValueError('no')", "return 5", "raise SystemExit(0)"
"""How an object of a program can't be shown."""


@pytest.mark.parametrize("case", cases(DATA["unshowable"]))
@pytest.mark.parametrize("how", [RAISES, NO_TEXT, EXITS])
def test_an_object_that_can_not_be_shown_fails_its_case(verifier: UnitTestVerifier, how: str, case: Case) -> None:
    case.check(verifier, case.program.replace("HOW", how))


@pytest.mark.parametrize("case", cases(DATA["lacking"]))
def test_what_the_program_lacks_is_its_exception(verifier: UnitTestVerifier, case: Case) -> None:
    case.check(verifier)


@pytest.mark.parametrize("case", cases(DATA["escapes"]))
def test_no_program_breaks_its_tests(verifier: UnitTestVerifier, case: Case) -> None:
    case.check(verifier)


@pytest.mark.parametrize("case", cases(DATA["broken"]))
def test_what_no_program_could_pass_is_a_broken_test(verifier: UnitTestVerifier, case: Case) -> None:
    case.check(verifier)


FAILING_KEY = """
import solution
def key(x): raise ValueError(x)
def test_it(): assert solution.f(key) == 'caught'
"""
CATCHING = """
class R:
    def __repr__(self): return 'R'
def f(key):
    try: key(R())
    except ValueError: return 'caught'
"""
NOT_CATCHING = """
class R:
    def __repr__(self): raise ValueError('no')
def f(*a): return R()
"""


def test_a_function_of_the_tests_may_fail_with_an_object_of_the_program(verifier: UnitTestVerifier) -> None:
    tests = FunctionTests(FAILING_KEY)
    assert judge(verifier, CATCHING, tests).outcome is Outcome.CORRECT
    unshowable = CATCHING.replace("return 'R'", RAISES)
    assert judge(verifier, unshowable, tests).outcome is Outcome.CORRECT
    assert judge(verifier, NOT_CATCHING, tests).outcome is Outcome.INCORRECT


def test_an_int_too_long_to_print_fails_its_case(verifier: UnitTestVerifier) -> None:
    tests = CheckTests("f", "def check(c):\n    r = c(1)\n    assert r == 1, r\n")
    verdict = judge(verifier, "def f(x): return 10 ** 9000", tests)
    assert (verdict.outcome, verdict.detail["failure"]) == (Outcome.INCORRECT, "wrong_answer")
