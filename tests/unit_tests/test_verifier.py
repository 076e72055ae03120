"""What the unit-test verifier says of ordinary programs."""

from __future__ import annotations

import json
import math
import re
from collections import Counter, defaultdict
from ipaddress import ip_address, ip_network
from pathlib import PurePosixPath
from typing import Literal
from uuid import UUID

import pytest

import verifiers
from tests.sandbox import Case, Tests, cases, judge, load
from verifiers import InvalidArgumentError, Outcome, VerifierContractError
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


def test_every_verdict_says_its_isolation() -> None:
    isolation: Literal["auto", "none"]
    for isolation in ("auto", "none"):
        verifier = UnitTestVerifier(isolation=isolation)
        said = {
            str(judge(verifier, completion, AREA).detail["isolation"]) for completion in ("", "    return 3", "x = (")
        }
        assert len(said) == 1
        assert (said == {"none"}) == (isolation == "none")
        verifier.close()


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


def test_deep_arguments_reach_the_program(verifier: UnitTestVerifier) -> None:
    depth = "def f(x):\n    n = 0\n    while x: x = x[0]; n += 1\n    return n"
    for levels in (400, 900):
        tests = AssertTests((f"assert f(x) == {levels}",), setup=f"x = []\nfor _ in range({levels}): x = [x]")
        assert judge(verifier, depth, tests).outcome is Outcome.CORRECT
        assert judge(verifier, depth.replace("return n", "return 5"), tests).detail["failure"] == "wrong_answer"
    chain = AssertTests(("assert f(t) == 350",), setup="t = None\nfor i in range(350): t = {'v': (i,), 'n': t}")
    assert judge(verifier, "def f(t): return 0 if t is None else 1 + f(t['n'])", chain).outcome is Outcome.CORRECT
    back = AssertTests(("def depth(x): return 0 if x == 9 else 1 + depth(x[0])\nassert f(depth) == 600",))
    deeper = """
def f(depth):
    x = 9
    for _ in range(600): x = [x]
    return depth(x)
"""
    assert judge(verifier, deeper, back).outcome is Outcome.CORRECT
    raising = "def f(x):\n    for _ in range(2000): x[:] = [x[:]]\n    raise KeyError(5)"
    assert judge(verifier, raising, AssertTests(("f([])",))).detail["failure"] == "exception"


def test_a_program_recurses_no_deeper_than_a_script(verifier: UnitTestVerifier) -> None:
    program = "import sys\ndef r(n): return n if n == 0 else r(n - 1)\ndef f(n): return r(n), sys.getrecursionlimit()"
    assert judge(verifier, program, calls(((900,), (0, 1020)))).outcome is Outcome.CORRECT
    assert judge(verifier, program, calls(((1100,), (0, 1020)))).detail["exception"]["type"] == "RecursionError"  # type: ignore[index]  # a mapping, by its documentation


@pytest.mark.parametrize("broken", ["raise ValueError('no')", "import os; os._exit(3)", "return 'x'"])
def test_an_argument_that_the_program_breaks_while_it_comes_in(verifier: UnitTestVerifier, broken: str) -> None:
    program = f"""
class K:
    def __init__(self): self.ready = False
    def __hash__(self):
        if not self.ready: return 1
        {broken}
def make(): return K()
def f(k):
    return 16
"""
    tests = AssertTests(("k = make(); k.ready = True; assert f({k: 1}) == 16",))
    assert judge(verifier, program, tests).outcome is Outcome.INCORRECT


def test_detail_is_deterministic_and_cost_is_apart(verifier: UnitTestVerifier) -> None:
    program = "print({'a', 'b', 'c'}, object())\ndef f(x):\n    raise KeyError(object())"
    first, second = (judge(verifier, program, calls(((1,), 2))) for _ in range(2))
    assert first == second
    assert first.detail["exception"]["type"] == "KeyError"  # type: ignore[index]  # a mapping, by its documentation
    assert "object at 0x..." in str(first.detail["stdout"])
    assert first.cost["cpu_seconds"] > 0
    assert first.cost["bytes"] > 1 << 20


