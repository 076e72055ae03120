"""Jobs one after another: none finds a part of the runtime, or the files of the one before."""

from __future__ import annotations

import pytest

from tests.sandbox import judge
from verifiers import Outcome
from verifiers.unit_tests import CallCase, CallTests, CheckTests, FunctionTests, StdioCase, StdioTests, UnitTestVerifier

pytestmark = pytest.mark.sandbox(timeout_s=2, workers=1)
SQUARE = "def square(x):\n    return x * x\n"
TEST_FILE = FunctionTests("from solution import square\ndef test_it(): assert square(3) == 9\n")


def test_programs_find_no_part_of_the_runtime_after_a_test_file(verifier: UnitTestVerifier) -> None:
    assert judge(verifier, SQUARE, TEST_FILE).outcome is Outcome.CORRECT
    parts = "('sandbox', 'verifiers', 'test_files', 'pytest')"
    program = f"import sys\nprint([name for name in sys.modules if any(part in name for part in {parts})])"
    assert judge(verifier, program, StdioTests((StdioCase("", "[]"),))).outcome is Outcome.CORRECT


def test_files_of_one_problem_are_not_there_for_the_tests_of_the_next(verifier: UnitTestVerifier) -> None:
    files = {"helper.py": "NINE = 9\n"}
    calls = CallTests("square", (CallCase((3,), 9),), files=files)
    check = "import helper\ndef check(f):\n    assert f(3) == helper.NINE\n"
    assert judge(verifier, SQUARE, calls).outcome is Outcome.CORRECT
    assert judge(verifier, SQUARE, CheckTests("square", check, files=files)).outcome is Outcome.CORRECT
    assert judge(verifier, SQUARE, CheckTests("square", check)).outcome is Outcome.VERIFIER_ERROR
