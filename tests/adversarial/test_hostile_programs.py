"""No hostile program passes, leaves anything behind, or harms the program after it."""

from __future__ import annotations

import contextlib
import os
import socket
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.adversarial import honest
from tests.adversarial.programs import HONEST, programs
from tests.sandbox import judge
from verifiers import Outcome, Problem
from verifiers.unit_tests import (
    AssertTests,
    CallCase,
    CallTests,
    CheckTests,
    FunctionTests,
    StdioCase,
    StdioTests,
    UnitTestVerifier,
)

CHECK = """
def check(candidate):
    for n in range(3, 6):
        assert abs(candidate(n) - (n * n + 7)) < 1e-6
"""
CALLS = Problem("calls", "", CallTests("solve", tuple(CallCase((n,), n * n + 7) for n in range(3, 6))))
ASSERTS = Problem("asserts", "", AssertTests(("assert solve(3) == 16", "assert solve(4) == 23")))
CHECKED = Problem("check", "", CheckTests("solve", CHECK))
FUNCTIONS = Problem(
    "functions",
    "",
    FunctionTests("from solution import solve\ndef test_it(): assert list(map(solve, [3, 4])) == [16, 23]"),
)
STDIO = Problem("stdio", "", StdioTests((StdioCase("3\n", "16\n"),)))


KINDS = (CALLS, CHECKED, ASSERTS, FUNCTIONS)
PROGRAMS = programs()
"""Each meets one kind of tests, in turn."""


pytestmark = pytest.mark.sandbox(timeout_s=0.4, wall_s=6, memory_mib=300, output_mib=2)


@pytest.fixture(scope="module")
def patient() -> Iterator[UnitTestVerifier]:
    """With the limits that users have: what honest programs need of CPU time depends on the machine."""
    with contextlib.closing(UnitTestVerifier(memory_mib=300, output_mib=2)) as made:
        yield made


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


def side_effects(canary: Path, server: int) -> dict[str, object]:
    """What a program could have changed; of what the whole machine shares, the part of the sandbox's own user."""
    user = os.stat(f"/proc/{server}").st_uid
    shared = [entry.name for entry in os.scandir("/dev/shm") if is_of(user, entry) or entry.name == "escape"]
    sockets = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    return {
        "canary": canary.read_text(),
        "mode": canary.stat().st_mode,
        "time": canary.stat().st_mtime_ns,
        "files": sorted(os.listdir(canary.parent)),
        "shared memory": sorted(shared),
        "listening": [fields[1] for fields in sockets if fields[3] == "0A" and is_the_sandboxs(user, int(fields[7]))],
    }


def is_of(user: int, entry: os.DirEntry[str]) -> bool:
    try:
        return is_the_sandboxs(user, entry.stat().st_uid)
    except FileNotFoundError:
        return False  # another process's, which just removed it


def is_the_sandboxs(user: int, owner: int) -> bool:
    """Whether an owner is the sandbox's user, where it has one of its own: this one has other processes too."""
    return owner == user != os.getuid()


@pytest.mark.parametrize("number", range(len(PROGRAMS)), ids=[name for name, _ in PROGRAMS])
def test_hostile_program_fails_and_leaves_nothing(number: int, verifier: UnitTestVerifier, canary: Path) -> None:
    source = PROGRAMS[number][1].replace("CANARY", str(canary)).replace("TARGET", str(canary.parent))
    kind = KINDS[number % len(KINDS)]
    assert verifier(HONEST, kind).outcome is Outcome.CORRECT  # so the server is up and warm
    (server,) = verifier.idle_servers
    before, running = side_effects(canary, server), processes()
    verdict = verifier(source, kind)
    assert verdict.score == 0.0, dict(verdict.detail)
    assert verifier.idle_servers == (server,), "the same fork server"
    assert side_effects(canary, server) == before
    assert len(processes()) <= len(running), "it and its tester, and nothing else"
    assert verifier(HONEST, kind).outcome is Outcome.CORRECT


def skip_what_this_python_cannot(name: str) -> None:
    if name in ("lrurec", "deep lru") and sys.version_info[:2] in ((3, 12), (3, 13)):
        pytest.skip(
            "Python 3.12 and 3.13 limit recursion through C, as that of lru_cache, whatever setrecursionlimit says"
        )


@pytest.mark.parametrize("name", honest.FUNCTIONS)
def test_honest_program_passes(name: str, patient: UnitTestVerifier) -> None:
    skip_what_this_python_cannot(name)
    for problem in KINDS:
        verdict = patient(honest.FUNCTIONS[name], problem)
        assert verdict.outcome is Outcome.CORRECT, (problem.id, verdict.detail)


@pytest.mark.parametrize("name", honest.SCRIPTS)
def test_honest_script_passes(name: str, patient: UnitTestVerifier) -> None:
    skip_what_this_python_cannot(name)
    verdict = patient(honest.SCRIPTS[name], STDIO)
    assert verdict.outcome is Outcome.CORRECT, verdict.detail


def test_the_suite_is_large_and_its_programs_differ() -> None:
    assert len({source for _, source in PROGRAMS}) == len(PROGRAMS) >= 400


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
        source = (
            "import socket\n"
            "def solve(n):\n"
            "    s = socket.socket(socket.AF_UNIX)\n"
            "    s.connect('\\0reachable')\n"
            "    return n * n + 7"
        )
        verdict = verifier(source, CALLS)
    assert verdict.detail["failure"] == "forbidden"


def test_a_name_in_the_tests_is_not_the_programs(verifier: UnitTestVerifier) -> None:
    tests = AssertTests(("assert set(solve(3)) == set([16])",))
    source = (
        "class set:\n    def __init__(self, x): pass\n    def __eq__(self, o): return True\ndef solve(n): return [1]"
    )
    assert judge(verifier, source, tests).score == 0.0
    assert judge(verifier, "def solve(n): return [n * n + 7]", tests).score == 1.0
