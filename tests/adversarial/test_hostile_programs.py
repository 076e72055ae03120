# ruff: noqa: E501 - a program reads best on one line
"""No hostile program passes, leaves anything behind, or harms the program after it."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.adversarial.programs import HONEST, programs
from verifiers import Outcome, Problem, Verdict
from verifiers.unit_tests import AssertTests, CallCase, CallTests, CheckTests, StdioCase, StdioTests, UnitTestVerifier

CHECK = "def check(candidate):\n    for n in range(3, 6):\n        assert abs(candidate(n) - (n * n + 7)) < 1e-6\n"
CALLS = Problem("calls", "", CallTests("solve", tuple(CallCase((n,), n * n + 7) for n in range(3, 6))))
ASSERTS = Problem("asserts", "", AssertTests(("assert solve(3) == 16", "assert solve(4) == 23")))
CHECKED = Problem("check", "", CheckTests("solve", CHECK))
STDIO = Problem("stdio", "", StdioTests((StdioCase("3\n", "16\n"),)))


@pytest.fixture(scope="module")
def verifier() -> Iterator[UnitTestVerifier]:
    verifier = UnitTestVerifier(timeout_s=0.4, wall_s=6, memory_mib=300, output_mib=2)
    yield verifier
    verifier.close()


@pytest.fixture(scope="module")
def canary(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("target") / "canary"
    path.write_text("alive")
    return path


def processes() -> set[int]:
    """This process's descendants, and whatever else is in a session of theirs: a stray that lost its parent stays there."""
    table = dict(filter(None, (parent_and_session(pid) for pid in filter(str.isdigit, os.listdir("/proc")))))
    mine, size = {os.getpid()}, 0
    while len(mine) > size:
        size = len(mine)
        mine |= {pid for pid, (parent, _) in table.items() if parent in mine}
    sessions = {table[pid][1] for pid in mine if pid in table} - {os.getsid(0)}
    return mine | {pid for pid, (_, session) in table.items() if session in sessions}


def parent_and_session(pid: str) -> tuple[int, tuple[int, int]] | None:
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    except OSError:
        return None  # it ended while it was looked at
    return int(pid), (int(fields[1]), int(fields[3]))


def side_effects(canary: Path) -> dict[str, object]:
    return {
        "canary": canary.read_text(),
        "mode": canary.stat().st_mode,
        "time": canary.stat().st_mtime_ns,
        "files": sorted(os.listdir(canary.parent)),
        "shared memory": sorted(os.listdir("/dev/shm")),
        "listening": [line.split()[1] for line in Path("/proc/net/tcp").read_text().splitlines()[1:] if " 0A " in line],
    }


@pytest.mark.parametrize(("name", "source"), programs(), ids=[name for name, _ in programs()])
def test_hostile_program_fails_and_leaves_nothing(
    name: str, source: str, verifier: UnitTestVerifier, canary: Path
) -> None:
    source = source.replace("CANARY", str(canary)).replace("TARGET", str(canary.parent))
    assert verifier(HONEST, CALLS).outcome is Outcome.CORRECT  # so the server is up and warm
    before, running = side_effects(canary), processes()
    verdicts = [judge(verifier, source, problem) for problem in (CALLS, CHECKED)]
    assert [verdict.score for verdict in verdicts] == [0.0, 0.0], [dict(verdict.detail) for verdict in verdicts]
    assert side_effects(canary) == before
    assert processes() == running, "the same fork server, and nothing else"
    assert verifier(HONEST, CHECKED).outcome is Outcome.CORRECT


def judge(verifier: UnitTestVerifier, source: str, problem: Problem) -> Verdict:
    return verifier(source, problem)


def test_the_suite_is_large_and_its_programs_differ() -> None:
    assert len({source for _, source in programs()}) == len(programs()) >= 150


@pytest.mark.parametrize(
    "body",
    [
        "print(16)\nimport os\nos._exit(3)",
        "print('16' * 10**7)",
        "import sys\nsys.stdout.write('16')\nraise ValueError",
        "while True: print(16)",
        "import os\nos.lseek(1, 0, 0)\nos.ftruncate(1, 0)",
        "import os, signal\nprint(16, flush=True)\nos.kill(os.getpid(), signal.SIGTERM)",
        "import os\nprint(16, flush=True)\nos.kill(os.getppid(), 9)",
        "print(open(0).read())",
        "print(16, flush=True)\nwhile True: pass",
        "import atexit\nprint(16)\natexit.register(lambda: print(17))",
    ],
)
def test_hostile_script_fails(body: str, verifier: UnitTestVerifier) -> None:
    assert verifier(body, STDIO).score == 0.0
    assert verifier("n = int(input())\nprint(n * n + 7)", STDIO).score == 1.0


def test_an_abstract_socket_of_the_host_is_out_of_reach(verifier: UnitTestVerifier) -> None:
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind("\0reachable")
        listener.listen()
        source = "import socket\ndef solve(n):\n    s = socket.socket(socket.AF_UNIX)\n    s.connect('\\0reachable')\n    return n * n + 7"
        verdict = verifier(source, CALLS)
    assert verdict.detail["failure"] == "forbidden"


def test_a_name_in_the_tests_is_not_the_programs(verifier: UnitTestVerifier) -> None:
    problem = Problem("p", "", AssertTests(("assert set(solve(3)) == set([16])",)))
    source = (
        "class set:\n    def __init__(self, x): pass\n    def __eq__(self, o): return True\ndef solve(n): return [1]"
    )
    assert verifier(source, problem).score == 0.0
    assert verifier("def solve(n): return [n * n + 7]", problem).score == 1.0
