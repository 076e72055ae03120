# ruff: noqa: E501 - a program reads best on one line
"""Objects of classes that the tests or given files define, in the hands of the program: it reads and sets what is public."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from verifiers import Outcome, Problem, Verdict
from verifiers.unit_tests import CheckTests, FunctionTests, UnitTestVerifier


@pytest.fixture(scope="module")
def verifier() -> Iterator[UnitTestVerifier]:
    verifier = UnitTestVerifier(timeout_s=2, memory_mib=256)
    yield verifier
    verifier.close()


def judge(verifier: UnitTestVerifier, program: str, tests: object) -> Verdict:
    return verifier(program, Problem("p", "", tests))


NODES = """
class ListNode:
    def __init__(self, val=0, next=None): self.val, self.next = val, next
def build(items):
    head = None
    for item in reversed(items): head = ListNode(item, head)
    return head
def values(node):
    found = []
    while node:
        found.append(node.val)
        node = node.next
    return found
"""
SOLUTION = """
class ListNode:
    def __init__(self, val=0, next=None): self.val, self.next = val, next
class Solution:
    def reverse(self, head):
        before = None
        while head: head.next, before, head = before, head, head.next
        return before
    def insert(self, head):
        dummy = ListNode(0)
        dummy.next = head
        head.next = ListNode(9, head.next)
        return dummy.next
    def cycle(self, head):
        head.next = head
        return head
"""


def test_linked_lists_of_a_class_that_the_test_defines(verifier: UnitTestVerifier) -> None:
    test = f"""{NODES}
def check(candidate):
    head = build([1, 2, 3])
    second = head.next
    result = candidate(head)
    assert values(result) == [3, 2, 1]
    assert second.next is head and head.next is None and result.next is second
"""
    assert judge(verifier, SOLUTION, CheckTests("Solution().reverse", test)).outcome is Outcome.CORRECT
    assert judge(verifier, SOLUTION, CheckTests("Solution().insert", test)).detail["failure"] == "wrong_answer"
    test = f"{NODES}\ndef check(candidate): assert values(candidate(build([1, 2]))) == [1, 9, 2]"
    assert judge(verifier, SOLUTION, CheckTests("Solution().insert", test)).outcome is Outcome.CORRECT


@pytest.mark.parametrize(
    "where", ["assert values(f(HEAD)) == [1]", "assert f(HEAD) == f(ListNode(2))", "assert repr(f(HEAD)) == ''"]
)
@pytest.mark.parametrize("level", ["def test_it():\n    {}", "{}"])
def test_a_cycle_of_the_tests_own_nodes_is_the_programs_failure(
    verifier: UnitTestVerifier, where: str, level: str
) -> None:
    head = f"{NODES}\nHEAD = ListNode(1)\nListNode.__eq__ = lambda a, b: a.next == b.next\nListNode.__repr__ = lambda a: repr(a.next)"
    test = f"from solution import f\n{head}\n{level.format(where)}"
    verdict = judge(verifier, "def f(head):\n    head.next = head\n    return head", FunctionTests(test))
    assert verdict.score == 0
    assert verdict.outcome is not Outcome.VERIFIER_ERROR, verdict.detail


def test_attributes_are_set_and_deleted(verifier: UnitTestVerifier) -> None:
    test = """
from solution import f
class State:
    limit = 2
    def __init__(self): self.items, self.old, self.count = [], 1, 0
    @property
    def level(self): return self.count
    @level.setter
    def level(self, value): self.count = 10 * value
def test_it():
    state = State()
    f(state)
    assert vars(state) == {"items": [3], "count": 70, "new": 5} and state.limit == 2
"""
    program = "def f(state):\n    state.count += 1\n    state.items.append(3)\n    del state.old\n    assert state.level == 1 and not hasattr(state, 'old')\n    state.level = 7\n    state.new = 5"
    assert judge(verifier, program, FunctionTests(test)).outcome is Outcome.CORRECT


def test_a_file_like_object_of_a_given_file(verifier: UnitTestVerifier) -> None:
    files = {
        "fakes.py": """
