"""Programs and graders, run; other graders have no sandbox."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rlvr_envs import Dataset
from tests.agreement.programs import Program
from verifiers import Verdict
from verifiers.unit_tests import UnitTestVerifier

TIMEOUT_S = 10
"""What every grader gives a program; EvalPlus gives it for each input."""
LITTLE_MEMORY = f"import resource\nresource.setrlimit(resource.RLIMIT_AS, ({2 << 30}, {2 << 30}))\n"
"""Run first, so that a program that goes wrong can't take all of the machine's."""
LITTLE_TIME = f"import resource\nresource.setrlimit(resource.RLIMIT_CPU, ({TIMEOUT_S}, {TIMEOUT_S}))\n"
"""Run first: processor time, which does not depend on what else the machine does."""


def rows(data: Path, name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (data / name / "test.jsonl").read_text(encoding="utf-8").splitlines()]


def write_lines(file: Path, lines: Sequence[dict[str, Any]]) -> None:
    file.write_text("".join(f"{json.dumps(line)}\n" for line in lines), encoding="utf-8")


def verdicts(programs: Sequence[Program], dataset: Dataset) -> list[Verdict]:
    """Our verdicts on programs, in their order."""
    by_id = {problem.id: problem for problem in map(dataset.__getitem__, range(len(dataset)))}
    with contextlib.closing(UnitTestVerifier(timeout_s=TIMEOUT_S)) as verifier:
        return verifier.verify_batch(
            [program.text for program in programs], [by_id[program.problem] for program in programs]
        )


def run_grader(script: str, *arguments: str, **environment: str) -> None:
    """Run another grader by a script of Python."""
    done = subprocess.run(
        [sys.executable, "-c", LITTLE_MEMORY + script, *arguments],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
