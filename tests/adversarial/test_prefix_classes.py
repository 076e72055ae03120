"""LeetCode's way of testing: the prefix defines nodes and helpers, and no program that redefines them deceives its tests."""

from __future__ import annotations

import gzip
import json
import os
from pathlib import Path
from typing import Any

import pytest

from tests.sandbox import fenced, judge, load
from verifiers import Outcome, Problem
from verifiers.unit_tests import CheckTests, UnitTestVerifier

DATA = load("adversarial/prefix_classes")
ROWS = Path(os.environ.get("RLVR_DATA_DIR", "")) / "leetcode" / "train.jsonl.gz"
pytestmark = pytest.mark.sandbox(timeout_s=30, memory_mib=1024)
needs_rows = pytest.mark.skipif(not ROWS.is_file(), reason="RLVR_DATA_DIR has no leetcode/train.jsonl.gz")
GOLD = 1_876
"""How many of the 1,890 reference programs pass at least."""

PREFIX = """
from collections import deque
class ListNode:
    def __init__(self, val=0, next=None): self.val, self.next = val, next
class TreeNode:
    def __init__(self, val=0, left=None, right=None): self.val, self.left, self.right = val, left, right
def list_node(values):
    head = None
    for value in reversed(values): head = ListNode(value, head)
    return head
def is_same_list(p, q):
    if p is None and q is None: return True
    if not p or not q: return False
    return p.val == q.val and is_same_list(p.next, q.next)
def tree_node(values):
    if not values: return None
    root, rest = TreeNode(values[0]), iter(values[1:])
    queue = deque([root])
    for left in rest:
        node, right = queue.popleft(), next(rest, None)
        node.left = None if left is None else TreeNode(left)
        node.right = None if right is None else TreeNode(right)
        queue.extend(child for child in (node.left, node.right) if child)
    return root
def is_same_tree(p, q):
    if not p and not q: return True
    if not p or not q or p.val != q.val: return False
    return is_same_tree(p.left, q.left) and is_same_tree(p.right, q.right)
"""
ANY = """
class Any:
    def __init__(self, *a): pass
    def __eq__(self, other): return True
    def __ne__(self, other): return False
    def __getattr__(self, name): return Any()
    __hash__ = lambda self: 1
"""
METHODS = "\nclass Solution:\n    def __getattr__(self, name): return lambda *a, **k: LIE\n"
CHECKS = {
    "list": CheckTests(
        "Solution().twice",
        "def check(candidate):\n"
        "    assert is_same_list(candidate(head=list_node([1, 2, 3])), list_node([2, 4, 6]))\n"
        "    assert is_same_list(candidate(list_node([4])), list_node([8]))\n",
        PREFIX,
    ),
    "tree": CheckTests(
        "Solution().mirrored",
        "def check(candidate):\n"
        "    assert is_same_tree(candidate(root=tree_node([1, 2, 3, None, 4])), tree_node([1, 3, 2, None, None, 4]))\n"
        "    assert is_same_tree(candidate(tree_node([5, 6])), tree_node([5, None, 6]))\n",
        PREFIX,
    ),
}
LIARS = {name: ANY + program + METHODS for name, program in DATA["liars"].items()}


@pytest.mark.parametrize("kind", CHECKS)
@pytest.mark.parametrize("program", DATA["right"].values(), ids=DATA["right"])
def test_right_programs_pass(verifier: UnitTestVerifier, program: str, kind: str) -> None:
    verdict = judge(verifier, fenced(program), CHECKS[kind])
    assert verdict.outcome is Outcome.CORRECT, verdict.detail


@pytest.mark.parametrize("kind", CHECKS)
@pytest.mark.parametrize("program", LIARS.values(), ids=LIARS)
def test_no_liar_passes(verifier: UnitTestVerifier, program: str, kind: str) -> None:
    verdict = judge(verifier, fenced(program), CHECKS[kind])
    assert verdict.outcome is Outcome.INCORRECT, verdict.detail


def rows() -> list[dict[str, Any]]:
    with gzip.open(ROWS, "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def problem(row: dict[str, Any]) -> Problem:
    return Problem(row["task_id"], "", CheckTests(row["entry_point"], row["test"], row["prompt"]))


@needs_rows
def test_no_liar_passes_a_problem_of_the_data_set_that_compares_nodes(verifier: UnitTestVerifier) -> None:
    problems = [problem(row) for row in rows() if "is_same_" in row["test"]]
    assert len(problems) == 46
    for name, program in LIARS.items():
        verdicts = verifier.verify_batch([fenced(program)] * len(problems), problems)
        passed = [each.id for each, verdict in zip(problems, verdicts, strict=True) if verdict.score != 0]
        assert not passed, name


@needs_rows
@pytest.mark.long
def test_the_programs_of_the_data_set_pass(verifier: UnitTestVerifier) -> None:
    data = rows()
    verdicts = verifier.verify_batch([row["response"] for row in data], [problem(row) for row in data])
    assert sum(verdict.outcome is Outcome.CORRECT for verdict in verdicts) >= GOLD
