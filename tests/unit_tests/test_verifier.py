"""What the unit-test verifier says of ordinary programs."""

from __future__ import annotations

import json
import math
from collections import defaultdict

import pytest

from tests.sandbox import Case, Tests, cases, judge, load
from verifiers import InvalidArgumentError, Outcome, UnknownNameError, VerifierContractError
from verifiers.unit_tests import (
    AssertTests,
    CallCase,
    CallTests,
    CheckTests,
    FunctionTests,
    StdioCase,
    StdioTests,
    UnitTestVerifier,
)

PREFIX = '''import math

def helper(x):
    return x * 2

def area(r):
    """Area of a circle."""
'''
DATA = load("unit_tests/verifier")
AREA = CheckTests(
    "area", "def check(candidate):\n    assert abs(candidate(1) - math.pi) < 1e-9\n    assert helper(2) == 4", PREFIX
)


def calls(*cases: tuple[tuple[object, ...], object]) -> CallTests:
    return CallTests("f", tuple(CallCase(args, expected) for args, expected in cases))


@pytest.mark.parametrize(
    "completion",
    [
        "    return math.pi * r ** 2\n",
        "```python\n    return math.pi * r ** 2\n```",
        "Sure:\n```python\ndef area(r):\n    return helper(r) * math.pi * r / 2\n```\nDone.",
        "```\nold\n```\nbetter:\n```py\nimport math\n\ndef area(r):\n    return math.pi * r * r\n```",
        "```python\nfrom __future__ import annotations\narea = lambda r: math.pi * r * r\n```",
        "```python\r\ndef area(r):\r\n    return math.pi * r * r\r\n```",
    ],
)
def test_a_completion_continues_the_prefix_or_stands_alone(verifier: UnitTestVerifier, completion: str) -> None:
    assert judge(verifier, completion, AREA).outcome is Outcome.CORRECT


@pytest.mark.parametrize(
    ("completion", "failure"),
    [
        ("    return 3", "wrong_answer"),
        ("    return 1 / 0", "exception"),
        ("    return (", "syntax_error"),
        ("    return open('/etc/passwd', 'w')", "forbidden"),
        ("    return bytearray(1 << 40)", "memory"),
        ("    raise SystemExit", "exit"),
        ("    import os; os._exit(0)", "exit"),
        ("    import os; os.abort()", "crash"),
        ("    return 'x' * (1 << 25)", "output_limit"),
        ("    while True: pass", "timeout"),
        ("def other(): return 1", "wrong_answer"),
    ],
)
def test_each_failure_has_its_class(verifier: UnitTestVerifier, completion: str, failure: str) -> None:
    verdict = judge(verifier, completion, AREA)
    assert verdict.detail["failure"] == failure, verdict.detail
    assert verdict.outcome is (Outcome.TIMEOUT if failure == "timeout" else Outcome.INCORRECT)
    assert verdict.score == 0


@pytest.mark.parametrize("completion", ["", "  \n", "```python\n```"])
def test_no_program_is_no_answer(verifier: UnitTestVerifier, completion: str) -> None:
    verdict = judge(verifier, completion, AREA)
    assert verdict.outcome is Outcome.NO_ANSWER
    assert verdict.detail["isolation"] == judge(verifier, "    return 3", AREA).detail["isolation"]


@pytest.mark.parametrize(
    "program",
    [
        "g = []\ndef f(x):\n    while True: g.append(None)",
        "g = []\ndef f(x):\n    while True: g.append('%d' % len(g))",
        "g = {}\ndef f(x):\n    while True: g[len(g)] = (len(g),)",
        "g = []\nwhile True: g.append(None)",
    ],
)
def test_memory_that_small_objects_fill_is_memory(program: str) -> None:
    verifier = UnitTestVerifier(timeout_s=5, memory_mib=100)
    detail = judge(verifier, program, calls(((1,), 2))).detail
    assert (detail["failure"], detail["exception"]["type"]) == ("memory", "MemoryError")  # type: ignore[index]  # a mapping, by its documentation
    script = program.replace("def f(x):\n    ", "")
    assert judge(verifier, script, StdioTests((StdioCase("", ""),))).detail["failure"] == "memory"
    verifier.close()


