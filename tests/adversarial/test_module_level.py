"""Test files that fail before their tests do: by the program's fault, however they say so, or by their own."""

from __future__ import annotations

import pytest

from tests.sandbox import judge, load
from verifiers import Outcome
from verifiers.unit_tests import FunctionTests, UnitTestVerifier

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
