"""One tester process runs the tests of many jobs, where they leave no trace in it; no job notices another."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.sandbox import judge
from verifiers import Outcome, Problem
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
from verifiers.unit_tests.separate.side_effects import leaves_no_trace

HARMLESS = [
    "def check(candidate):\n    assert candidate([1, 2]) == [2, 1]\n    assert abs(candidate(1.5) - 0.5) < 1e-6",
    (
        "import math\n"
        "import random\n"
        "def check(c):\n"
        "    for _ in range(3): assert c(random.randint(0, 9)) == math.floor(2.5)"
    ),
    (
        "from typing import List\n"
        "def helper(x: List[int]): return sorted(x, key=lambda y: -y)\n"
        "assert helper(f([1])) == [1]"
    ),
    "assert set(f([1, 2])) == {1, 2} and f('a').upper() == 'A'",
    "assert solve(copy.deepcopy(board)) == [row[::-1] for row in board]",
    "x = f(3)\nassert x.field.other == 2 and x.method(1) == 3",
]
TRACED = [
    "import math\nmath.floor = f",
    "del math.floor",
    "import sys\nsys.setrecursionlimit(100)",
    "from sys import *\nsetrecursionlimit(100)",
    "import os\nos.environ['X'] = '1'",
    "import collections.abc",
    "class A: pass",
    "def check(c):\n    try: c(1)\n    except: pass",
    "def check(c):\n    with c(1): pass",
    "setattr(random, 'random', f)",
    "getattr(random, 'se' 'ed')",
    "copy.dispatch_table[int] = f",
    "random._inst = None",
    "__builtins__['len'] = f",
    "globals()['x'] = 1",
    "exec('import os')",
    "lambda: eval('1')",
    "[(lambda: (x.__class__))() for x in (1,)]",
    "import statistics\nstatistics.sys.exit",
    "import builtins",
    "def f():\n    def g():\n        import os",
    "assert id(f(1)) == 3",
    "assert hash(f(1)) == 3",
    "functools.lru_cache(f)",
    "open('x')",
    "setcontext(Context(prec=2))",
    "(x for x in ()).gi_frame.f_builtins['len'] = f",
]


@pytest.mark.parametrize(
    ("source", "traceless"), [*((source, True) for source in HARMLESS), *((source, False) for source in TRACED)]
)
def test_only_ordinary_test_code_is_known_to_leave_no_trace(source: str, traceless: bool) -> None:
    assert leaves_no_trace(compile(source, "test.py", "exec")) is traceless


@pytest.fixture
def verifier() -> Iterator[UnitTestVerifier]:
    made = UnitTestVerifier(timeout_s=2.0)
    yield made
    made.close()


def children(verifier: UnitTestVerifier) -> list[str]:
    (server,) = verifier.idle_servers
    return Path(f"/proc/{server}/task/{server}/children").read_text().split()


CALLS = Problem("calls", "", CallTests("f", (CallCase((3,), 9), CallCase((-2,), 4))))
CHECKED = Problem("check", "", CheckTests("f", "def check(c):\n    assert c(3) == 9\n"))
ASSERTS = Problem("asserts", "", AssertTests(("assert f(3) == 9", "assert f(2) == 4")))
POISONING = Problem(
    "poisoning",
    "",
    CheckTests(
        "f",
        "import random, sys\n"
        "sys.setrecursionlimit(60)\n"
        "random.seed = lambda *_: None\n"
        "print.__self__.abs = lambda x: 'wrong'\n"
        "def check(c):\n    assert c(3) == 9\n",
    ),
)
NEEDS_ABS = Problem("abs", "", CheckTests("f", "def check(c):\n    assert abs(c(3) - 9) < 1e-6\n"))
DRAWS = Problem(
    "draws",
    "",
    CheckTests("f", ("import random\ndef check(c):\n    assert c(random.random()) == 9, random.random()\n")),
)
FILE = Problem("file", "", FunctionTests("from solution import f\ndef test_it():\n    assert f(3) == 9\n"))
RIGHT, WRONG = "def f(x): return x * x", "def f(x): return x"


def test_one_process_serves_job_after_job(verifier: UnitTestVerifier) -> None:
    assert verifier(RIGHT, CALLS).score == 1
    first = children(verifier)
    assert len(first) == 1
    for problem in (CALLS, CHECKED, ASSERTS, CALLS):
        assert verifier(RIGHT, problem).score == 1
        assert verifier(WRONG, problem).score == 0
    for program in ("import os; os._exit(0)", "def f(x):\n    while True: pass", "def f(x):", "raise SystemExit"):
        assert verifier(program, CHECKED).score == 0
    assert children(verifier) == first


@pytest.mark.parametrize("last", [POISONING, FILE])
def test_a_job_that_leaves_a_trace_is_the_last_of_its_process(verifier: UnitTestVerifier, last: Problem) -> None:
    assert verifier(RIGHT, CALLS).score == 1
    assert len(children(verifier)) == 1
    assert verifier(RIGHT, last).score == 1
    assert children(verifier) == []
    assert verifier(WRONG, last).score == 0
    assert children(verifier) == []
    assert verifier(RIGHT, CALLS).score == 1


def test_verdicts_do_not_depend_on_what_ran_before(verifier: UnitTestVerifier) -> None:
    jobs = [(program, problem) for problem in (DRAWS, POISONING, NEEDS_ABS, CALLS, FILE) for program in (RIGHT, WRONG)]
    forth = [verifier(*job) for job in jobs]
    back = [verifier(*job) for job in reversed(jobs)]
    assert forth == back[::-1]
    assert [verdict.score for verdict in forth] == [0, 0, 1, 0, 1, 0, 1, 0, 1, 0]


def test_a_test_that_catches_everything_does_not_hide_an_exit(verifier: UnitTestVerifier) -> None:
    test = """
