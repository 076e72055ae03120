"""Text of the program that test code would run as code, among the expected values and the report."""

from __future__ import annotations

import pytest

from tests.sandbox import Case, cases, judge, load
from verifiers import Outcome
from verifiers.unit_tests import AssertTests, CheckTests, FunctionTests, UnitTestVerifier

DATA = load("unit_tests/foreign_code")
pytestmark = pytest.mark.sandbox(timeout_s=5)
REPORT = '{"total":1}\n{"passed":true,"name":"x"}\n{"done":true}\n'
FORGERY = f"__import__('os').write(7, {REPORT.encode()!r}) and __import__('os')._exit(0)"
ANNOTATED = f"def f(x): return 0\nf.__annotations__ = {{'x': {FORGERY!r}}}"


@pytest.mark.parametrize("case", cases(DATA["hostile"]))
def test_text_of_the_program_is_not_run(verifier: UnitTestVerifier, case: Case) -> None:
    case.check(verifier, case.program.replace("FORGERY", repr(FORGERY)))


@pytest.mark.parametrize("kind", ["check", "asserts"])
def test_nor_in_other_kinds_of_tests(verifier: UnitTestVerifier, kind: str) -> None:
    body = "assert get_type_hints({}) == {{'x': 777}}"
    if kind == "check":
        source = f"from typing import get_type_hints\ndef check(candidate):\n    {body.format('candidate')}\n"
        tests: AssertTests | CheckTests = CheckTests("f", source)
    else:
        tests = AssertTests((body.format("f"),), "from typing import get_type_hints")
    verdict = judge(verifier, ANNOTATED, tests)
    assert (verdict.outcome, verdict.detail["failure"]) == (Outcome.INCORRECT, "unsupported"), verdict.detail


FORMULA = """
FORMULA = "[each for each in ().__class__.__base__.__subclasses__() if False] or 777"
def f(): return 5
"""


@pytest.mark.parametrize("formula", ["solution.FORMULA", "FORMULA", "LOCAL"])
def test_a_text_that_the_program_defines_is_its_own_too(verifier: UnitTestVerifier, formula: str) -> None:
    test = (
        "import solution\n"
        "from solution import FORMULA\n"
        "from solution import FORMULA as LOCAL\n"
        "def test_it():\n"
        f"    assert eval({formula}) == 777\n"
    )
    named = AssertTests(("assert eval(FORMULA) == 777",))
    for tests in (FunctionTests(test), named):
        verdict = judge(verifier, FORMULA, tests)
        assert (verdict.outcome, verdict.detail["failure"]) == (Outcome.INCORRECT, "unsupported"), verdict.detail


@pytest.mark.parametrize("case", cases(DATA["honest"]))
def test_what_only_computes_is_run(verifier: UnitTestVerifier, case: Case) -> None:
    case.check(verifier)


@pytest.mark.parametrize("case", cases(DATA["composed"]))
def test_text_that_names_anything_is_not_run(verifier: UnitTestVerifier, case: Case) -> None:
    case.check(verifier)


LYING_NAME = """
import sys, types
class N:
    def isidentifier(self): return True
    def __str__(self): return "g(): pass\\nraise SystemExit\\ndef h"
class function:
    reads = 0
    def __call__(self, x): return 0
    @property
    def __name__(self):
        function.reads += 1
        return "f" if function.reads < 3 else N()
frame = sys._getframe()
while frame:
    if "describe_type_of" in frame.f_globals:
        frame.f_globals["describe_type_of"].__globals__["STANDARD_CLASSES"]["function"] = function
    frame = frame.f_back
f = function()
"""


def test_a_name_that_is_no_text_is_none(verifier: UnitTestVerifier) -> None:
    test = """
from unittest.mock import create_autospec
from solution import f
def test_it():
    m = create_autospec(f, return_value=3)
    assert m(1) == 3
    assert f(2) == 4
"""
    assert judge(verifier, LYING_NAME, FunctionTests(test)).score == 0


@pytest.mark.parametrize(
    "program", ["import unittest.mock as helper", "import timeit as helper", "import os as helper"]
)
def test_the_program_does_not_choose_which_module_a_name_of_the_tests_is(
    verifier: UnitTestVerifier, program: str
) -> None:
    verdict = judge(verifier, program, AssertTests(("assert helper.ANY == 5", "assert helper.timeit('1')")))
    assert verdict.outcome is Outcome.INCORRECT, verdict.detail


def test_a_module_that_only_computes_may_have_another_name(verifier: UnitTestVerifier) -> None:
    program = "import math as m\ndef area(r): return m.pi * r * r"
    verdict = judge(verifier, program, AssertTests(("assert area(1) == m.pi",)))
    assert verdict.outcome is Outcome.CORRECT, verdict.detail


