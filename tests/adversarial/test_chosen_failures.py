"""Test files that fail, within their tests or before them: by the program's fault, however it says so, or by their own."""

from __future__ import annotations

import pytest

from tests.sandbox import judge, load
from verifiers import Outcome
from verifiers.unit_tests import AssertTests, CheckTests, FunctionTests, UnitTestVerifier

CRASHING = """
import faulthandler, os
def crash(wrong):
    if wrong: {how}
"""
CRASHES = {
    "a fault": "faulthandler._sigsegv()",
    "an abort": "os.abort()",
}
MADE_OF_AN_ANSWER = "assert total(digits(3) or object()) == 6"


pytestmark = pytest.mark.sandbox(timeout_s=3, memory_mib=1024, workers=1)


@pytest.mark.parametrize("how", CRASHES.values(), ids=CRASHES)
@pytest.mark.parametrize("kind", ["check", "file"])
def test_a_program_by_which_the_interpreter_of_its_tests_crashes_has_failed(
    verifier: UnitTestVerifier, kind: str, how: str
) -> None:
    head = CRASHING.format(how=how)
    tests: CheckTests | FunctionTests = CheckTests("f", f"{head}\ndef check(f):\n    crash(f(2) != 4)\n")
    if kind == "file":
        tests = FunctionTests(f"{head}\nfrom solution import f\ndef test_it():\n    crash(f(2) != 4)\n")
    right = judge(verifier, "def f(x): return 2 * x", tests)
    assert right.outcome is Outcome.CORRECT, right.detail
    wrong = judge(verifier, "def f(x): return 0", tests)
    assert (wrong.outcome, wrong.detail["failure"]) == (Outcome.INCORRECT, "crash"), wrong.detail
    assert "signal" in str(wrong.detail["reason"])


def test_an_argument_that_cannot_cross_because_of_an_answer_fails_the_program(verifier: UnitTestVerifier) -> None:
    tests = AssertTests((MADE_OF_AN_ANSWER,), entry_points=("total", "digits"))
    right = judge(verifier, "def digits(n): return bytes(range(n + 1))\ndef total(data): return sum(data)", tests)
    assert right.outcome is Outcome.CORRECT, right.detail
    wrong = judge(verifier, "def digits(n): return bytearray()\ndef total(data): return 0", tests)
    assert (wrong.outcome, wrong.detail["failure"]) == (Outcome.INCORRECT, "unsupported"), wrong.detail


def test_an_argument_that_never_crosses_is_the_error_of_the_tests(verifier: UnitTestVerifier) -> None:
    tests = FunctionTests("import threading\nfrom solution import f\ndef test_it(): assert f(threading.Lock()) == 0\n")
    verdict = judge(verifier, "def f(x): return 0", tests)
    assert (verdict.outcome, verdict.detail["failure"]) == (Outcome.VERIFIER_ERROR, "unsupported"), verdict.detail


ENDING = "import os\nfrom solution import f\ndef test_it():\n    if f(2) != 4: os._exit(3)\n"


def test_a_program_by_which_the_tests_end_their_process_has_failed(verifier: UnitTestVerifier) -> None:
    wrong = judge(verifier, "def f(x): return 0", FunctionTests(ENDING))
    assert (wrong.outcome, wrong.detail["failure"]) == (Outcome.INCORRECT, "unsupported"), wrong.detail


HEAD = "import pytest\nfrom solution import f\ndef test_it():\n"
ASKS = "        bool(pytest.approx(1))\n"
LED = {
    "if": f"    if f(2) != 4:\n{ASKS}",
    "else": f"    if f(2) == 4: pass\n    else:\n{ASKS}",
    "except": f"    try: [0] * 9 + [1 // f(2)]\n    except ZeroDivisionError:\n{ASKS}",
    "or": "    assert f(2) == 4 or pytest.approx(1)\n",
    "match": f"    match f(2):\n      case 0:\n{ASKS}",
    "helper": f"    if f(2) != 4: look()\ndef look():\n{ASKS}",
}


@pytest.mark.parametrize("body", LED.values(), ids=LED)
def test_a_program_that_leads_a_case_to_what_is_not_supported_has_failed(verifier: UnitTestVerifier, body: str) -> None:
    tests = FunctionTests(HEAD + body)
    assert judge(verifier, "def f(x): return 2 * x", tests).outcome is Outcome.CORRECT
    wrong = judge(verifier, "def f(x): return 0", tests)
    assert (wrong.outcome, wrong.detail["failure"]) == (Outcome.INCORRECT, "unsupported"), wrong.detail


def test_what_comes_before_any_answer_is_the_error_of_the_tests(verifier: UnitTestVerifier) -> None:
    body = "    with pytest.warns(UserWarning): f(2)\n"
    verdict = judge(verifier, "def f(x): return 0", FunctionTests(HEAD + body))
    assert (verdict.outcome, verdict.detail["failure"]) == (Outcome.VERIFIER_ERROR, "unsupported"), verdict.detail


DATA = load("adversarial/module_level")


PROGRAMS = [
    "x = 1",
    "raise ImportError('x')",
    "def g(): pass",
    "f = 3",
    "raise NameError('y')",
    "import no_such_module",
    "def f(): raise SystemExit",
    "def f(): return 'undefined_name'",
    "def f(): return None",
]
HEADS = DATA["heads"]


@pytest.mark.parametrize("head", HEADS)
def test_no_program_has_a_test_file_break(verifier: UnitTestVerifier, head: str) -> None:
    test = f"{HEADS[head]}\ndef test_it():\n    assert f() == 1\n"
    verdicts = [judge(verifier, program, FunctionTests(test)) for program in PROGRAMS]
    assert {verdict.outcome for verdict in verdicts} == {Outcome.INCORRECT}, [item.detail for item in verdicts]


@pytest.mark.parametrize(
    "head",
    [
        "import numpy",
        "from solution import f\nimport numpy",
        "from solution import f\nresult = f(undefined_name)",
        "undefined_name",
        "import pytest\npytest.no_such_thing()",
        "from solution import f\nimport pytest\npytest.no_such_thing(f)",
        "from math import no_such_thing",
        "raise ImportError('not here')",
        "from solution import f\nfirst = f() or undefined_name",
        "import solution\nif not callable(getattr(solution, 'f', None)): undefined_name",
    ],
)
def test_a_test_file_that_is_broken_says_nothing_of_the_program(verifier: UnitTestVerifier, head: str) -> None:
    test = FunctionTests(f"{head}\ndef test_it(): pass\n")
    for program in ("def f(*a): return 1", "def f(*a): raise ValueError"):
        assert judge(verifier, program, test).outcome is Outcome.VERIFIER_ERROR
