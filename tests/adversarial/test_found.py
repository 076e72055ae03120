"""Programs by which an adversary passed tests, or had its tests left out, before the contract was mended."""

from __future__ import annotations

import pytest

from tests.sandbox import Case, Tests, cases, judge, load
from verifiers import Outcome
from verifiers.unit_tests import AssertTests, CheckTests, FunctionTests, UnitTestVerifier

PREFIX = """
class Node:
    LEAST = 0.1
    def __init__(self, value): self.value = value
    def same(self, other): return abs(self.value - other.value) < self.LEAST
"""
SAME = CheckTests("make", "def check(make): assert make(1).same(Node(5))", PREFIX)
METHODS = FunctionTests("""
import unittest
from solution import f
class TestIt(unittest.TestCase):
    def test_one(self): self.assertEqual(f(1), 2)
    def test_two(self):
        with self.subTest(): self.assertEqual(f(1), 2)
""")
DECORATED = FunctionTests("from solution import f, mark\n@mark\ndef test_it(): assert f(1) == 2\n")
LEFT = FunctionTests("from solution import LIMIT, f\nTOP = LIMIT + 1\ndef test_it(): assert f(1) == TOP\n")
IMPORTED = AssertTests(("assert gcd([4, 6]) == 2",), prefix="from math import *\nfrom operator import *\n")
JUDGED = AssertTests(("assert isclose(f(1), 2)",), prefix="from math import *\n")
CAUSE = AssertTests(("try: f('q')\nexcept RuntimeError as e: c = e.__cause__\nassert isinstance(c, ValueError), c",))
NOTES = FunctionTests("""
import pytest
from solution import f
def test_it():
    with pytest.raises(RuntimeError) as info: f("q")
    error = info.value
    assert error.__notes__ == ["n"] and str(error.__context__) == "'k'" and error.__suppress_context__
""")
NEXT = CheckTests("make", "def check(make):\n    assert make().shape == (3,) and np.allclose(make(), [1, 2, 3])\n")


@pytest.mark.parametrize(
    ("program", "tests"),
    [
        ("def make(n):\n    node = Node(n)\n    node.same = bool\n    return node", SAME),
        ("def make(n):\n    node = Node(n)\n    node.LEAST = 9\n    return node", SAME),
        ("from unittest.case import _ShouldStop\ndef f(n): raise _ShouldStop", METHODS),
        ("import unittest\ndef f(n): raise unittest.SkipTest('later')", METHODS),
        ("def f(n): raise KeyboardInterrupt", METHODS),
        ("def mark(function): return 5\ndef f(n): return 1", DECORATED),
        ("def LIMIT(): pass\ndef f(n): return 1", LEFT),
        ("def gcd(numbers): return 0", IMPORTED),
        ("def isclose(*_): return True\ndef f(n): return 1", JUDGED),
        ("def f(n): raise RuntimeError", CAUSE),
        ("def f(n):\n    error = RuntimeError()\n    error.__cause__ = TypeError()\n    raise error", CAUSE),
        ("def f(n):\n    error = RuntimeError()\n    error.add_note('m')\n    raise error from None", NOTES),
    ],
)
def test_a_wrong_program_is_incorrect(verifier: UnitTestVerifier, program: str, tests: Tests) -> None:
    verdict = judge(verifier, program, tests)
    assert (verdict.outcome, verdict.detail["passed"]) == (Outcome.INCORRECT, 0), verdict


def test_a_right_one_is_correct(verifier: UnitTestVerifier) -> None:
    assert judge(verifier, "def make(n): return Node(n + 4)", SAME).outcome is Outcome.CORRECT
    assert judge(verifier, "def f(n): return 2", METHODS).outcome is Outcome.CORRECT
    assert judge(verifier, "LIMIT = 1\ndef f(n): return 2", LEFT).outcome is Outcome.CORRECT
    gcd = "import math\ndef gcd(numbers): return math.gcd(*numbers)"
    assert judge(verifier, gcd, IMPORTED).outcome is Outcome.CORRECT
    assert judge(verifier, "def f(n): return 2.0", JUDGED).outcome is Outcome.CORRECT
    cause = "def f(x):\n    try: int(x)\n    except ValueError as error: raise RuntimeError('w') from error"
    assert judge(verifier, cause, CAUSE).outcome is Outcome.CORRECT
    notes = """
def f(x):
    try: {}["k"]
    except KeyError:
        error = RuntimeError("w")
        error.add_note("n")
        raise error from None
"""
    assert judge(verifier, notes, NOTES).outcome is Outcome.CORRECT


@pytest.mark.parametrize(
    "message",
    ['["unloadable",[],[],{}]', '["loaded",[]]', '["loaded",[],[],[7]]', '["returned",[],[],[true],5,[]]', "[]"],
)
def test_a_message_of_its_own_is_no_error_of_the_tests(verifier: UnitTestVerifier, message: str) -> None:
    written = f"import os\ndata = {message!r}.encode()\nos.write(4, len(data).to_bytes(4, 'big') + data)\n"
    verdict = judge(verifier, f"{written}def f(n): return 0", AssertTests(("assert f(1) == 2",)))
    assert verdict.outcome is Outcome.INCORRECT, verdict


def test_numpy_reads_no_object_of_a_program_as_an_array() -> None:
    verifier = UnitTestVerifier(workers=1, packages=("numpy",))
    program = """
class Answer:
    shape = (3,)
    BODY
def make(): return Answer()
"""
    bodies = (
        "def __len__(self): return 1\n    def __getitem__(self, number): raise IndexError",
        "__array_interface__ = {'shape': (3,), 'typestr': '<f8', 'data': (4096, False), 'version': 3}",
        "def __array__(self, *given, **more): raise SystemExit",
    )
    for body in bodies:
        tests = CheckTests(NEXT.entry_point, f"import numpy as np\n{NEXT.test}")
        verdict = judge(verifier, program.replace("BODY", body), tests)
        assert verdict.outcome is Outcome.INCORRECT, verdict
    verifier.close()


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
