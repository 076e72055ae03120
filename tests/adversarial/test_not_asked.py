"""What a program is not asked while its tests run, since it would see what they expect, is refused."""

from __future__ import annotations

import pytest

from tests.sandbox import Case, cases, judge, load
from verifiers import Outcome
from verifiers.unit_tests import AssertTests, UnitTestVerifier

DATA = load("adversarial/not_asked")


@pytest.mark.parametrize("case", cases(DATA["asked"]))
def test_right_programs_pass_and_wrong_ones_do_not(verifier: UnitTestVerifier, case: Case) -> None:
    case.check(verifier)
    assert judge(verifier, case.mistaken(), case.tests).outcome is Outcome.INCORRECT


ANSWERS = ("False", "True", "other == 5", "exit()", "1 / 0")


@pytest.mark.parametrize("answer", ANSWERS)
@pytest.mark.parametrize("case", cases(DATA["refused"]))
def test_what_would_let_the_program_judge_itself_is_refused(
    verifier: UnitTestVerifier, case: Case, answer: str
) -> None:
    case.check(verifier, case.program.replace("ANSWER", answer))


def test_only_the_case_fails_in_which_it_was_not_asked() -> None:
    verifier = UnitTestVerifier(partial_credit=True, workers=1)
    asserts = ("assert Card() != 7", "assert Card() is not None", "assert [Card()] != [8]")
    program = "class Card:\n    def __eq__(self, other): return False\n"
    verdict = judge(verifier, program, AssertTests(asserts))
    assert (verdict.detail["passed"], verdict.detail["total"]) == (1, 3), verdict.detail
