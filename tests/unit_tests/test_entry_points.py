"""What is under test: names, paths to a method, and completions that repeat what the prompt began."""

from __future__ import annotations

import pytest

from tests.sandbox import Tests, judge
from verifiers import InvalidArgumentError, Outcome
from verifiers.unit_tests import AssertTests, CallCase, CallTests, CheckTests, FunctionTests, UnitTestVerifier

pytestmark = pytest.mark.sandbox(timeout_s=5)


TWO_SUM = """
class Solution:
    def __init__(self): self.calls = 0
    def two_sum(self, numbers, target):
        self.calls += 1
        return next([i, j] for j in range(len(numbers)) for i in range(j) if numbers[i] + numbers[j] == target)
    def count(self): return self.calls
"""


def test_an_entry_point_says_how_to_come_by_the_function(verifier: UnitTestVerifier) -> None:
    test = """
def check(candidate):
    assert candidate(numbers=[2, 7], target=9) == [0, 1]
    assert candidate([3, 2, 4], 6) == [1, 2]
"""
    prefix = (
        "from typing import List\n\nclass Solution:\n    def two_sum(self, numbers: List[int], target: int):\n        "
    )
    wrong = TWO_SUM.replace("next([i, j]", "next([j, i]")
    for tests in (CheckTests("Solution().two_sum", test), CheckTests("Solution().two_sum", test, prefix)):
        assert judge(verifier, TWO_SUM, tests).outcome is Outcome.CORRECT
        assert judge(verifier, wrong, tests).detail["failure"] == "wrong_answer"
    body = (
        "for j, b in enumerate(numbers):\n"
        "            for i in range(j):\n"
        "                if numbers[i] + b == target: return [i, j]\n"
    )
    assert judge(verifier, f"```python\n{body}\n```", CheckTests("Solution().two_sum", test, prefix)).score == 1
    assert judge(verifier, "class Solution: pass", CheckTests("Solution().two_sum", test)).detail["exception"] == {
        **{"type": "AttributeError", "message": "'Solution' object has no attribute 'two_sum'"},
        **{"file": None, "line": None},
    }
    assert judge(verifier, "def two_sum(*a): return [0, 1]", CheckTests("Solution().two_sum", test)).score == 0
    calls = CallTests("Solution().count", (CallCase((), 0), CallCase((), 0)))
    assert judge(verifier, TWO_SUM, calls).outcome is Outcome.CORRECT


@pytest.mark.parametrize(
    "tests",
    [
        *(
            CheckTests(name, "def check(candidate): pass")
            for name in ("", "two-sum", "f(1)", "f()()x", "class", "f.def", ".f")
        ),
        *(CallTests(name, (CallCase((), 1),)) for name in ("", "f(", "f ()", "1f")),
        AssertTests(("assert f() == 1",), entry_points=("Solution().f",)),
        FunctionTests("from solution import f", entry_point="f()"),
    ],
)
def test_what_can_be_no_entry_point_is_the_callers_mistake(verifier: UnitTestVerifier, tests: Tests) -> None:
    with pytest.raises(InvalidArgumentError, match=r"problem 'p': .*entry.point.* must be a .*name.*, got '"):
        judge(verifier, "def f(): return 1", tests)
