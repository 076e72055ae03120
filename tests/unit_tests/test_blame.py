"""Whose fault it is that tests can't run: a program turns no failure of its own into an error of the verifier."""

from __future__ import annotations

import pytest

from tests.sandbox import Case, cases, judge, load
from verifiers import Outcome
from verifiers.unit_tests import CheckTests, UnitTestVerifier

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


@pytest.mark.parametrize("case", cases(DATA["broken"]))
def test_what_no_program_could_pass_is_a_broken_test(verifier: UnitTestVerifier, case: Case) -> None:
    case.check(verifier)


def test_an_int_too_long_to_print_fails_its_case(verifier: UnitTestVerifier) -> None:
    tests = CheckTests("f", "def check(c):\n    r = c(1)\n    assert r == 1, r\n")
    verdict = judge(verifier, "def f(x): return 10 ** 9000", tests)
    assert (verdict.outcome, verdict.detail["failure"]) == (Outcome.INCORRECT, "wrong_answer")