def test_detail_is_deterministic_and_cost_is_apart(verifier: UnitTestVerifier) -> None:
    program = "print({'a', 'b', 'c'}, object())\ndef f(x):\n    raise KeyError(object())"
    first, second = (judge(verifier, program, calls(((1,), 2))) for _ in range(2))
    assert first == second
    assert first.detail["exception"]["type"] == "KeyError"  # type: ignore[index]  # a mapping, by its documentation
    assert "object at 0x..." in str(first.detail["stdout"])
    assert first.cost["cpu_seconds"] > 0
    assert first.cost["bytes"] > 1 << 20


@pytest.mark.parametrize("case", cases(DATA["asserts"]))
def test_assert_tests_reach_into_the_program(verifier: UnitTestVerifier, case: Case) -> None:
    case.check(verifier)
    assert isinstance(case.tests, AssertTests)
    broken = AssertTests((*case.tests.asserts, "assert 1 == 2"))
    assert judge(verifier, case.program, broken).outcome is Outcome.INCORRECT


def test_partial_credit_is_the_share_of_cases() -> None:
    verifier = UnitTestVerifier(partial_credit=True, timeout_s=2)
    program = "def f(x): return 1 // x if x < 9 else x"
    cases = calls(((1,), 1), ((0,), 0), ((10,), 10), ((11,), 0))
    verdict = judge(verifier, program, cases)
    assert (verdict.outcome, verdict.score) == (Outcome.SCORED, 0.5)
    assert [case["passed"] for case in verdict.detail["cases"]] == [True, False, True, False]  # type: ignore[attr-defined]  # a tuple of mappings, by its documentation
    check = CheckTests("f", "def check(g):\n    assert g(10) == 10\n    assert g(0) == 0")
    verdict = judge(verifier, program, check)
    assert (verdict.outcome, verdict.score, verdict.detail["total"]) == (Outcome.SCORED, 0, 1), "a check is one case"
    exits = "import os\ndef f(x): return 1 if x == 1 else os._exit(0)"
    assert judge(verifier, exits, cases).score == 0.25
    scripts = StdioTests((StdioCase("1", "1"), StdioCase("2", "2"), StdioCase("x", "0")))
    assert judge(verifier, "print(int(input()))", scripts).score == pytest.approx(2 / 3)
    verifier.close()


@pytest.mark.parametrize(
    ("statement", "answers", "others"),
    [
        ("assert max(3, 4) == 7", ["max"], []),  # only a builtin can be what is tested
        ("assert max(solve(3), 0) == 7", ["solve"], ["max"]),
        ("assert isclose(solve(3), 7) and math.isclose(solve(3), 7)", ["solve"], ["isclose", "math"]),
        ("assert isclose(3, 4) == 7", ["isclose"], []),
    ],
)
def test_whose_names_the_names_in_asserts_are(
    verifier: UnitTestVerifier, statement: str, answers: list[str], others: list[str]
) -> None:
    right = "".join(f"def {name}(*a): return 7\n" for name in answers)
    lying = "".join(f"def {name}(*a): return True\n" for name in others if name != "math")
    lying += "class math: isclose = lambda *a: True\n" if "math" in others else ""
    assert judge(verifier, right + lying, AssertTests((statement,))).outcome is Outcome.CORRECT
    assert judge(verifier, right.replace("7", "6") + lying, AssertTests((statement,))).outcome is Outcome.INCORRECT


@pytest.mark.parametrize(
    "tests",
    [CheckTests("f", "def check(candidate: return"), AssertTests(("assert (",)), AssertTests(()), StdioTests(())],
)
def test_a_broken_test_is_no_wrong_answer(verifier: UnitTestVerifier, tests: Tests) -> None:
    verdict = judge(verifier, "def f(): pass", tests)
    assert verdict.outcome is Outcome.VERIFIER_ERROR
    assert math.isnan(verdict.score)


