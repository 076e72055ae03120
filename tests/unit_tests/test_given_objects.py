"""Objects of classes that the tests or given files define, in the hands of the program: it reads and sets what is public."""

from __future__ import annotations

import pytest

from tests.sandbox import Case, cases, judge, load
from verifiers import Outcome
from verifiers.unit_tests import CheckTests, FunctionTests, UnitTestVerifier

DATA = load("unit_tests/given_objects")


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
    head = f"""
{NODES}
HEAD = ListNode(1)
ListNode.__eq__ = lambda a, b: a.next == b.next
ListNode.__repr__ = lambda a: repr(a.next)
"""
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
    program = """
def f(state):
    state.count += 1
    state.items.append(3)
    del state.old
    assert state.level == 1 and not hasattr(state, 'old')
    state.level = 7
    state.new = 5
"""
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
    liar = """
class P:
    x = 5
    def __eq__(self, other): return True
    def __ne__(self, other): return False
def make(x): return P()
"""
    assert judge(verifier, liar, FunctionTests(test)).score == 0


NAMED = "collections.namedtuple('N', 'called calls call_count assert_called_once_with check')(True, 3, 3, len, len)"


@pytest.mark.parametrize(
    "value",
    ["Spy()", NAMED, "lambda *a, **k: None", "3", "type('D', (dict,), {'called': True})()"],
    ids=["a spy", "a tuple", "a function", "a number", "a dict"],
)
@pytest.mark.parametrize("case", cases(DATA["spies"]))
def test_what_judges_is_not_replaced(verifier: UnitTestVerifier, case: Case, value: str) -> None:
    case.check(verifier, case.program.replace("VALUE", value))


@pytest.mark.parametrize("case", cases(DATA["types"]))
def test_the_program_sees_the_names_of_the_tests_classes_and_what_their_objects_hold(
    verifier: UnitTestVerifier, case: Case
) -> None:
    case.check(verifier)