VALUES: list[object] = [
    None,
    True,
    -0.0,
    1.5,
    10**400,
    "text\ud800",
    b"\x00\xff",
    (1, (2,)),
    [[1], []],
    {1: {"a": (None,)}},
    {1, 2},
    frozenset({3}),
    1j,
    float("inf"),
    range(3),
    {(1, 2): [3]},
    "\ud83d\ude00",
    "\U0001f600",
    ["\ude00\ud83d", "\ud83d"],
    PurePosixPath("a/b"),
    UUID(int=5),
    ip_address("10.0.0.1"),
    ip_network("2001:db8::/32"),
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


def test_nan_is_expected_in_shape_and_in_type(verifier: UnitTestVerifier) -> None:
    nan = "float('nan')"
    for expected, wrong in (
        ([NAN], f"[{nan}, {nan}]"),
        ([NAN], f"({nan},)"),
        ({"a": NAN}, f"{{'b': {nan}}}"),
        ([NAN, 1], f"[{nan}, 2]"),
        ([NAN, {1}], f"[{nan}, {{2}}]"),
    ):
        assert judge(verifier, f"def f(): return {wrong}", calls(((), expected))).score == 0, wrong
    as_lists = CallTests("f", (CallCase((), [NAN]),), tuples_as_lists=True, wrapped_outputs=True)
    assert judge(verifier, f"def f(): return ({nan},)", as_lists).score == 1
    assert judge(verifier, f"def f(): return {nan}", as_lists).score == 1


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


@pytest.mark.parametrize("case", cases(DATA["asserts"]))
def test_assert_tests_reach_into_the_program(verifier: UnitTestVerifier, case: Case) -> None:
    case.check(verifier)
    assert isinstance(case.tests, AssertTests)
    broken = AssertTests((*case.tests.asserts, "assert 1 == 2"))
    assert judge(verifier, case.program, broken).outcome is Outcome.INCORRECT


def test_setup_runs_after_the_program(verifier: UnitTestVerifier) -> None:
    program = """
class Node:
    def __init__(self, v): self.v = v; self.next = None
def total(n): return n.v + total(n.next) if n else 0
"""
    tests = AssertTests(("assert total(root) == 3",), setup="root = Node(1)\nroot.next = Node(2)")
    assert judge(verifier, program, tests).score == 1
    assert judge(verifier, program.replace("n.v +", "2 *"), tests).score == 0


def test_test_functions_import_the_program(verifier: UnitTestVerifier) -> None:
    tests = FunctionTests(
        "import solution\nfrom solution import Stack, top\n"
        "def test_push():\n"
        "    s = Stack()\n"
        "    s.push(3)\n"
        "    assert top(s) == 3 and solution.LIMIT == 5\n"
        "def test_empty():\n"
        "    try: top(Stack())\n"
        "    except IndexError: return\n"
        "    assert False\n"
    )
    program = """
LIMIT = 5
class Stack:
    def __init__(self): self.a = []
    def push(self, x): self.a.append(x)
def top(s): return s.a[-1]
"""
    verdict = judge(verifier, program, tests)
    assert (verdict.score, verdict.detail["total"]) == (1, 2)
    assert judge(verifier, program.replace("-1", "-2"), tests).detail["failure"] == "exception"
    assert judge(verifier, program.replace("s.a[-1]", "4"), tests).detail["failure"] == "wrong_answer"
    assert judge(verifier, "class Stack: pass", tests).outcome is Outcome.INCORRECT


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
    ("output", "expected", "tolerance", "comparison", "score"),
    [
        ("1 2\n3", "1 2 3\n", None, "tokens", 1),
        ("1 2\n3", "1 2 3\n", None, "lines", 0),
        ("1 2  \n3\n\n", "1 2\n3", None, "lines", 1),
        (" 1", "1", None, "lines", 0),
        ("0.3000001", "0.3", None, "tokens", 0),
        ("0.3000001", "0.3", 1e-6, "tokens", 1),
        ("0.31", "0.3", 1e-6, "tokens", 0),
        ("1e9 ok", "1000000001 ok", 1e-6, "lines", 1),
        ("nan", "1", 1e-6, "tokens", 0),
        ("NaN", "nan", 1e-6, "tokens", 1),
        ("1e400", "2e400", 1e-6, "tokens", 0),
        ("1e399", "1" + "0" * 399 + ".0", 1e-6, "tokens", 1),
        ("-1e400", "1e400", 1e-6, "tokens", 0),
        ("1.0000001e400", "1e400", 1e-6, "lines", 1),
        ("9" * 399 + ".0", "8" * 399 + ".0", 1e-6, "tokens", 0),
        ("1e9999", "9e9999", 0.0, "tokens", 0),
        ("1.7e308", "1.8e308", 0.1, "tokens", 1),
        ("1e400", "inf", 1e-6, "tokens", 0),
        ("1e400", "nan", 1e-6, "tokens", 0),
        ("Inf", "+inf", 1e-6, "tokens", 1),
        ("-inf", "inf", 1e-6, "tokens", 0),
        ("1 2", "1", 1.0, "tokens", 0),
        ("", "", None, "tokens", 1),
    ],
)
def test_stdio_comparison(
    verifier: UnitTestVerifier, output: str, expected: str, tolerance: float | None, comparison: str, score: int
) -> None:
    tests = StdioTests((StdioCase(output, expected),), tolerance, comparison)
    assert judge(verifier, "import sys\nsys.stdout.write(sys.stdin.read())", tests).score == score


