"""Which CPUs a job's processes may use."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from verifiers import Problem
from verifiers.unit_tests import CallCase, CallTests, UnitTestVerifier

CPUS = len(os.sched_getaffinity(0))
YOUNG_AND_OLD = """
import os, time

def cpus():
    young = len(os.sched_getaffinity(0))
    time.sleep(0.2)
    return young, len(os.sched_getaffinity(0))
"""


def problem_of(result: object) -> Problem:
    return Problem("cpus", "", CallTests("cpus", (CallCase((), result),)))


def passes_once(verifier: UnitTestVerifier, program: str, problem: Problem) -> bool:
    """Whether one of twenty runs passes: on a busy machine a job may have grown old before its first line runs."""
    return any(verifier(program, problem).score == 1 for _ in range(20))


def cpus_of(pid: int) -> int:
    return len(os.sched_getaffinity(pid))


def children_of(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


@pytest.mark.skipif(CPUS == 1, reason="there is one CPU only")
@pytest.mark.parametrize("isolation", ["auto", "none"])
def test_a_young_job_stays_on_one_cpu_and_an_older_one_may_use_all(isolation: str) -> None:
    verifier = UnitTestVerifier(isolation=isolation)  # type: ignore[arg-type]  # a parameter
    for _ in range(3):  # the tester, which goes on, is brought along and let go each time
        assert passes_once(verifier, YOUNG_AND_OLD, problem_of((1, CPUS)))
    (server,) = verifier.idle_servers
    assert [cpus_of(pid) for pid in (server, *children_of(server))] == [CPUS] * (1 + len(children_of(server)))
    verifier.close()


def test_where_only_one_cpu_is_allowed_it_is_used() -> None:
    allowed = os.sched_getaffinity(0)
    verifier = UnitTestVerifier()
    os.sched_setaffinity(0, {min(allowed)})
    try:
        assert verifier(YOUNG_AND_OLD, problem_of((1, 1))).score == 1
    finally:
        os.sched_setaffinity(0, allowed)
        verifier.close()


def test_a_program_may_not_choose_its_cpus() -> None:
    program = "import os\n\ndef cpus():\n    os.sched_setaffinity(0, {0})\n"
    verdict = UnitTestVerifier()(program, problem_of(None))
    assert verdict.score == 0
    assert verdict.detail["exception"]["type"] == "PermissionError"  # type: ignore[index]  # it holds an exception