import io
class Text(io.StringIO): pass
class Lines:
    closed = False
    def __init__(self, *lines): self.lines = list(lines)
    def read(self, count): return "x" * count
    def __iter__(self): return self
    def __next__(self):
        if not self.lines: raise StopIteration
        return self.lines.pop(0)
    def __enter__(self): return self
    def __exit__(self, *error): self.closed = True
"""
    }
    test = """
import fakes
from solution import f
def test_it():
    text, lines = fakes.Text("abcd\\ne\\n"), fakes.Lines("abcd\\n", "e\\n")
    assert f(text) == ["abc", "d\\n", ["e\\n"]] and text.closed
    assert f(lines) == ["xxx", "abcd\\n", ["e\\n"]] and lines.closed
"""
    program = "def f(file):\n    with file as opened:\n        return [opened.read(3), next(opened), list(opened)]"
    assert judge(verifier, program, FunctionTests(test, files=files)).outcome is Outcome.CORRECT


def test_an_object_of_the_tests_says_itself_what_it_equals(verifier: UnitTestVerifier) -> None:
    test = """
from solution import make
class Point:
    def __init__(self, x): self.x = x
    def __eq__(self, other): return self.x == other.x
def test_it():
    assert make(3) == Point(3) and not make(3) == Point(4) and make(3) != Point(4)
    assert make(3) != 3 and not make(3) == {}
"""
    program = "class P:\n    def __init__(self, x): self.x = x\ndef make(x): return P(x)"
    assert judge(verifier, program, FunctionTests(test)).outcome is Outcome.CORRECT
    liar = "class P:\n    x = 5\n    def __eq__(self, other): return True\n    def __ne__(self, other): return False\ndef make(x): return P()"
    assert judge(verifier, liar, FunctionTests(test)).score == 0


SPIES = """
from unittest.mock import MagicMock, Mock
from solution import run
class Spy:
    def __init__(self): self.calls = 0
    def __call__(self): self.calls += 1
class Log:
    def __init__(self): self.lines = []
    def write(self, line): self.lines.append(line)
    def check(self): assert self.lines == ["a"]
def test_it():
    {}
"""


@pytest.mark.parametrize(
    "body",
    [
        "spy = Spy(); run(spy); assert spy.calls == 3",
        "mock = Mock(); run(mock); assert mock.save.called",
        "mock = Mock(); run(mock); assert mock.save.call_count == 3",
        "mock = MagicMock(); run(mock); mock.save.assert_called_once_with(5)",
        "mock = Mock(); run(mock); mock.assert_called_once_with(5)",
        "mock = Mock(); run(mock); assert mock.called",
        "mock = Mock(return_value=5); run(mock); assert mock.called and mock() == 5",
        "log = Log(); run(log); log.check()",
    ],
)
@pytest.mark.parametrize(
    "value",
    ["Spy()", "collections.namedtuple('N', 'called calls call_count assert_called_once_with check')(True, 3, 3, len, len)", "lambda *a, **k: None", "3", "type('D', (dict,), {'called': True})()"],
)  # fmt: skip
def test_what_judges_is_not_replaced(verifier: UnitTestVerifier, body: str, value: str) -> None:
    program = f"""
import collections
class Spy:
    called, calls, call_count = True, 3, 3
    def __getattr__(self, name): return lambda *a, **k: None
def run(target):
    for name in ("save", "called", "calls", "call_count", "check", "assert_called_once_with", "return_value", "_mock_children", "__class__", "__dict__", "method_calls"):
        try: setattr(target, name, {value})
        except BaseException: pass
        try: setattr(target.save, name, {value})
        except BaseException: pass
        try: delattr(target, name)
        except BaseException: pass
"""
    verdict = judge(verifier, program, FunctionTests(SPIES.format(body)))
    assert verdict.score == 0
    assert verdict.outcome is not Outcome.VERIFIER_ERROR, verdict.detail
