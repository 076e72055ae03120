"""What a program is not asked while its tests run, since it would see what they expect, passes no wrong program."""

from __future__ import annotations

import pytest

from tests.sandbox import Case, cases, judge, load
from verifiers import Outcome
from verifiers.unit_tests import AssertTests, UnitTestVerifier

DATA = load("adversarial/not_asked")
CARD = "class Card:\n    def __eq__(self, other): return ANSWER\n"


@pytest.mark.parametrize("case", cases(DATA["asked"]))
def test_right_programs_pass_and_wrong_ones_do_not(verifier: UnitTestVerifier, case: Case) -> None:
    case.check(verifier)
    assert judge(verifier, case.mistaken(), case.tests).outcome is Outcome.INCORRECT


def test_a_program_that_is_asked_later_has_seen_nothing_before(verifier: UnitTestVerifier) -> None:
    """One that remembers with what it is compared can't use it in a later assert."""
    program = """
SEEN = []
class Card:
    def __eq__(self, other):
        SEEN.append(other)
        return False
def last(): return SEEN[-1] if SEEN else None
"""
    asserts = ("assert Card() != 7", "assert last() == 7")
    assert judge(verifier, program, AssertTests(asserts)).outcome is Outcome.INCORRECT
    partial = UnitTestVerifier(partial_credit=True, workers=1)
    assert judge(partial, program, AssertTests(asserts)).score == 0.5


def test_only_the_case_fails_in_which_it_was_not_asked() -> None:
    verifier = UnitTestVerifier(partial_credit=True, workers=1)
    asserts = ("assert Card() != 7", "assert Card() is not None", "assert [Card()] != [8]")
    for answer, passed in (("False", 3), ("other == 8", 2), ("other.rank", 1)):
        verdict = judge(verifier, CARD.replace("ANSWER", answer), AssertTests(asserts))
        assert (verdict.detail["passed"], verdict.detail["total"]) == (passed, 3), verdict.detail


def test_a_program_that_ends_when_it_is_asked_fails(verifier: UnitTestVerifier) -> None:
    program = "import os\n" + CARD.replace("ANSWER", "os._exit(0)")
    verdict = judge(verifier, program, AssertTests(("assert Card() != 7",)))
    assert (verdict.outcome, verdict.detail["failure"]) == (Outcome.INCORRECT, "exit")
