"""Names with two underscores that a program's module defines, such as its version, and those that are the import system's."""

from __future__ import annotations

import pytest

from tests.sandbox import judge
from verifiers import Outcome
from verifiers.unit_tests import FunctionTests, UnitTestVerifier

PROGRAM = '''"""Counts."""
__version__ = "1.2"
__author__ = "A. Author"
__hooks__ = {"a": 1}
__wrapped__ = __test__ = __signature__ = lambda: 1 / 0
__path__ = ["/"]
def f(): return 1
'''
RIGHT = [
    "from solution import __version__, __doc__, f\n"
    "def test_it(): assert (__version__, __doc__, f()) == ('1.2', 'Counts.', 1)",
    "import solution\ndef test_it(): assert solution.__version__ == '1.2' and solution.__hooks__ == {'a': 1}",
    "import solution\ndef test_it(): assert solution.__author__ and not hasattr(solution, '__license__')",
]


@pytest.mark.parametrize("test", RIGHT)
def test_a_modules_metadata_is_the_programs(verifier: UnitTestVerifier, test: str) -> None:
    assert judge(verifier, PROGRAM, FunctionTests(test)).outcome is Outcome.CORRECT
    assert judge(verifier, "def f(): return 1", FunctionTests(test)).outcome is Outcome.INCORRECT


@pytest.mark.parametrize(
    "name", ["__wrapped__", "__test__", "__signature__", "__loader__.x", "__spec__.x", "__path__[0]"]
)
def test_what_the_import_system_reads_is_not(verifier: UnitTestVerifier, name: str) -> None:
    test = f"import solution\ndef test_it(): assert solution.{name} and solution.f() == 1"
    assert judge(verifier, PROGRAM, FunctionTests(test)).score == 0