NAMED = """
CODE = FORGERY
INSERTED = "f(*args, **kwargs):\\n    pass\\n" + CODE + "\\ndef f"
class S(str):
    uses = 0
    def __str__(self):
        S.uses += 1
        return INSERTED if S.uses != WHEN else "f"
    def __format__(self, spec):
        S.uses += 1
        return "x:(" + CODE + "),zz" if S.uses == WHEN else "x"
def f(*_): return 0
f.__name__ = f.__qualname__ = f.__module__ = S("f")
def fields(names): return [S(names[0]), *names[1:]]
def call(*_): return f(1)
"""
NAMING = {
    "a mock": """
from unittest.mock import create_autospec
from solution import f
def test_it():
    m = create_autospec(f, return_value=3)
    assert m(1) == 3 == f(1)
""",
    "a replaced function": """
from unittest.mock import patch
import solution
def test_it():
    with patch.object(solution, "f", autospec=True) as m:
        m.return_value = 3
        solution.call()
    assert solution.f(1) == 3
""",
    "the name of a function of the tests": """
from unittest.mock import create_autospec
from solution import f, fields
def test_it():
    def g(): pass
    g.__name__ = fields("f")[0]
    m = create_autospec(g, return_value=3)
    assert m() == 3 == f(1)
""",
    "a dataclass": """
from dataclasses import asdict, make_dataclass
from solution import f, fields
def test_it():
    row = make_dataclass("Row", fields("xy"))(1, 2)
    assert asdict(row) == {"x": 1, "y": 2} and f(1) == 3
""",
}


@pytest.mark.parametrize("when", [1, 2, 5])
@pytest.mark.parametrize("test", NAMING.values(), ids=NAMING)
def test_a_name_that_becomes_another_text_is_not_run(verifier: UnitTestVerifier, test: str, when: int) -> None:
    # A generator of code checks a name, and inserts what `str` and `format` of it say then.
    program = NAMED.replace("FORGERY", repr(FORGERY)).replace("WHEN", str(when))
    verdict = judge(verifier, program, FunctionTests(test))
    assert verdict.outcome is Outcome.INCORRECT, verdict.detail
    assert verdict.detail["passed"] == 0, "text of the program has written to the report"


PRINTED = """
import io, sys
def write(frame, event, argument):
    if type(sys.stdout) is io.StringIO and not sys.stdout.getvalue():
        io.StringIO.write(sys.stdout, FORGERY)
sys.setprofile(write)
"""


def test_what_a_program_prints_when_it_is_imported_is_its_answer(verifier: UnitTestVerifier) -> None:
    test = """
import contextlib, io
def test_it():
    buffer = io.StringIO()
    with contextlib.redirect_stdout(buffer):
        import solution
    assert eval(buffer.getvalue()) == 777
"""
    verdict = judge(verifier, PRINTED.replace("FORGERY", repr(FORGERY)), FunctionTests(test))
    assert (verdict.outcome, verdict.detail["failure"]) == (Outcome.INCORRECT, "unsupported"), verdict.detail


LYING_SET = """
class S:
    def difference(self, other):
        self.items = list(other)
        return set()
    def __iter__(self): return iter(self.items)
    def __len__(self): return 3
def f(x): return S()
"""


def test_a_result_is_not_asked_how_it_differs(verifier: UnitTestVerifier) -> None:
    test = """
import unittest
from solution import f
class T(unittest.TestCase):
    def test_it(self): self.assertSetEqual(f(1), {1, 2})
"""
    tests = FunctionTests(test)
    assert judge(verifier, LYING_SET, tests).outcome is Outcome.INCORRECT
    own = """
from collections.abc import Set
class S(Set):
    def __contains__(self, x): return x in (1, 2)
    def __iter__(self): return iter((1, 2))
    def __len__(self): return 2
    def difference(self, other): return set(self) - set(other)
def f(x): return S()
"""
    for program in ("def f(x): return {x, 2}", own):
        assert judge(verifier, program, tests).outcome is Outcome.CORRECT
    assert judge(verifier, "def f(x): return {x, 3}", tests).outcome is Outcome.INCORRECT


@pytest.mark.parametrize("case", cases(DATA["callbacks"]))
def test_an_assertion_in_a_callback_counts_and_tells_nothing(verifier: UnitTestVerifier, case: Case) -> None:
    case.check(verifier)


@pytest.mark.parametrize("number", range(3, 10))
def test_a_program_can_not_name_a_descriptor_of_the_tester(verifier: UnitTestVerifier, number: int) -> None:
    test = """
import io
import pytest
from solution import path
@pytest.mark.parametrize("opened", [open, io.open])
def test_it(opened):
    with opened(path()) as file:
        assert "expected" in file.read()
"""
    verdict = judge(verifier, f"def path(): return {number}", FunctionTests(test))
    assert (verdict.outcome, verdict.detail["failure"]) == (Outcome.INCORRECT, "wrong_answer")
    assert "Bad file descriptor" in str(verdict.detail["exception"])
