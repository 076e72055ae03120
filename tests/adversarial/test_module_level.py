# ruff: noqa: E501 - a test reads best on one line
"""Test files that fail before their tests do: by the program's fault, however they say so, or by their own."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from verifiers import Outcome, Problem
from verifiers.unit_tests import FunctionTests, UnitTestVerifier


@pytest.fixture(scope="module")
def verifier() -> Iterator[UnitTestVerifier]:
    verifier = UnitTestVerifier(timeout_s=2, memory_mib=256)
    yield verifier
    verifier.close()


PROGRAMS = [
    "x = 1",
    "raise ImportError('x')",
    "def g(): pass",
    "f = 3",
    "raise NameError('y')",
    "import no_such_module",
    "def f(): raise SystemExit",
    "def f(): return 'undefined_name'",
]
HEADS = {
    "import error": "try:\n    from solution import f\nexcept ImportError:\n    raise ImportError('please define f')",
    "from none": "try:\n    from solution import f\nexcept Exception:\n    raise ImportError('please define f') from None",
    "name error": "try:\n    from solution import f\nexcept Exception:\n    raise NameError('please define f')",
    "a function": "import importlib\ndef load():\n    try: return importlib.import_module('solution').f\n    except (ImportError, AttributeError): return None\nf = load()\nf.x",
    "a function that is wrong": "import importlib\ndef load():\n    if callable(importlib.import_module('solution').f): return undefined_name\nf = load()\nf.x",
    "import_module": "import importlib\ntry:\n    m = importlib.import_module('solution')\n    f = m.f\nexcept Exception: f = None\nif f is None: raise ImportError('no f')",
    "importorskip": "import pytest\nsolution = pytest.importorskip('solution')\nf = solution.f",
    "skip": "try:\n    from solution import f\nexcept ImportError:\n    import pytest\n    pytest.skip('no f', allow_module_level=True)",
    "exit": "try:\n    from solution import f\nexcept ImportError:\n    import sys\n    sys.exit('no')",
    "another": "try:\n    from solution import f\nexcept ImportError:\n    from other import f",
    "hasattr": "import solution\nif not hasattr(solution, 'f'): raise ImportError('no f')\nf = solution.f",
    "a condition": "import solution\nf = getattr(solution, 'f', None)\nif not callable(f): raise ImportError('no f')",
    "a wrong branch": "import solution\nf = getattr(solution, 'f', None)\nif not callable(f): undefined_name",
    "an unsupported branch": "import pytest, solution\nf = getattr(solution, 'f', None)\nif not callable(f): pytest.no_such_thing()",
    "an operator": "import solution\nf = callable(getattr(solution, 'f', 0)) and solution.f or undefined_name",
    "a call": "from solution import f\nfirst = f() or undefined_name",
}  # fmt: skip


@pytest.mark.parametrize("head", HEADS)
def test_no_program_has_a_test_file_break(verifier: UnitTestVerifier, head: str) -> None:
    test = f"{HEADS[head]}\ndef test_it():\n    assert f() == 1\n"
    verdicts = [verifier(program, Problem("p", "", FunctionTests(test))) for program in PROGRAMS]
    assert {verdict.outcome for verdict in verdicts} == {Outcome.INCORRECT}, [each.detail for each in verdicts]


@pytest.mark.parametrize(
    "head",
    ["import numpy", "from solution import f\nimport numpy", "from solution import f\nresult = f(undefined_name)", "undefined_name", "import pytest\npytest.no_such_thing()", "from solution import f\nimport pytest\npytest.no_such_thing(f)", "from math import no_such_thing", "raise ImportError('not here')"],
)  # fmt: skip
def test_a_test_file_that_is_broken_says_nothing_of_the_program(verifier: UnitTestVerifier, head: str) -> None:
    test = FunctionTests(f"{head}\ndef test_it(): pass\n")
    for program in ("def f(*a): return 1", "def f(*a): raise ValueError"):
        assert verifier(program, Problem("p", "", test)).outcome is Outcome.VERIFIER_ERROR


def test_importorskip_finds_the_program(verifier: UnitTestVerifier) -> None:
    test = FunctionTests(f"{HEADS['importorskip']}\ndef test_it():\n    assert f() == 1\n")
    assert verifier("def f(): return 1", Problem("p", "", test)).outcome is Outcome.CORRECT