def check(c):
    try:
        assert c(1) == 2
    except BaseException:
        pass
"""
    verdict = judge(verifier, "import os\ndef f(x): os._exit(0)", CheckTests("f", test))
    assert verdict.detail["failure"] == "exit"
    assert verifier(RIGHT, CALLS).score == 1


def test_a_tester_that_was_killed_between_jobs_is_replaced(verifier: UnitTestVerifier) -> None:
    assert verifier(RIGHT, CALLS).score == 1
    os.kill(int(children(verifier)[0]), signal.SIGKILL)
    assert verifier(RIGHT, CHECKED).score == 1
    assert verifier(WRONG, CHECKED).score == 0


REMAINS = [
    (
        "import decimal\ndef f(x): return decimal.Decimal(x)",
        ("assert f(1) / 3 < 1",),
        "not any(decimal.getcontext().flags.values())",
    ),
    ("class Odd(int): pass\ndef f(x): return Odd(x)", ("assert f(1) == 1",), "'Odd' not in str(int.__subclasses__())"),
    ("class OddError(KeyError): pass\ndef f(x): raise OddError", ("assert f(1)",), "not KeyError.__subclasses__()"),
    (
        "def f(x): return '%Y'",
        ("assert datetime.datetime.strptime('1999', f(1)).year == 1999",),
        "'_strptime' not in sys.modules",
    ),
]


@pytest.mark.parametrize(("program", "asserts", "condition"), REMAINS)
def test_tests_that_leave_traces_find_none_of_other_jobs(
    verifier: UnitTestVerifier, program: str, asserts: tuple[str, ...], condition: str
) -> None:
    test = (
        f"import decimal, sys\nfrom solution import f\ndef test_it():\n    assert f(3) == 9\n    assert {condition}\n"
    )
    alone = judge(verifier, RIGHT, FunctionTests(test))
    judge(verifier, program, AssertTests(asserts))
    assert len(children(verifier)) == 1, "the tester could serve another job"
    assert judge(verifier, RIGHT, FunctionTests(test)) == alone
    assert alone.score == 1, alone.detail


def test_programs_find_no_part_of_the_runtime_after_a_test_file(verifier: UnitTestVerifier) -> None:
    assert verifier(RIGHT, FILE).outcome is Outcome.CORRECT
    parts = "('sandbox', 'verifiers', 'test_files', 'pytest')"
    program = f"import sys\nprint([name for name in sys.modules if any(part in name for part in {parts})])"
    assert judge(verifier, program, StdioTests((StdioCase("", "[]"),))).outcome is Outcome.CORRECT


def test_files_of_one_problem_are_not_there_for_the_tests_of_the_next(verifier: UnitTestVerifier) -> None:
    files = {"helper.py": "NINE = 9\n"}
    calls = CallTests("f", (CallCase((3,), 9),), files=files)
    check = "import helper\ndef check(f):\n    assert f(3) == helper.NINE\n"
    assert judge(verifier, RIGHT, calls).outcome is Outcome.CORRECT
    assert judge(verifier, RIGHT, CheckTests("f", check, files=files)).outcome is Outcome.CORRECT
    assert judge(verifier, RIGHT, CheckTests("f", check)).outcome is Outcome.VERIFIER_ERROR