@pytest.mark.parametrize(
    "program",
    [
        "print(sum(map(int, open(0).read().split())))",
        "import sys\nprint(sum(int(x) for line in sys.stdin for x in line.split()))",
        "import os\nos.write(1, str(sum(map(int, os.read(0, 99).split()))).encode())",
        "import sys\nsys.stdout.buffer.write(b'%d' % sum(map(int, sys.stdin.buffer.read().split())))",
        "def main():\n    print(int(input()) + int(input()))\nif __name__ == '__main__':\n    main()\n    exit()",
        "import atexit\na, b = int(input()), int(input())\natexit.register(lambda: print(a + b))",
        "import threading\nthreading.Thread(target=lambda: print(int(input()) + int(input()))).start()",
    ],
)
def test_scripts_read_and_write_in_every_way(verifier: UnitTestVerifier, program: str) -> None:
    assert judge(verifier, program, StdioTests((StdioCase("3\n4\n", "7\n"),))).score == 1


@pytest.mark.parametrize(
    ("program", "failure"),
    [
        ("print(5)", "wrong_answer"),
        ("print(7)\n1 / 0", "exception"),
        ("print(7", "syntax_error"),
        ("while True: pass", "timeout"),
        ("import time\nprint(7, flush=True)\ntime.sleep(100)", "timeout"),
        ("x = bytearray(1 << 40)", "memory"),
        ("while True: print('7' * 9999)", "output_limit"),
        ("import sys\nwhile True: sys.stderr.write('7' * 9999)", "output_limit"),
        ("open('/tmp/x', 'w')", "forbidden"),
        ("import socket\nsocket.socket()", "forbidden"),
        ("print(7)\nraise SystemExit(3)", "exit"),
        *((f"print(7)\nraise SystemExit({status})", "exit") for status in range(120, 125)),
        ("import os\nos.abort()", "crash"),
        ("", "no_program"),
    ],
)
def test_each_failure_of_a_script_has_its_class(program: str, failure: str) -> None:
    verifier = UnitTestVerifier(timeout_s=0.5, memory_mib=512)
    verdict = judge(verifier, program, StdioTests((StdioCase("3\n4\n", "7\n"),)))
    verifier.close()
    assert verdict.detail["failure"] == failure, verdict.detail
    assert verdict.score == 0
    expected = {"timeout": Outcome.TIMEOUT, "no_program": Outcome.NO_ANSWER}.get(failure, Outcome.INCORRECT)
    assert verdict.outcome is expected


def test_a_failed_case_of_a_script_has_its_exception() -> None:
    verifier = UnitTestVerifier(partial_credit=True, timeout_s=1)
    program = (
        "import sys\n"
        "x = int(input())\n"
        "for _ in range(400): print('debug', file=sys.stderr)\n"
        "if x == 2: raise ValueError('two\\nlines (a, line 9)')\n"
        "if x == 3: sys.exit(1)\n"
        "print(x)"
    )
    tests = StdioTests(tuple(StdioCase(str(n), "1") for n in range(1, 5)))
    detail = judge(verifier, program, tests).detail
    error = {"type": "ValueError", "message": "two\\nlines (a, line 9)", "file": "solution.py", "line": 4}
    assert [case.get("exception") for case in detail["cases"]] == [None, error, None, None]  # type: ignore[attr-defined]  # a tuple of mappings, by its documentation
    assert [case.get("failure") for case in detail["cases"]] == [None, "exception", "exit", "wrong_answer"]  # type: ignore[attr-defined]  # the same
    assert detail["exception"] == error
    assert str(detail["stderr"]).startswith("debug\n")
    assert str(detail["stderr"]).endswith("debug\nValueError: two\\nlines (a, line 9) (solution.py, line 4)\n")
    syntax = judge(verifier, "print(1", tests).detail["exception"]
    assert syntax == {"type": "SyntaxError", "message": "'(' was never closed", "file": "solution.py", "line": 1}
    verifier.close()