AT_MODULE_LEVEL = {
    "assert": CheckTests("f", "def check(candidate): pass\nassert f(3)[0] == 9"),
    "call of check": CheckTests("f", "def check(candidate):\n    assert candidate(3)[0] == 9\ncheck(f)"),
    "setup": AssertTests(("assert x == 9",), setup="x = f(3)[0]\nassert x == 9"),
    "test file": FunctionTests("from solution import f\nX = f(3)[0] + 0\ndef test_x(): assert X == 9"),
}
"""Tests that run the program outside of any case."""


@pytest.mark.parametrize("tests", AT_MODULE_LEVEL.values(), ids=AT_MODULE_LEVEL)
@pytest.mark.parametrize("wrong", ["[8]", "None", "[]", "['x']", "['x', 'y']"])
def test_who_breaks_test_code_with_a_result_is_wrong(verifier: UnitTestVerifier, tests: Tests, wrong: str) -> None:
    assert judge(verifier, "def f(n): return [n * n]", tests).outcome is Outcome.CORRECT
    verdict = judge(verifier, f"def f(n): return {wrong}", tests)
    assert verdict.outcome is Outcome.INCORRECT
    assert verdict.detail["failure"] == "wrong_answer"


def test_a_recursion_of_program_and_test_is_the_programs_failure(verifier: UnitTestVerifier) -> None:
    tests = CheckTests("f", "def check(candidate):\n    def g(n): return candidate(g)\n    assert candidate(g) == 1")
    program = "import sys\nsys.setrecursionlimit(10**6)\ndef f(g): return {}"
    assert judge(verifier, program.format("g(1)"), tests).score == 0
    assert judge(verifier, program.format("1"), tests).outcome is Outcome.CORRECT


def test_bad_arguments_say_what_was_expected(verifier: UnitTestVerifier) -> None:
    with pytest.raises(VerifierContractError, match=r"expected a reference of type CheckTests.*got str"):
        judge(verifier, "x", "reference")
    with pytest.raises(UnknownNameError, match=r"unknown isolation 'docker'\. Known: auto, available, none, strict"):
        UnitTestVerifier(isolation="docker")  # type: ignore[arg-type]  # what is tested
    for argument in (object(), defaultdict(lambda: 1)):
        with pytest.raises(InvalidArgumentError, match="a CallCase holds plain data"):
            judge(verifier, "def f(x): pass", calls(((argument,), 1)))
    with pytest.raises(InvalidArgumentError, match=r"files are named like 'a/b.py', got '../x.py'"):
        judge(verifier, "def f(x): pass", StdioTests((), files={"../x.py": ""}))
    with pytest.raises(InvalidArgumentError, match="1 completions came with 0 problems"):
        verifier.verify_batch(["x"], [])


def test_a_prelude_is_the_programs_alone(verifier: UnitTestVerifier) -> None:
    tests = CallTests("f", (CallCase((1,), 3),), prelude="two = 2\ndef f(x): return x + two\ndef g(x): return x + two")
    assert judge(verifier, "def f(x): return g(x)", tests).outcome is Outcome.CORRECT
    assert judge(verifier, "two = 3\ndef f(x): return x + two", tests).detail["failure"] == "wrong_answer"
    assert judge(verifier, "x = 1", tests).detail["failure"] == "exception", "it defines nothing that is under test"


def test_what_a_verdict_says_can_be_written_anywhere(verifier: UnitTestVerifier) -> None:
    tests: list[tuple[str, object]] = [
        ("def f(): raise ValueError('a\\ud800b')", calls(((), 1))),
        ("def f(): return 'a\\ud800b'", calls(((), 1))),
        (
            "import sys\nsys.stdout.buffer.write(b'\\xed\\xa0\\x80')\nraise ValueError('\\ud800')",
            StdioTests((StdioCase("", ""),)),
        ),
        ("f = lambda: '\\ud800 x'", CheckTests("f", "def check(c): raise KeyError(c())")),
        (
            "X = ['\\ud800']",
            FunctionTests("from solution import X\ndef test_it(): assert 0, X[0]"),
        ),
    ]
    for program, each in tests:
        verdict = judge(verifier, program, each)
        assert verdict.score == 0
        repr(dict(verdict.detail)).encode()
        json.dumps(dict(verdict.detail), ensure_ascii=False).encode()
