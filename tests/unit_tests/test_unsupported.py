"""What the sandbox does not do is told from a wrong answer, and scores 0 wherever the program chooses it."""

from __future__ import annotations

import textwrap

import pytest

from tests.sandbox import Case, cases, judge, load
from verifiers import Outcome, Verdict
from verifiers.unit_tests import FunctionTests, UnitTestVerifier

DATA = load("unit_tests/unsupported")


MONEY = DATA["operators"]["program"]


def of_program(verifier: UnitTestVerifier, program: str, body: str, head: str = "") -> Verdict:
    lines = textwrap.indent(body, "    ")
    test = f"import solution\nfrom solution import *\n{head}\ndef test_it():\n{lines}"
    return judge(verifier, program, FunctionTests(test))


@pytest.mark.parametrize("case", cases(DATA["operators"]))
def test_operators_with_plain_values_are_not_supported(verifier: UnitTestVerifier, case: Case) -> None:
    verdict = case.check(verifier)
    assert verdict.detail["cases"][0]["failure"] == "unsupported"  # type: ignore[index]  # cases are a tuple of dicts


def test_what_a_callback_gives_and_cannot_cross_is_not_supported(verifier: UnitTestVerifier) -> None:
    given = "import threading\ndef given(n): return threading.Lock()"
    verdict = of_program(verifier, "def f(given): return [given(1)] and 3", "assert solution.f(given) == 3", given)
    assert verdict.detail["failure"] == "unsupported", verdict.detail


@pytest.mark.parametrize("case", cases(DATA["kinds"]))
def test_what_is_not_sent_is_not_supported(verifier: UnitTestVerifier, case: Case) -> None:
    case.check(verifier)


@pytest.mark.parametrize("case", cases(DATA["right or wrong"]))
def test_what_is_supported_is_wrong_or_right(verifier: UnitTestVerifier, case: Case) -> None:
    case.check(verifier)
    plain = "class Plain: pass\ndef make(n): return Plain()"
    verdict = of_program(verifier, plain, "assert make(3) == 3")
    assert verdict.detail["failure"] == "wrong_answer"


@pytest.mark.parametrize("case", cases(DATA["classes"]))
def test_classes_of_the_tests_are_none_for_the_program(verifier: UnitTestVerifier, case: Case) -> None:
    case.check(verifier)


@pytest.mark.parametrize("program", DATA["left out"].values(), ids=DATA["left out"])
def test_no_program_has_its_tests_left_out(verifier: UnitTestVerifier, program: str) -> None:
    for body in (
        "value = make(1)\nassert (eval(value) if isinstance(value, str) else pickle.loads(value)) == 5",
        "make(1)\nassert 0",
    ):
        verdict = of_program(verifier, program, body, "import pickle")
        assert verdict.outcome is Outcome.INCORRECT, verdict.detail


def test_what_no_program_can_pass_is_the_tests_fault(verifier: UnitTestVerifier) -> None:
    for body in ("import pytest\npytest.importorskip('x')", "make(open('/dev/null'))"):
        verdict = of_program(verifier, MONEY, body)
        assert (verdict.outcome, verdict.detail["failure"]) == (Outcome.VERIFIER_ERROR, "unsupported"), verdict.detail