@pytest.mark.parametrize(
    ("names", "answers"),
    [
        ({"max"}, {"max"}),  # only a builtin can be what is tested
        ({"solve", "max"}, {"solve"}),
        ({"solve", "isclose", "math"}, {"solve"}),
        ({"isclose"}, {"isclose"}),
    ],
)
def test_whose_names_the_names_in_asserts_are(verifier: UnitTestVerifier, names: set[str], answers: set[str]) -> None:
    statement = {
        frozenset({"max"}): "assert max(3, 4) == 7",
        frozenset({"solve", "max"}): "assert max(solve(3), 0) == 7",
        frozenset({"solve", "isclose", "math"}): "assert isclose(solve(3), 7) and math.isclose(solve(3), 7)",
        frozenset({"isclose"}): "assert isclose(3, 4) == 7",
    }[frozenset(names)]
    right = "".join(f"def {name}(*a): return 7\n" for name in answers)
    lying = "".join(f"def {name}(*a): return True\n" for name in names - answers - {"math"})
    lying += "class math: isclose = lambda *a: True\n" if "math" in names else ""
    assert judge(verifier, right + lying, AssertTests((statement,))).outcome is Outcome.CORRECT
    assert judge(verifier, right.replace("7", "6") + lying, AssertTests((statement,))).outcome is Outcome.INCORRECT


def test_a_broken_test_is_no_wrong_answer(verifier: UnitTestVerifier) -> None:
    for tests in (
        CheckTests("f", "def check(candidate: return"),
        AssertTests(("assert (",)),
        AssertTests(()),
        StdioTests(()),
    ):
        verdict = judge(verifier, "def f(): pass", tests)
        assert verdict.outcome is Outcome.VERIFIER_ERROR
        assert math.isnan(verdict.score)


AT_MODULE_LEVEL = {
    "assert": CheckTests("f", "def check(candidate): pass\nassert f(3)[0] == 9"),
    "call of check": CheckTests("f", "def check(candidate):\n    assert candidate(3)[0] == 9\ncheck(f)"),
    "setup": AssertTests(("assert x == 9",), setup="x = f(3)[0]\nassert x == 9"),
    "test file": FunctionTests("from solution import f\nX = f(3)[0] + 0\ndef test_x(): assert X == 9"),
    "parameters": FunctionTests(
        "import pytest\n"
        "from solution import f\n"
        "@pytest.mark.parametrize(('x', 'y'), [f(3) + f(3)])\n"
        "def test_x(x, y): assert x == y == 9"
    ),
}
"""Tests that run the program outside of any case."""


@pytest.mark.parametrize("tests", AT_MODULE_LEVEL.values(), ids=AT_MODULE_LEVEL)
@pytest.mark.parametrize("wrong", ["[8]", "None", "[]", "['x']", "['x', 'y']"])
def test_who_breaks_test_code_with_a_result_is_wrong(verifier: UnitTestVerifier, tests: Tests, wrong: str) -> None:
    assert judge(verifier, "def f(n): return [n * n]", tests).outcome is Outcome.CORRECT
    verdict = judge(verifier, f"def f(n): return {wrong}", tests)
    assert verdict.outcome is Outcome.INCORRECT
    assert verdict.detail["failure"] == "wrong_answer"


def test_what_no_result_can_break_is_the_tests_fault(verifier: UnitTestVerifier) -> None:
    for source in ("undefined", "from math import nothing", "assert 1 == 2", "import numpy\nf(3)"):
        verdict = judge(verifier, "def f(n): return 8", CheckTests("f", f"{source}\ndef check(candidate): pass"))
        assert verdict.outcome is Outcome.VERIFIER_ERROR


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


def test_a_recursion_of_program_and_test_is_the_programs_failure(verifier: UnitTestVerifier) -> None:
    tests = CheckTests("f", "def check(candidate):\n    def g(n): return candidate(g)\n    assert candidate(g) == 1")
    program = "import sys\nsys.setrecursionlimit(10**6)\ndef f(g): return {}"
    assert judge(verifier, program.format("g(1)"), tests).score == 0
    assert judge(verifier, program.format("1"), tests).outcome is Outcome.CORRECT


