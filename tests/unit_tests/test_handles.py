"""What test code learns of an object of the program by other means than calls, and what no liar gains by it."""

from __future__ import annotations

import pytest

from tests.sandbox import Case, cases, judge, load
from verifiers import Outcome
from verifiers.unit_tests import FunctionTests, UnitTestVerifier

DATA = load("unit_tests/handles")


@pytest.mark.parametrize("case", cases(DATA["refused"]))
def test_what_is_not_asked_of_the_program_is_refused(verifier: UnitTestVerifier, case: Case) -> None:
    case.check(verifier)


@pytest.mark.parametrize("result", ["C()", "C", "lambda *a: True", "[C()]", "type(C)"])
@pytest.mark.parametrize("case", cases(DATA["liars"]))
def test_a_description_decides_nothing(verifier: UnitTestVerifier, case: Case, result: str) -> None:
    case.check(verifier, case.program.replace("RESULT", result))


def test_the_programs_test_functions_and_classes_are_no_tests(verifier: UnitTestVerifier) -> None:
    program = """
import unittest
def test_a(): pass
class TestB:
    def test_b(self): pass
class D(unittest.TestCase):
    def test_c(self): pass
"""
    test = "from solution import test_a, TestB, D\ndef test_own(): assert callable(test_a) and TestB and D"
    verdict = judge(verifier, program, FunctionTests(test))
    assert (verdict.score, verdict.detail["total"]) == (1, 1)


EMPTY = """
R.__iter__ = lambda self: iter(())
R.__getitem__ = lambda self, i: ().__getitem__(i)
"""
ENDING = """
R.__iter__ = lambda self: self
def end(self): raise StopIteration
R.__next__ = end
R.__getitem__ = lambda self, i: ().__getitem__(i)
"""
SHRINKING = """
def size(self):
    self.asked += 1
    return 2 if self.asked == 1 else 0
R.__len__ = size
R.__iter__ = lambda self: iter(())
R.__getitem__ = lambda self, i: ().__getitem__(i)
"""


@pytest.mark.parametrize("case", cases(DATA["sized"]))
def test_a_result_holds_as_many_items_as_it_says(verifier: UnitTestVerifier, case: Case) -> None:
    case.check(verifier)
    for lie in (EMPTY, ENDING, SHRINKING):
        one_alone_is_consistent = lie is not EMPTY
        if not ("zip(f(" in case.name and one_alone_is_consistent):
            assert judge(verifier, case.program + lie, case.tests).score == 0, lie


@pytest.mark.parametrize(
    "name", ["function", "self", "cls", "code", "subject", "operation", "args", "kwargs", "number"]
)
def test_keywords_may_have_any_name(verifier: UnitTestVerifier, name: str) -> None:
    other = "b" if name == "self" else "self"
    program = (
        f"def f({name}, g): return g({name}={name})\nclass C:\n    def __init__({other}, {name}): {other}.x = {name}\n"
    )
    test = f"""
from solution import f, C
def test_it():
    assert f({name}=3, g=lambda {name}: {name} + 1) == 4 and C({name}=5).x == 5
"""
    verdict = judge(verifier, program, FunctionTests(test))
    assert verdict.outcome is Outcome.CORRECT, verdict.detail


NAMES = '''"""Counts."""
__version__ = "1.2"
__author__ = "A. Author"
__hooks__ = {"a": 1}
__wrapped__ = __test__ = __signature__ = lambda: 1 / 0
__path__ = ["/"]
def f(): return 1
'''
OF_NAMES = [
    "from solution import __version__, __doc__, f\n"
    "def test_it(): assert (__version__, __doc__, f()) == ('1.2', 'Counts.', 1)",
    "import solution\ndef test_it(): assert solution.__version__ == '1.2' and solution.__hooks__ == {'a': 1}",
    "import solution\ndef test_it(): assert solution.__author__ and not hasattr(solution, '__license__')",
]


@pytest.mark.parametrize("test", OF_NAMES)
def test_a_modules_metadata_is_the_programs(verifier: UnitTestVerifier, test: str) -> None:
    assert judge(verifier, NAMES, FunctionTests(test)).outcome is Outcome.CORRECT
    assert judge(verifier, "def f(): return 1", FunctionTests(test)).outcome is Outcome.INCORRECT


@pytest.mark.parametrize(
    "name", ["__wrapped__", "__test__", "__signature__", "__loader__.x", "__spec__.x", "__path__[0]"]
)
def test_what_the_import_system_reads_is_not(verifier: UnitTestVerifier, name: str) -> None:
    test = f"import solution\ndef test_it(): assert solution.{name} and solution.f() == 1"
    assert judge(verifier, NAMES, FunctionTests(test)).score == 0
