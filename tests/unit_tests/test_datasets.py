"""The reference solutions of HumanEval and MBPP pass, and a wrong variant of each fails."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from verifiers import Outcome, Problem
from verifiers.unit_tests import AssertTests, CheckTests, UnitTestVerifier

DATA = os.environ.get("RLVR_DATA_DIR")
pytestmark = [
    pytest.mark.skipif(DATA is None, reason="RLVR_DATA_DIR is not set: no data sets to run"),
    pytest.mark.sandbox(workers=2, timeout_s=30, memory_mib=1024),
]


def rows(name: str) -> list[dict[str, Any]]:
    path = Path(DATA or "") / name / "test.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()]


def failures(verifier: UnitTestVerifier, programs: list[str], problems: list[Problem], outcome: Outcome) -> list[str]:
    verdicts = verifier.verify_batch(programs, problems)
    return [problem.id for problem, verdict in zip(problems, verdicts, strict=True) if verdict.outcome is not outcome]


def test_humaneval(verifier: UnitTestVerifier) -> None:
    data = rows("humaneval")
    problems = [
        Problem(row["task_id"], row["prompt"], CheckTests(row["entry_point"], row["test"], row["prompt"]))
        for row in data
    ]
    assert failures(verifier, [row["canonical_solution"] for row in data], problems, Outcome.CORRECT) == []
    assert failures(verifier, ["    return object()\n"] * len(data), problems, Outcome.INCORRECT) == []


def test_mbpp(verifier: UnitTestVerifier) -> None:
    data = rows("mbpp")
    problems = [
        Problem(
            str(row["task_id"]),
            row["text"],
            AssertTests((*row["test_list"], *row["challenge_test_list"]), row["test_setup_code"]),
        )
        for row in data
    ]
    programs = [f"```python\n{row['code']}\n```" for row in data]
    assert failures(verifier, programs, problems, Outcome.CORRECT) == []


def test_mbpp_wrong_variants_fail(verifier: UnitTestVerifier) -> None:
    """Every function of the program returns an object that claims to equal everything."""
    data = rows("mbpp")
    problems = [
        Problem(str(row["task_id"]), row["text"], AssertTests(tuple(row["test_list"]), row["test_setup_code"]))
        for row in data
    ]
    spoil = """
class _Always:
    def __eq__(self, other): return True
    def __getattr__(self, name): return lambda *args: True
import types as _types
for _name, _value in list(globals().items()):
    if isinstance(_value, _types.FunctionType): globals()[_name] = lambda *args, **kwargs: _Always()
"""
    programs = [row["code"].replace("\r\n", "\n") + "\n" + spoil for row in data]
    verdicts = verifier.verify_batch(programs, problems)
    assert [p.id for p, verdict in zip(problems, verdicts, strict=True) if verdict.score != 0] == []
