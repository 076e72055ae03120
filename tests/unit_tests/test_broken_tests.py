"""Whose fault it is that tests can't run: tests that no program could pass are none, and no program breaks sound ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.sandbox import Case, cases, judge, load
from verifiers import InvalidArgumentError, Outcome
from verifiers.unit_tests import (
    AssertTests,
    CallCase,
    CallTests,
    CheckTests,
    FunctionTests,
    StdioCase,
    UnitTestVerifier,
)

RIGHT = "def square(x): return x * x"
WRONG = "def square(x): return 0"


@pytest.mark.parametrize(
    "text",
    [
        "equals(square(3), 9)",
        "assert square(3) == 9, 'wrong'",
        "x = square(3)\nassert x == 9",
        "if square(3) != 9: raise ValueError",
        "assert (square(3) == 9) and True",
    ],
)
def test_other_statements_can_be_tests(verifier: UnitTestVerifier, text: str) -> None:
    tests = AssertTests((text,), setup="def equals(a, b): assert a == b")
    assert [judge(verifier, program, tests).score for program in (RIGHT, WRONG)] == [1, 0]


@pytest.mark.parametrize(
    "test",
    [
        "def test_it():\n    yield\n    assert square(3) == 9",
        "class TestIt:\n    def test_it(self):\n        yield\n        assert square(3) == 9",
        "import unittest\nclass A(unittest.TestCase):\n    async def test_it(self): assert square(3) == 9",
        "import unittest\nclass A(unittest.TestCase):\n    def test_it(self):\n        yield\n        assert square(3) == 9",
    ],
)
def test_tests_of_which_nothing_would_run_are_refused(verifier: UnitTestVerifier, test: str) -> None:
    verdict = judge(verifier, WRONG, FunctionTests(f"from solution import square\n{test}"))
    assert (verdict.outcome, verdict.detail["failure"]) == (Outcome.VERIFIER_ERROR, "unsupported")
    assert "is a generator or a coroutine" in str(verdict.detail["reason"])


@pytest.mark.parametrize(
    ("tests", "reason"),
    [
        (
            CheckTests("square", "def check(candidate):\n    yield\n    assert candidate(3) == 9"),
            "would run none of its asserts",
        ),
        (CheckTests("square", "async def check(candidate): assert candidate(3) == 9"), "would run none of its asserts"),
        (CheckTests("square", "def check(candidate): assert candidat(3) == 9"), "name 'candidat' is not defined"),
        (FunctionTests("from solution import square\ndef test_it():\n    if square(3) != 9: unheard_of()\n"), ""),
    ],
)
def test_tests_that_no_program_can_pass_or_fail_are_broken(
    verifier: UnitTestVerifier, tests: CheckTests | FunctionTests, reason: str
) -> None:
    for program in (RIGHT, WRONG):
        verdict = judge(verifier, program, tests)
        assert (verdict.outcome, verdict.detail["failure"]) == (Outcome.VERIFIER_ERROR, "broken_test")
        assert reason in str(verdict.detail["exception"])


Make = Callable[[Any], object]


@pytest.mark.parametrize(
    ("make", "value", "message"),
    [
        (AssertTests, (5,), r"asserts must be a tuple, of which each item is text, got \(5,\)"),
        (lambda value: AssertTests((), files=value), {"a.py": 3}, "files must be a mapping from text to text, got"),
        (lambda value: CallCase(value, 9), 3, "args must be a tuple, got 3"),
        (lambda value: CallCase((), 9, value), ["x"], r"kwargs must be a mapping, got \['x'\]"),
        (lambda value: CallTests("f", value), (((3,), 9),), "cases must be a tuple, of which each item is a CallCase"),
        (lambda value: CallTests("f", (), tolerance=value), "1e-6", "tolerance must be a number or None, got '1e-6'"),
        (
            lambda value: CallTests("f", (), tolerance=value),
            float("nan"),
            "tolerance must be a number or None, got nan",
        ),
        (lambda value: StdioCase(value, ""), 3, "stdin must be text, got 3"),
        (lambda value: StdioCase("3", "8", value), "90", "alternatives must be a tuple, of which each item is text"),
    ],
)
def test_tests_of_other_types_are_refused_when_they_are_made(make: Make, value: object, message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        make(value)


@pytest.mark.parametrize("completion", [5, None])
def test_a_completion_is_text(verifier: UnitTestVerifier, completion: Any) -> None:
    with pytest.raises(InvalidArgumentError, match=f"a completion must be a string, got {completion} for problem 'p'"):
        judge(verifier, completion, AssertTests(("assert f(1) == 1",)))


DATA = load("unit_tests/blame")
RAISES, NO_TEXT, EXITS = "raise ValueError('no')", "return 5", "raise SystemExit(0)"
"""How an object of a program can't be shown."""


@pytest.mark.parametrize("case", cases(DATA["unshowable"]))
@pytest.mark.parametrize("how", [RAISES, NO_TEXT, EXITS])
def test_an_object_that_can_not_be_shown_fails_its_case(verifier: UnitTestVerifier, how: str, case: Case) -> None:
    case.check(verifier, case.program.replace("HOW", how))


@pytest.mark.parametrize("case", cases(DATA["lacking"]) + cases(DATA["broken"]))
def test_what_the_program_lacks_is_its_exception_and_what_no_program_could_pass_a_broken_test(
    verifier: UnitTestVerifier, case: Case
) -> None:
    case.check(verifier)


def test_an_int_too_long_to_print_fails_its_case(verifier: UnitTestVerifier) -> None:
    tests = CheckTests("f", "def check(c):\n    r = c(1)\n    assert r == 1, r\n")
    verdict = judge(verifier, "def f(x): return 10 ** 9000", tests)
    assert (verdict.outcome, verdict.detail["failure"]) == (Outcome.INCORRECT, "wrong_answer")