def test_bad_arguments_say_what_was_expected(verifier: UnitTestVerifier) -> None:
    with pytest.raises(VerifierContractError, match=r"expected a reference of type CheckTests.*got str"):
        judge(verifier, "x", "reference")
    with pytest.raises(InvalidArgumentError, match="timeout_s must be a positive number, got 0"):
        UnitTestVerifier(timeout_s=0)
    with pytest.raises(InvalidArgumentError, match=r"isolation must be one of 'auto', 'strict', 'available', 'none'"):
        UnitTestVerifier(isolation="docker")  # type: ignore[arg-type]  # what is tested
    with pytest.raises(InvalidArgumentError, match="a CallCase holds plain data"):
        judge(verifier, "def f(x): pass", calls(((object(),), 1)))
    with pytest.raises(InvalidArgumentError, match="a CallCase holds plain data"):
        judge(verifier, "def f(x): pass", calls(((defaultdict(lambda: 1),), 1)))
    with pytest.raises(InvalidArgumentError, match=r"files are named like 'a/b.py', got '../x.py'"):
        judge(verifier, "def f(x): pass", StdioTests((), files={"../x.py": ""}))
    with pytest.raises(InvalidArgumentError, match="1 completions came with 0 problems"):
        verifier.verify_batch(["x"], [])


def test_it_is_registered() -> None:
    assert isinstance(verifiers.make("unit_tests", timeout_s=1), UnitTestVerifier)


def test_builtins_are_the_module_as_in_a_script(verifier: UnitTestVerifier) -> None:
    script = "assert __builtins__.max(1, 2) == 2 and type(__builtins__) is type(__import__('sys'))\nprint(__name__)"
    assert judge(verifier, script, StdioTests((StdioCase("", "__main__\n"),))).outcome is Outcome.CORRECT
    function = "import util\ndef f(x): return __builtins__.max(x), util.f()"
    util = "def f(): return isinstance(__builtins__, dict)"
    tests = CallTests("f", (CallCase(([1, 2],), (2, True)),), files={"util.py": util})
    assert judge(verifier, function, tests).outcome is Outcome.CORRECT, "in an imported module they are its dict"


def test_a_prelude_is_the_programs_alone(verifier: UnitTestVerifier) -> None:
    tests = CallTests("f", (CallCase((1,), 3),), prelude="two = 2\ndef f(x): return x + two\ndef g(x): return x + two")
    assert judge(verifier, "def f(x): return g(x)", tests).outcome is Outcome.CORRECT
    assert judge(verifier, "two = 3\ndef f(x): return x + two", tests).detail["failure"] == "wrong_answer"
    assert judge(verifier, "x = 1", tests).detail["failure"] == "exception", "it defines nothing that is under test"


@pytest.mark.limit
@pytest.mark.parametrize(
    ("program", "failure", "cases_run"),
    [
        ("while True: pass", "timeout", 3),
        ("import time\nwhile time.process_time() < 0.4: pass", "wrong_answer", 4),
        ("print(1)", "wrong_answer", 12),
    ],
)
def test_cases_that_fail_have_a_limit_together(program: str, failure: str, cases_run: int) -> None:
    verifier = UnitTestVerifier(partial_credit=True, timeout_s=0.5)
    right = "n = input()\nif n == '9': print(9); raise SystemExit\n"
    tests = StdioTests(tuple(StdioCase(str(n), "9") for n in (9, *range(12))))
    verdict = judge(verifier, right + program, tests)
    verifier.close()
    assert verdict.detail["passed"] == (2 if cases_run == 12 else 1)
    assert verdict.detail["total"] == 13
    failures = [case["failure"] for case in verdict.detail["cases"] if not case["passed"]]  # type: ignore[attr-defined]  # a tuple
    assert failures[:cases_run] == [failure] * min(cases_run, len(failures))
    assert set(failures[cases_run + 1 :]) <= {"timeout"}
    assert verdict.cost["cpu_seconds"] < 4 * 0.5 + 0.5


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
            FunctionTests(
                "import pytest\nfrom solution import X\n@pytest.mark.parametrize('x', X)\ndef test_it(x): assert 0"
            ),
        ),
    ]
    for program, each in tests:
        verdict = judge(verifier, program, each)
        assert verdict.score == 0
        repr(dict(verdict.detail)).encode()
        json.dumps(dict(verdict.detail), ensure_ascii=False).encode()
