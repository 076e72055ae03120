"""Objects of the program in tests: classes with operators, exceptions, values of derived classes, and objects that lie."""

from __future__ import annotations

import pytest

from tests.sandbox import Case, cases, judge, load
from verifiers import Outcome
from verifiers.unit_tests import AssertTests, CallCase, CallTests, CheckTests, FunctionTests, UnitTestVerifier

DATA = load("unit_tests/objects")


POISON = """
class math:
    isclose = lambda *a: True
def isclose(*a): return True
class Counter(E): pass
"""


@pytest.mark.parametrize("case", cases(DATA["equals everything"]))
def test_an_object_that_equals_everything_passes_nothing(verifier: UnitTestVerifier, case: Case) -> None:
    case.check(verifier)
    assert judge(verifier, case.program + POISON, case.tests).outcome is Outcome.INCORRECT


@pytest.mark.parametrize("raised", ["StopIteration", "StopAsyncIteration", "GeneratorExit"])
@pytest.mark.parametrize("kind", ["{0}", "type('E', ({0},), {{}})", "type('E', (ValueError, {0}), {{}})"])
def test_an_exception_that_ends_loops_ends_no_test(verifier: UnitTestVerifier, raised: str, kind: str) -> None:
    made = kind.format(raised)
    if "ValueError" in made and raised == "GeneratorExit":
        made = made.replace("ValueError, ", "")
    program = f"def solve(n): raise {made}"
    for statement in (
        "for got in map(solve, [3]): assert got == 16",
        "assert all(got == 16 for got in map(solve, [3]))",
        "def each():\n    for n in (3,): yield solve(n)\nfor got in each(): assert got == 16",
    ):
        assert judge(verifier, program, AssertTests((statement,))).outcome is Outcome.INCORRECT


@pytest.mark.parametrize("case", cases(DATA["exceptions"]))
def test_exceptions_keep_their_kind_and_content(verifier: UnitTestVerifier, case: Case) -> None:
    case.check(verifier)
    assert judge(verifier, case.program + "\ndef f(*a): pass", case.tests).outcome is Outcome.INCORRECT


@pytest.mark.parametrize("case", cases(DATA["values"]) + cases(DATA["given"]))
def test_values_of_the_programs_own_types_and_functions_that_tests_give(verifier: UnitTestVerifier, case: Case) -> None:
    case.check(verifier)
    assert judge(verifier, case.mistaken(), case.tests).outcome is Outcome.INCORRECT


def test_a_prefix_is_continued_under_every_kind_of_tests(verifier: UnitTestVerifier) -> None:
    prefix = "def helper(x): return 2 * x\n\ndef double(x):\n    '''Twice x.'''\n"
    for tests in (
        CheckTests("double", "def check(f): assert f(3) == helper(3)", prefix),
        AssertTests(("assert double(3) == helper(3) == 6",), prefix=prefix),
        CallTests("double", (CallCase((3,), 6),), prefix),
        FunctionTests("from solution import double\ndef test_it(): assert double(3) == helper(3)", prefix=prefix),
    ):
        for completion in ("    return helper(x)\n", f"```python\n{prefix}    return helper(x)\n```"):
            verdict = judge(verifier, completion, tests)
            assert verdict.outcome is Outcome.CORRECT, (tests, completion, verdict.detail)
        for completion in (
            "    return x\n",
            "    return helper(x)\n\ndef helper(x): return 6 if x == 3 else 0\ndouble = None\n",
            "    pass\n",
        ):
            assert judge(verifier, completion, tests).score == 0, (tests, completion)


@pytest.mark.parametrize("case", cases(DATA["secrets"]))
def test_what_tests_give_leads_nowhere_else(verifier: UnitTestVerifier, case: Case) -> None:
    case.check(verifier)


def test_deriving_from_the_programs_class_is_refused(verifier: UnitTestVerifier) -> None:
    verdict = judge(verifier, "class A: pass", AssertTests(("class B(A): pass\nassert B()",)))
    assert (verdict.outcome, verdict.detail["failure"]) == (Outcome.INCORRECT, "unsupported")
    assert "derives from a class of the program" in str(verdict.detail["exception"])


@pytest.mark.parametrize(
    "expression", ["f(2) == (4,)", "f(2) == [4]", "4 in f(2)", "f(2) < 5", "f(2) == 4", "[f(2)] == [4]"]
)
@pytest.mark.parametrize("cls", ["tuple", "list", "int", "str", "dict"])
def test_an_instance_of_a_derived_class_is_no_plain_data(verifier: UnitTestVerifier, cls: str, expression: str) -> None:
    program = f"""
class Own({cls}):
    def __eq__(self, other): return True
    def __lt__(self, other): return True
    def __contains__(self, item): return True
    __hash__ = None
def f(n): return Own()
"""
    verdict = judge(verifier, program, AssertTests((f"assert {expression}",)))
    assert (verdict.outcome, verdict.detail["failure"]) == (Outcome.INCORRECT, "unsupported"), verdict.detail
