"""Containers that program and tests share: what either changes, both see, as in one process."""

from __future__ import annotations

import textwrap

import pytest

from tests.sandbox import Case, cases, fenced, judge, load
from verifiers import Outcome, Verdict
from verifiers.unit_tests import AssertTests, CallCase, CallTests, CheckTests, FunctionTests, UnitTestVerifier

DATA = load("unit_tests/sharing")
pytestmark = pytest.mark.sandbox(timeout_s=20, memory_mib=1024)


def on_both_sides(verifier: UnitTestVerifier, program: str, body: str, head: str = "") -> Verdict:
    """The verdict where the program runs in another process than the test."""
    lines = textwrap.indent(body, "    ")
    tests = FunctionTests(f"import solution\nfrom solution import *\n{head}\ndef test_it():\n{lines}\n")
    return judge(verifier, fenced(program), tests)


def holds_in_one_process(program: str, body: str) -> bool:
    """Whether the test holds where program and test share a namespace."""
    lines = textwrap.indent(body, "    ")
    namespace: dict[str, object] = {}
    exec(f"{program}\nclass solution: DB = globals().get('DB')\ndef test_it():\n{lines}\n", namespace)
    test = namespace["test_it"]
    assert callable(test)
    try:
        test()
    except AssertionError:
        return False
    return True


KEEPER = DATA["same"]["program"]


@pytest.mark.parametrize("body", DATA["same"]["bodies"])
def test_a_container_is_the_same_on_both_sides(verifier: UnitTestVerifier, body: str) -> None:
    verdict = on_both_sides(verifier, KEEPER, body)
    holds = holds_in_one_process(KEEPER, body)
    assert verdict.outcome is (Outcome.CORRECT if holds else Outcome.INCORRECT), verdict.detail


@pytest.mark.parametrize("program", DATA["emptying"].values(), ids=DATA["emptying"])
@pytest.mark.parametrize("case", cases(DATA["ended"]))
def test_no_program_ends_a_loop_early(verifier: UnitTestVerifier, program: str, case: Case) -> None:
    assert judge(verifier, fenced(case.program), case.tests).outcome is Outcome.CORRECT
    case.check(verifier, fenced(program))


def test_checks_and_asserts_share_what_they_keep(verifier: UnitTestVerifier) -> None:
    program = """
made = []
def f(x=None):
    made.append(x)
    return made
DB = []
def put(x): DB.append(x)
"""
    for test in (
        "def check(candidate):\n    assert candidate(1) == candidate(2)",
        "def check(candidate):\n    a = candidate(1)\n    candidate(2)\n    assert a == [1, 2]",
        "def check(candidate):\n    candidate(1).clear()\n    assert candidate(2) == [2]",
    ):
        assert judge(verifier, program, CheckTests("f", test)).score == 1
        assert judge(verifier, program.replace("return made", "return list(made)"), CheckTests("f", test)).score == 0
    asserts = AssertTests(("assert put(1) is None", "assert DB == [1]"))
    assert judge(verifier, program, asserts).score == 1
    calls = CallTests("f", (CallCase((1,), [1]), CallCase((2,), [1, 2])))
    assert judge(verifier, program, calls).score == 1
