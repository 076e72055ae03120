"""Programs that read standard input and write standard output."""

from __future__ import annotations

import pytest

from tests.sandbox import judge
from verifiers import Outcome
from verifiers.unit_tests import (
    CallCase,
    CallTests,
    StdioCase,
    StdioTests,
    UnitTestVerifier,
)


@pytest.mark.parametrize(
    ("output", "expected", "tolerance", "comparison", "score"),
    [
        ("1 2\n3", "1 2 3\n", None, "tokens", 1),
        ("1 2\n3", "1 2 3\n", None, "lines", 0),
        ("1 2  \n3\n\n", "1 2\n3", None, "lines", 1),
        (" 1", "1", None, "lines", 0),
        ("0.3000001", "0.3", None, "tokens", 0),
        ("0.3000001", "0.3", 1e-6, "tokens", 1),
        ("1000000001", "1000000000", 1e-6, "tokens", 0),
        ("1e9 ok", "1000000001 ok", 1e-6, "lines", 1),
        ("NaN", "nan", 1e-6, "tokens", 1),
        ("1e400", "2e400", 1e-6, "tokens", 0),
        ("1e399", "1" + "0" * 399 + ".0", 1e-6, "tokens", 1),
        ("1.0000001e400", "1e400", 1e-6, "lines", 1),
        ("1.7e308", "1.8e308", 0.1, "tokens", 1),
        ("1e400", "inf", 1e-6, "tokens", 0),
        ("Inf", "+inf", 1e-6, "tokens", 1),
        ("1 2", "1", 1.0, "tokens", 0),
        ("4.2", "3.5", 1.0, "tokens", 1),
        ("1e30", "3.5", 1.0, "tokens", 0),
        ("1e999", "3.5", 1.0, "tokens", 0),
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
        "import os\nos.write(1, str(sum(map(int, os.read(0, 99).split()))).encode())",
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


def test_builtins_are_the_module_as_in_a_script(verifier: UnitTestVerifier) -> None:
    script = "assert __builtins__.max(1, 2) == 2 and type(__builtins__) is type(__import__('sys'))\nprint(__name__)"
    assert judge(verifier, script, StdioTests((StdioCase("", "__main__\n"),))).outcome is Outcome.CORRECT
    function = "import util\ndef f(x): return __builtins__.max(x), util.f()"
    util = "def f(): return isinstance(__builtins__, dict)"
    tests = CallTests("f", (CallCase(([1, 2],), (2, True)),), files={"util.py": util})
    assert judge(verifier, function, tests).outcome is Outcome.CORRECT, "in an imported module they are its dict"


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
