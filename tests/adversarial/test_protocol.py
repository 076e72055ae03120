"""Programs that take over the conversation with their tester and answer as they like: none passes, none breaks the verifier."""

from __future__ import annotations

import contextlib
import textwrap
from collections.abc import Iterator

import pytest

from tests.sandbox import judge, load
from verifiers import Outcome
from verifiers.unit_tests import (
    AssertTests,
    CallCase,
    CallTests,
    CheckTests,
    FunctionTests,
    Tests,
    UnitTestVerifier,
)
from verifiers.unit_tests.jobs import _report_lines
from verifiers.unit_tests.separate.report import MAX_REPORT

LONG_NAME = """
NAME = "\\u00e9" * 3_000_000
class R:
    ok = False
    def __str__(self): raise type(NAME, (Exception,), {"__qualname__": "x"})("x")
    __repr__ = __str__
def f(*_): return R()
B = type(NAME, (bytearray,), {"__repr__": lambda self: "x"})
S = type(NAME, (str,), {"__str__": lambda self: "x"})
def g(*_): return B()
def h(*_): return S("x")
def i(*_): return S
"""
LONG_TESTS: dict[str, Tests] = {
    "a text that raises": FunctionTests(
        "import solution\nr = solution.f()\nassert r.ok, r\ndef test(): assert solution.f().ok\n"
    ),
    "in setup": AssertTests(("assert f().ok",), setup="r = f()\nassert r.ok, r"),
    "in a check": CheckTests("f", "r = f()\nassert r.ok, r\ndef check(c):\n    assert c().ok\n"),
    "an argument": FunctionTests("import solution as s\ndef test(): assert s.f(s.g()) == s.f(s.h()) == 1\n"),
    "an exception": FunctionTests("import solution as s\ndef test(): raise ValueError(s.NAME)\n"),
    "a result": CallTests("h", (CallCase((3,), 9),)),
}


@pytest.fixture(scope="module")
def patient() -> Iterator[UnitTestVerifier]:
    """A sandbox in which work on millions of characters is no timeout."""
    with contextlib.closing(UnitTestVerifier(timeout_s=30, memory_mib=300, output_mib=2)) as made:
        yield made


@pytest.mark.parametrize("tests", LONG_TESTS.values(), ids=LONG_TESTS)
def test_no_name_is_too_long_for_a_report(patient: UnitTestVerifier, tests: Tests) -> None:
    verdict = judge(patient, LONG_NAME, tests)
    assert verdict.outcome is Outcome.INCORRECT, str(verdict.detail)[:1000]
    assert len(str(verdict.detail)) < 10_000


TAKE_OVER = """
import json, os, struct
def read(count):
    data = b""
    while len(data) < count:
        part = os.read(3, count - len(data))
        if not part: os._exit(0)
        data += part
    return data
def receive(): return json.loads(read(*struct.unpack("!I", read(4))))
def send(message):
    data = message if isinstance(message, bytes) else json.dumps(message).encode()
    data = struct.pack("!I", len(data)) + data
    while data: data = data[os.write(4, data):]
def tell(*message, rest=[]): send([*message, rest])
def give(value, changed=[], released=[], rest=[]): tell("returned", changed, released, value, rest=rest)
def fail(description, identity=["ValueError", None], content=["t", ["t"], ["d", 1, None]]):
    tell("raised", [], [], description, identity, content)
def fresh(numbers=iter(range(1001, 9999, 2))): return next(numbers)
LOADED
while True:
    request = receive()
    if request[0] == "resolve":
        tell("returned", [], [], *(RESOLVED))
        continue
    ANSWER
"""
FUNCTION = "[True for _ in request[4]], ['l', fresh(), None, *(HANDLE for _ in request[4])]".replace(
    "HANDLE", "['h', 0, 'function', 'builtins', ['__call__']]"
)

NODE = """
class Node:
    def __init__(self, v): self.v = v

def solve(n):
    return 0
"""
UNITTEST = """
import unittest, solution
class T(unittest.TestCase):
    def test_a(self): self.assertEqual(solution.solve(3), 16)
    def test_b(self): self.assertEqual(solution.solve(4), 23)
"""
KINDS = {
    "calls": CallTests("solve", (CallCase((3,), 16), CallCase((4,), 23))),
    "check": CheckTests("solve", "def check(f):\n    assert f(Node(3)) == 16\n    assert f(4) == 23", NODE),
    "asserts": AssertTests(
        ("assert solve([3, 1]) == 16", "a = [1]; solve(a); assert a == [9]", "assert solve(lambda: 3) == 23")
    ),
    "functions": FunctionTests(UNITTEST),
}


DATA = load("adversarial/protocol")
pytestmark = pytest.mark.sandbox(timeout_s=0.5, wall_s=6, memory_mib=300, output_mib=2)


def take_over(loaded: str = "", resolved: str = FUNCTION, answer: str = "give(16)") -> str:
    return (
        TAKE_OVER.replace("LOADED", loaded)
        .replace("RESOLVED", resolved)
        .replace("    ANSWER\n", textwrap.indent(answer.rstrip("\n") + "\n", "    "))
    )


PROGRAMS = [
    *(take_over(answer=answer) for answer in DATA["forged"]["answers"]),
    *(take_over(resolved=resolved) for resolved in DATA["resolved"]["answers"]),
    *(take_over(loaded=loaded) for loaded in DATA["loaded"]["answers"]),
]


@pytest.mark.parametrize("number", range(len(PROGRAMS)))
def test_a_forged_conversation_fails(number: int, verifier: UnitTestVerifier) -> None:
    """Each under two kinds of tests, in turn."""
    for kind in (list(KINDS)[number % 4], list(KINDS)[(number + 1) % 4]):
        verdict = judge(verifier, PROGRAMS[number], KINDS[kind])
        assert verdict.score == 0, (kind, PROGRAMS[number], verdict.detail)
        assert verdict.outcome is not Outcome.VERIFIER_ERROR, (kind, PROGRAMS[number], verdict.detail)


def test_the_same_conversation_with_right_answers_passes(verifier: UnitTestVerifier) -> None:
    """So it is the answers above that fail, and not the way they are given."""
    answer = "n = request[4][1]; give(n * n + 7 if type(n) is int else None)"
    assert judge(verifier, take_over(answer=answer), KINDS["calls"]).outcome is Outcome.CORRECT
    assert judge(verifier, take_over(answer=answer), KINDS["functions"]).outcome is Outcome.CORRECT


def test_a_report_that_is_full_is_the_failure_of_the_program() -> None:
    report = b'{"total":1}\n{"name":"' + b"x" * MAX_REPORT
    assert _report_lines(report[: MAX_REPORT - 1]) == [{"total": 1}]
    assert [line.get("failure") for line in _report_lines(report[:MAX_REPORT])] == [None, "output_limit"]
