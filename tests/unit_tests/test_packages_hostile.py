"""Programs that attack the comparison of arrays: none may pass tests whose answer it does not compute."""

from __future__ import annotations

import numpy as np
import pytest

from tests.sandbox import Tests, fenced, judge, load
from verifiers import Outcome, Problem
from verifiers.unit_tests import AssertTests, CallCase, CallTests, CheckTests, FunctionTests, UnitTestVerifier

DATA = load("unit_tests/packages_hostile")
pytestmark = pytest.mark.sandbox(packages=("numpy",), timeout_s=3)


def check(*lines: str) -> CheckTests:
    body = "\n    ".join(("x, e = np.array([1, 2, 3]), np.array([2., 4., 6.])", *lines))
    return CheckTests("f", f"import numpy as np\ndef check(f):\n    {body}\n")


TEST_FILE = """
import numpy as np
from solution import *
def test_it():
    np.testing.assert_array_equal(f(np.array([1, 2, 3])), np.array([2., 4., 6.]))
"""
STYLES: dict[str, Tests] = {
    "assert_array_equal": check("np.testing.assert_array_equal(f(x), e)"),
    "assert_allclose": check("np.testing.assert_allclose(f(x), e)"),
    "assert_almost_equal": check("np.testing.assert_almost_equal(f(x), e)"),
    "assert_equal": check("np.testing.assert_equal(f(x), e)"),
    "array_equal": check("assert np.array_equal(f(x), e)"),
    "expected first": check("assert np.array_equal(e, f(x))"),
    "allclose": check("r = f(x)", "assert r.shape == e.shape and np.allclose(r, e)"),
    "equal": check("assert (f(x) == e).all() and (f(x) == e).shape == e.shape"),
    "equal to it": check("assert (e == f(x)).all() and (e == f(x)).shape == e.shape"),
    "difference": check("assert np.abs(f(x) - e).max() < 1e-6"),
    "difference from it": check("assert np.linalg.norm(e - f(x)) < 1e-6"),
    "not unequal": check("assert not np.any(f(x) != e)"),
    "tolist": check("assert f(x).tolist() == e.tolist()"),
    "list": check("assert list(f(x)) == [2, 4, 6]"),
    "items": check("assert all(a == b for a, b in zip(f(x), e, strict=True))"),
    "bytes": check("assert np.asarray(f(x), float).tobytes() == e.tobytes()"),
    "asserts": AssertTests(("assert np.array_equal(f(np.array([1, 2, 3])), np.array([2., 4., 6.]))",)),
    "bare names": AssertTests(("assert array_equal(f([1, 2, 3]), [2, 4, 6])",)),
    "asserting": AssertTests(("assert assert_array_equal(f([1, 2, 3]), [2, 4, 6]) is None",)),
    "test file": FunctionTests(TEST_FILE),
    "calls": CallTests("f", (CallCase((np.array([1, 2, 3]),), np.array([2.0, 4.0, 6.0])),)),
    "calls, closely": CallTests("f", (CallCase((np.array([1, 2, 3]),), np.array([2.0, 4.0, 6.0])),), tolerance=1e-6),
}


@pytest.mark.parametrize("style", STYLES)
def test_the_right_program_passes(verifier: UnitTestVerifier, style: str) -> None:
    program = """
import numpy as np
from numpy.testing import assert_array_equal
from numpy import array_equal
"""
    verdict = judge(verifier, f"{program}def f(x): return np.asarray(x) * 2.0", STYLES[style])
    assert verdict.outcome is Outcome.CORRECT, dict(verdict.detail)


@pytest.mark.parametrize("source", DATA["programs"].values(), ids=DATA["programs"])
def test_no_hostile_program_passes(verifier: UnitTestVerifier, source: str) -> None:
    program = f"import numpy as np\n{source}\n"
    problems = [Problem(style, "", tests) for style, tests in STYLES.items()]
    verdicts = dict(zip(STYLES, verifier.verify_batch([program] * len(problems), problems), strict=True))
    wrong = {style: dict(verdict.detail) for style, verdict in verdicts.items() if verdict.score != 0}
    assert not wrong


SKIPPING = """
class SkipTest(Exception): pass
SkipTest.__module__ = 'numpy.testing'
def f(n):
    if n == 1: return 10
    raise SkipTest('enough')
"""
ONE_SIZE = """
import numpy as np
class Answer:
    shape = (3,)
    def __len__(self): return 1
    def __getitem__(self, index): raise IndexError
    def __iter__(self): return iter([np.empty((0, 3))])
def f(x): return Answer()
"""
JUDGES = """
import numpy as np
class npt:
    @staticmethod
    def assert_allclose(*arguments): pass
class LA:
    @staticmethod
    def norm(x): return 0.0
linalg = LA
def f(x): return np.zeros(2)
"""
THREE_CASES = FunctionTests(
    "import unittest, numpy.testing, solution\nclass T(unittest.TestCase):\n"
    + "".join(f"    def test_{n}(self): self.assertEqual(solution.f({n}), {10 * n})\n" for n in (1, 2, 3))
)


@pytest.mark.parametrize(
    ("program", "tests"),
    [
        (SKIPPING, THREE_CASES),
        (ONE_SIZE, check("assert f(x).shape == (3,) and np.allclose(f(x), e)")),
        (ONE_SIZE, check("assert np.shape(f(x)) == (3,) and np.allclose(f(x), e)")),
        (JUDGES, AssertTests(("npt.assert_allclose(f(3), [9, 16])",))),
        (JUDGES, AssertTests(("assert LA.norm(f(3) - np.array([9, 16])) < 1e-6",))),
        (JUDGES, AssertTests(("assert linalg.norm(f(3) - np.array([9, 16])) < 1e-6",))),
    ],
)
def test_a_program_can_not_choose_how_tests_of_arrays_judge(
    program: str, tests: Tests, verifier: UnitTestVerifier
) -> None:
    verdict = judge(verifier, fenced(program), tests)
    assert verdict.outcome is Outcome.INCORRECT, verdict


@pytest.mark.parametrize("expected", [[9], [[9]], (9,), {"a": [9]}])
def test_a_scalar_is_no_list_of_it(expected: object, verifier: UnitTestVerifier) -> None:
    scalar = "np.int64(9)" if not isinstance(expected, dict) else "{'a': np.int64(9)}"
    program = fenced(f"import numpy as np\ndef f(x): return {scalar}")
    assert judge(verifier, program, CallTests("f", (CallCase((3,), expected),))).outcome is Outcome.INCORRECT
    right = {"a": 9} if isinstance(expected, dict) else 9
    assert judge(verifier, program, CallTests("f", (CallCase((3,), right),))).outcome is Outcome.CORRECT


def test_what_tests_set_in_numpy_is_gone_for_the_next() -> None:
    """In one worker, whose tester runs tests one after the other where they leave no trace."""
    verifier = UnitTestVerifier(packages=("numpy",), workers=1)
    program = fenced("import numpy as np\ndef f(x): return np.array([x / 3])")
    shown = check("assert str(f(1)) == '[0.33333333]'")
    setting = check("np.set_printoptions(precision=2); np.seterr(all='raise'); assert str(f(1)) == '[0.33]'")
    outcomes = [judge(verifier, program, tests).outcome for tests in (shown, setting, shown)]
    verifier.close()
    assert outcomes == 3 * [Outcome.CORRECT]
