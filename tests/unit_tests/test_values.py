"""Plain data that programs and tests exchange, and how results are compared with what is expected."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from ipaddress import ip_address
from pathlib import PurePosixPath

import pytest

from tests.sandbox import judge
from verifiers import Outcome
from verifiers.unit_tests import (
    AssertTests,
    CallCase,
    CallTests,
    CheckTests,
    UnitTestVerifier,
)


def calls(*cases: tuple[tuple[object, ...], object]) -> CallTests:
    return CallTests("f", tuple(CallCase(args, expected) for args, expected in cases))


def test_a_default_factory_is_the_function_that_it_was(verifier: UnitTestVerifier) -> None:
    tests = AssertTests(
        (
            (
                "from collections import defaultdict\n"
                "d = defaultdict(lambda: 7, {1: 2})\n"
                "assert f(d) == 9\n"
                "assert d == {1: 2, 5: 7}"
            ),
            "d = g()\nassert d['a'] == 3 and d['a'] == 3 and d == {'a': 3}",
        )
    )
    program = (
        "from collections import defaultdict\ndef f(d): return d[1] + d[5]\ndef g(): return defaultdict(lambda: 3)"
    )
    assert judge(verifier, program, tests).outcome is Outcome.CORRECT
    assert judge(verifier, program.replace("3)", "4)"), tests).outcome is Outcome.INCORRECT
    lying = program.replace("lambda: 3", "lambda: type('E', (), {'__eq__': lambda *a: True, '__hash__': None})()")
    assert judge(verifier, lying, tests).outcome is Outcome.INCORRECT


VALUES: list[object] = [
    None,
    -0.0,
    10**400,
    b"\x00\xff",
    {1: {"a": (None,)}},
    {1, 2},
    range(3),
    "\ud83d\ude00",
    ["\ude00\ud83d", "\ud83d"],
    PurePosixPath("a/b"),
    ip_address("10.0.0.1"),
    re.compile(b"a+", re.DOTALL),
    defaultdict(list, {1: [2]}),
    defaultdict(Counter),
]


NAN = float("nan")


@pytest.mark.parametrize("tolerance", [None, 1e-6])
@pytest.mark.parametrize("returned", ["float('nan')", "float('inf') - float('inf')", "-float('nan')"])
def test_an_expected_nan_equals_nan(verifier: UnitTestVerifier, returned: str, tolerance: float | None) -> None:
    expected = {
        "%s": NAN,
        "[1.5, %s]": [1.5, NAN],
        "(%s, 'x')": (NAN, "x"),
        "{'a': [{'b': (%s, 1)}], 'c': 2}": {"a": [{"b": (NAN, 1)}], "c": 2},
        "complex(1, %s)": complex(1, NAN),
        "[None, 2]": [None, 2],
    }
    for text, value in expected.items():
        tests = CallTests("f", (CallCase((), value),), tolerance=tolerance)
        program = f"def f(): return {text.replace('%s', returned)}"
        assert judge(verifier, program, tests).score == 1, text
        for wrong in ("0.0", "None", "float('inf')", "'nan'"):
            other = program.replace(returned, wrong) if "%s" in text else f"def f(): return [{returned}, 2]"
            assert judge(verifier, other, tests).score == 0, (text, wrong)


def test_an_integer_that_no_float_holds_is_compared_exactly(verifier: UnitTestVerifier) -> None:
    def tests(expected: object) -> CallTests:
        return CallTests("f", (CallCase((), expected),), tolerance=1e-6)

    for expected in (1.5, NAN, float("inf"), 1j, [2 * 10**400]):
        for program in ("def f(): return 10**400", "def f(): return [10**400]"):
            verdict = judge(verifier, program, tests(expected))
            assert (verdict.outcome, verdict.detail["failure"]) == (Outcome.INCORRECT, "wrong_answer"), expected
    assert judge(verifier, "def f(): return 1e300", tests(10**400)).outcome is Outcome.INCORRECT
    assert judge(verifier, "def f(): return 1.5", tests(10**5000)).outcome is Outcome.INCORRECT
    assert judge(verifier, "def f(): return 10**5000", tests(10**5000)).outcome is Outcome.CORRECT


@pytest.mark.parametrize("value", VALUES, ids=lambda value: repr(value)[:20])
def test_plain_data_crosses_both_ways_unchanged(verifier: UnitTestVerifier, value: object) -> None:
    assert judge(verifier, "def f(x): return x", calls(((value,), value))).score == 1
    other = "different" if value != "different" else None
    assert judge(verifier, "def f(x): return x", calls(((value,), other))).score == 0
    kind = f"def f(x): return type(x).__name__ == {type(value).__name__!r}"
    assert judge(verifier, kind, calls(((value,), True))).score == 1


@pytest.mark.parametrize("deep", ["(r,)", "frozenset({r})"])
def test_results_that_cannot_be_sent_back_are_the_programs_failure(verifier: UnitTestVerifier, deep: str) -> None:
    tests = CheckTests("f", "def check(candidate):\n    assert candidate(candidate(0)) == 0")
    program = f"""
import sys
sys.setrecursionlimit(10**6)
def f(r):
    for _ in range(2900): r = {deep}
    return r
"""
    verdict = judge(verifier, program, tests)
    assert verdict.detail["failure"] == "exception"
    assert "nested more than 1000 levels deep" in str(verdict.detail["exception"])
    source = """
def check(candidate):
    r = 0
    for _ in range({}): r = {}
    assert candidate(r) == 0
"""
    given = CheckTests("f", source.format(2900, deep))
    assert judge(verifier, "def f(r): return 0", given).detail["failure"] == "unsupported"
    # How deep Python's JSON goes is another matter in each version; what crosses is the same in all.
    assert judge(verifier, "def f(r): return 0", CheckTests("f", source.format(950, deep))).outcome is Outcome.CORRECT
