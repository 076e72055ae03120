"""Results of classes that derive from plain ones: compared by their content here, and the rest is the program's."""

from __future__ import annotations

import pytest

from tests.sandbox import Case, cases, judge, load
from verifiers import Outcome
from verifiers.unit_tests import CheckTests, UnitTestVerifier

DATA = load("unit_tests/own_classes")


@pytest.mark.parametrize("case", cases(DATA["right"]))
def test_right_programs_pass_and_mistakes_do_not(verifier: UnitTestVerifier, case: Case) -> None:
    case.check(verifier)
    assert judge(verifier, case.mistaken(), case.tests).outcome is Outcome.INCORRECT


@pytest.mark.parametrize("case", cases(DATA["unsupported"]) + cases(DATA["refused"]))
def test_what_is_not_sent_is_no_wrong_answer(verifier: UnitTestVerifier, case: Case) -> None:
    case.check(verifier)


def test_a_named_tuple_is_not_its_own_judge(verifier: UnitTestVerifier) -> None:
    program = """
from typing import NamedTuple
class Point(NamedTuple):
    x: int
    def __eq__(self, other): return True
    def __getattr__(self, name): return 4
def area(n): return Point(1)
"""
    for condition in ("f(2) == (4,)", "(4,) == f(2)", "f(2).x == 4", "f(2) == f(2)._replace(x=4)", "4 in f(2)"):
        tests = CheckTests("area", f"def check(f): assert {condition}")
        assert judge(verifier, program, tests).outcome is Outcome.INCORRECT, condition
