# ruff: noqa: E501 - a program reads best on one line
"""Whose fault it is that tests can't run: a program turns no failure of its own into an error of the verifier."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from verifiers import Outcome, Problem
from verifiers.unit_tests import AssertTests, CheckTests, FunctionTests, UnitTestVerifier


@pytest.fixture(scope="module")
def verifier() -> Iterator[UnitTestVerifier]:
    verifier = UnitTestVerifier(timeout_s=2)
    yield verifier
    verifier.close()


def check(body: str) -> CheckTests:
    return CheckTests("f", f"def check(c):\n    {body}\n")


def file(source: str) -> FunctionTests:
    return FunctionTests("import pytest, unittest\n" + source)


UNSHOWABLE = "class R:\n    def __repr__(self): {}\n    __str__ = __repr__\ndef f(*a): return R()"
RAISES, NO_TEXT, EXITS = (
    UNSHOWABLE.format(how) for how in ("raise ValueError('no')", "return 5", "raise SystemExit(0)")
)
SHOWN = [
    check("r = c(1)\n    assert r == 1, r"),
    check("r = c(1)\n    assert r == 1, f'{r}'"),
    check("assert {1: 2}[c(1)] == 2"),
    check("r = c(1)\n    if r != 1: raise ValueError(r)"),
    AssertTests(("assert {1: 2}[f(1)] == 2",)),
    file("import solution\nRESULTS = {1: 2}[solution.f()]\ndef test_it(): pass"),
    file("import solution\nclass T(unittest.TestCase):\n    def test_it(self): self.assertEqual(solution.f(), 1)"),
]


@pytest.mark.parametrize("tests", SHOWN)
@pytest.mark.parametrize("program", [RAISES, NO_TEXT, EXITS])
def test_an_object_that_can_not_be_shown_fails_its_case(
    verifier: UnitTestVerifier, program: str, tests: object
) -> None:
    verdict = verifier(program, Problem("p", "", tests))
    assert verdict.outcome is Outcome.INCORRECT, verdict.detail
    assert verdict.detail["failure"] in ("wrong_answer", "exception", "exit")


LACKING = {
    "an assert": AssertTests(("assert f(1) == 1",)),
    "setup code": AssertTests(("assert g(root) == 1",), setup="root = Node(1)"),
    "a check": check("pass"),
    "an import": file("from solution import f\ndef test_it(): pass"),
    "an import in a case": file("def test_it():\n    from solution import f"),
    "an attribute": file("import solution\ndef test_it(): assert solution.f(1) == 1"),
    "an attribute at once": file("import solution\nRESULT = solution.f(1)\ndef test_it(): pass"),
    "a star": file("from solution import *\ndef test_it(): assert f(1) == 1"),
    "a star at once": file("from solution import *\nRESULT = f(1)\ndef test_it(): pass"),
    "a module": file("import solution.f\ndef test_it(): pass"),
}


@pytest.mark.parametrize("name", LACKING)
def test_what_the_program_lacks_is_its_exception(verifier: UnitTestVerifier, name: str) -> None:
    verdict = verifier("def g(*a): return 1", Problem("p", "", LACKING[name]))
    assert (verdict.outcome, verdict.detail["failure"]) == (Outcome.INCORRECT, "exception"), verdict.detail


ESCAPES = {
    "a constant of another type": ("LIMIT = 'a'", "from solution import LIMIT\nX = LIMIT * 2 + 1\ndef test_it(): pass"),
    "an object for a constant": ("class L: pass\nLIMIT = L()", "from solution import LIMIT\nX = ','.join([LIMIT])\ndef test_it(): pass"),
    "through a helper": ("def f(): pass", "import solution\ndef run(): return solution.f() + 1\nX = run()\ndef test_it(): pass"),
    "through a list": ("def f(): pass", "from solution import f\ncases = []\ncases.append(f())\nX = cases[0] + 1\ndef test_it(): pass"),
    "no source code": ("def f(): return '('", "from solution import f\nX = eval(f())\ndef test_it(): pass"),
    "no parameters": ("CASES = []", "from solution import CASES\n@pytest.mark.parametrize('x', CASES)\ndef test_it(x): pass"),
    "bad parameters": ("CASES = 5", "from solution import CASES\n@pytest.mark.parametrize('x', CASES)\ndef test_it(x): pass"),
    "a condition": ("OLD = True", "from solution import OLD\n@pytest.mark.skipif(OLD, reason='')\ndef test_it(): assert 0"),
    "a condition as text": ("OLD = 'True'", "from solution import OLD\n@pytest.mark.skipif(OLD, reason='')\ndef test_it(): assert 0"),
    "not implemented": ("def f(): raise NotImplementedError", "import solution\ndef test_it():\n    try: solution.f()\n    except NotImplementedError: pytest.skip('later')"),
    "nothing there": ("x = 1", "import solution\ndef test_it():\n    if not hasattr(solution, 'f'): pytest.skip('later')"),
    "nothing there at all": ("x = 1", "import solution\nif not hasattr(solution, 'f'): pytest.skip('later', allow_module_level=True)\ndef test_it(): pass"),
    "skipTest": ("def f(): pass", "import solution\nclass T(unittest.TestCase):\n    def test_it(self):\n        if solution.f() is None: self.skipTest('later')"),
    "a decorator": ("def f(test): return None", "from solution import f\n@f\ndef test_it(): pass"),
    "a module that runs itself": ("import types\nm = types.ModuleType('unittest.__main__')", "import solution\nX = solution.m.TestCase\ndef test_it(): pass"),
    "a module that is none": ("import types\nnothing = types.ModuleType('os.nothing')", "import solution\nX = solution.nothing\ndef test_it(): pass"),
    "a seed that is none": ("import random\nrandom.seed = 5", "import random, solution\nrandom.seed(0)\ndef test_it(): pass"),
    "a seed that fails": ("import random\ndef seed(n): raise ValueError\nrandom.seed = seed", "import random, solution\nrandom.seed(0)\ndef test_it(): pass"),
    "no random": ("import sys\nsys.modules['random'] = 5", "import random, solution\nrandom.seed(0)\ndef test_it(): pass"),
    "an environment that is none": ("import os\nos.environ = 5\ndef f(): pass", "import os, solution\nos.environ['A'] = 'b'\nsolution.f()\ndef test_it(): pass"),
    "a module that is none of its own": ("import sys\nsys.modules['solution'] = 5\ndef f(): pass", "import solution\nsolution.x = 1\ndef test_it(): pass"),
    "a metaclass": ("M = 5", "from solution import M\nclass T(metaclass=M): pass\ndef test_it(): pass"),
}  # fmt: skip


@pytest.mark.parametrize("name", ESCAPES)
def test_no_program_breaks_its_tests(verifier: UnitTestVerifier, name: str) -> None:
    program, source = ESCAPES[name]
    verdict = verifier(program, Problem("p", "", file(source)))
    assert verdict.outcome is Outcome.INCORRECT, verdict.detail


BROKEN = {
    "setup": AssertTests(("assert f() == 1",), setup="x = 1 / 0"),
    "after a call": AssertTests(("assert f() == 1",), setup="x = f()\ny = 1 / 0"),
    "no check": CheckTests("f", "def chek(c): pass"),
    "a check's own": CheckTests("f", "X = [][0]\ndef check(c): assert c() == 1"),
    "a file's own": file("from solution import f\nX = f()\nY = [][0]\ndef test_it(): assert f() == 1"),
    "an unknown name": file("from solution import f\nX = f(unknown)\ndef test_it(): assert f() == 1"),
    "parameters": file("from solution import f\n@pytest.mark.parametrize('x', 5)\ndef test_it(x): assert f() == 1"),
    "skipped": file("from solution import f\n@pytest.mark.skip\ndef test_it(): assert f() == 1"),
    "skips itself": file("from solution import f\ndef test_it(): pytest.skip('later')"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_what_no_program_could_pass_is_a_broken_test(verifier: UnitTestVerifier, name: str) -> None:
    verdict = verifier("def f(*a): return 1", Problem("p", "", BROKEN[name]))
    assert (verdict.outcome, verdict.detail["failure"]) == (Outcome.VERIFIER_ERROR, "broken_test"), verdict.detail


def test_a_function_of_the_tests_may_fail_with_an_object_of_the_program(verifier: UnitTestVerifier) -> None:
    test = file("import solution\ndef key(x): raise ValueError(x)\ndef test_it(): assert solution.f(key) == 'caught'")
    honest = "class R: pass\ndef f(key):\n    try: key(R())\n    except ValueError: return 'caught'"
    assert verifier(honest, Problem("p", "", test)).outcome is Outcome.CORRECT
    unshowable = RAISES.replace("def f(*a): return R()", honest.partition("\n")[2])
    assert verifier(unshowable, Problem("p", "", test)).outcome is Outcome.CORRECT
    assert verifier(RAISES, Problem("p", "", test)).outcome is Outcome.INCORRECT


def test_an_int_too_long_to_print_fails_its_case(verifier: UnitTestVerifier) -> None:
    verdict = verifier("def f(x): return 10 ** 9000", Problem("p", "", check("r = c(1)\n    assert r == 1, r")))
    assert (verdict.outcome, verdict.detail["failure"]) == (Outcome.INCORRECT, "wrong_answer")
