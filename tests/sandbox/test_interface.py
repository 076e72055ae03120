"""The jail by itself: it knows nothing of its use, others use its face alone, and code of one's own runs by a contract."""

from __future__ import annotations

import ast
import re
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

import verifiers.sandbox
from verifiers.sandbox import Contract, JobEnd, Limits, Plan, Pool, Role, memory_files
from verifiers.sandbox.memory_files import read_all
from verifiers.sandbox.packages import Packages

HOME = Path(verifiers.sandbox.__file__).parent
ROOT = HOME.parents[1]
IN_JAIL = [ROOT / "verifiers" / "unit_tests" / contract for contract in ("separate", "together")]
"""Packages that the fork server loads: they find the jail's modules, and not its face."""
USE = re.compile(r"\b(tests?|tested|testers?|candidates?|reports?|verdicts?)\b", re.IGNORECASE)
ALLOWED = ("verifiers.errors", "verifiers.bounds", "verifiers._settings")
MODULES = ("antigravity this test idlelib", '(".test", ".tests")')
"""Modules of the standard library, which may be called anything."""


def imported(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level:
            yield node.module or ""


def test_the_jail_knows_nothing_of_its_use() -> None:
    for path in HOME.rglob("*.py"):
        for number, line in enumerate(path.read_text().splitlines(), 1):
            assert not USE.search(line) or any(names in line for names in MODULES), f"{path}:{number}: {line}"
        for name in imported(path):
            allowed = name in ALLOWED or name.startswith("verifiers.sandbox")
            assert allowed or not name.startswith(("verifiers", "rlvr_envs", "agents")), f"{path} imports {name}"


@pytest.mark.parametrize("package", ["verifiers", "rlvr_envs", "agents"])
def test_others_use_its_face_alone(package: str) -> None:
    for path in (ROOT / package).rglob("*.py"):
        if HOME not in path.parents and not any(home in path.parents for home in IN_JAIL):
            inside = [name for name in imported(path) if name.startswith("verifiers.sandbox.")]
            assert not inside, f"{path} reaches into {inside}"


MODULE = "tests.sandbox.example.roles"
EXAMPLE = Contract(
    "tests.sandbox.example",
    (
        Role("answering", f"{MODULE}:answer"),
        Role("asking", f"{MODULE}:ask_once"),
        Role("lasting", f"{MODULE}:ask_for_ever", lasting=True),
    ),
    prepare=f"{MODULE}:prepare",
)
ASKED = ("<answers", ">questions", "numbers", "squares")
LIMITS = Limits(cpu_s=1, wall_s=20, idle_s=2, memory_mib=512, output_mib=1, processes=8)


@pytest.fixture(params=["auto", "none"])
def pool(request: pytest.FixtureRequest) -> Iterator[Pool]:
    made = Pool(1, request.param, Packages(), EXAMPLE)
    yield made
    made.close()


def run(pool: Pool, numbers: bytes, last: str = "asking") -> tuple[JobEnd, bytes, str]:
    """Run a job of the example; gives its end, the squares, and who asked for them."""
    plan = Plan(("numbers", "squares"), (("answering", ("<questions", ">answers")), (last, ASKED)))
    with memory_files(numbers, b"") as files:
        with pool.worker() as worker:
            end = worker.run(plan, files, LIMITS)
        squares, _, asked_by = read_all(files[1]).partition(b" by ")
        return end, squares, asked_by.decode()


def test_code_of_ones_own_runs_in_processes_that_are_joined(pool: Pool) -> None:
    for _ in range(2):
        end, squares, asked_by = run(pool, b"\1\2\3")
        assert squares == b"\1\4\11"
        assert asked_by.endswith(", prepared with 0 packages")
        assert end.stopped is None
        assert end.processes["asking"].exit_code == 0
        assert end.processes["answering"].exit_code in (3, -signal.SIGKILL), "the job lasts until the last role ends"
        assert all(process.cpu_s > 0 and process.memory_bytes > 1 << 20 for process in end.processes.values())


def test_a_lasting_process_serves_job_after_job_until_it_declines_or_ends(pool: Pool) -> None:
    ends = [run(pool, numbers, "lasting") for numbers in (b"\1", b"\2\3", b"\0", b"\1")]
    assert [squares for _, squares, _ in ends] == [b"\1", b"\4\11", b"\0", b"\1"]
    exits = [end.processes["lasting"].exit_code for end, _, _ in ends]
    askers = [asked_by for _, _, asked_by in ends]
    if pool.isolation() == "none":  # where a program may leave processes behind, each job has a process of its own
        assert len({*askers}) == 4
    else:
        assert exits == [None, None, 5, None]
        assert (len({*askers}), askers[0]) == (3, askers[1])


def test_a_limit_stops_a_job_of_several_processes(pool: Pool) -> None:
    waits = (*ASKED, ">answers")  # it would have to answer itself
    plan = Plan(("numbers", "squares"), (("answering", ("<questions", "null")), ("asking", waits)))
    with memory_files(b"\1", b"") as files, pool.worker() as worker:
        end = worker.run(plan, files, LIMITS)
    assert end.stopped == "idle"
    assert {process.exit_code for process in end.processes.values()} <= {-signal.SIGKILL, 3}
