"""Exceptions of the tests in the hands of the program: it lets them through and returns them as they are, and no others."""

from __future__ import annotations

import pytest

from tests.sandbox import Case, cases, judge, load
from verifiers.unit_tests import FunctionTests, UnitTestVerifier

DATA = load("unit_tests/given_exceptions")


@pytest.mark.parametrize("case", cases(DATA["honest"]))
def test_the_tests_get_their_own_exceptions_back(verifier: UnitTestVerifier, case: Case) -> None:
    case.check(verifier)
    assert judge(verifier, case.mistaken(), case.tests).score == 0


@pytest.mark.parametrize("case", cases(DATA["ending"]))
def test_what_ends_a_test_is_not_lent(verifier: UnitTestVerifier, case: Case) -> None:
    case.check(verifier)


@pytest.mark.parametrize("case", cases(DATA["forged"]))
def test_a_program_names_no_exception_that_it_was_not_lent(verifier: UnitTestVerifier, case: Case) -> None:
    verdict = case.check(verifier)
    assert verdict.detail["failure"] in ("protocol", "exception", "wrong_answer"), verdict.detail


def test_the_forging_program_is_heard(verifier: UnitTestVerifier) -> None:
    head = DATA["forged"]["test_file"].partition("BODY")[0]
    tests = FunctionTests(f"{head}def test_it():\n    with pytest.raises(ValueError): solve(other, 0)")
    assert judge(verifier, DATA["forged"]["program"], tests).score == 1


@pytest.mark.parametrize("case", cases(DATA["aliases"]))
def test_no_name_that_the_program_gives_to_a_class_catches_a_failure(verifier: UnitTestVerifier, case: Case) -> None:
    case.check(verifier)


@pytest.mark.parametrize("case", cases(DATA["numbers"]))
@pytest.mark.parametrize("number", ["0", "1", "-1", "True", "10 ** 9"])
def test_only_classes_that_it_was_lent_have_numbers(verifier: UnitTestVerifier, case: Case, number: str) -> None:
    assert case.check(verifier, case.program.replace("NUMBER", number)).detail["isolation"]


def test_what_the_program_sets_on_a_copy_says_nothing_of_who_failed(verifier: UnitTestVerifier) -> None:
    program = """
def run(f):
    try: f()
    except Exception as error:
        error.candidate_error, error.unsupported = {}, True
        raise
"""
    test = """
import pytest
from solution import run
class E(Exception): pass
ERROR = E("x")
def boom(): raise ERROR
def test_it():
    for _ in range(2):
        with pytest.raises(E) as info: run(boom)
        assert info.value is ERROR and not hasattr(ERROR, "unsupported")
def test_uncaught(): run(boom)
"""
    verdict = judge(verifier, program, FunctionTests(test))
    assert (verdict.detail["passed"], verdict.detail["failure"]) == (1, "exception"), verdict.detail
