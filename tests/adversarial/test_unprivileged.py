"""A part of the hostile programs, run by a user without privileges and by root, with and without namespaces."""

from __future__ import annotations

import json
import os
import re
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from tests.adversarial.programs import THREADS, programs

NOBODY = 65534
ROOT = Path(__file__).parents[2]
EVERY = 4
"""Of how many programs of the suite one is run here: a third of them in the ordinary suite, others for each case."""

BECOME = """
import ctypes, json, os, sys
from verifiers.sandbox.isolation import namespaces, syscalls
hidden, uid, command = json.loads(sys.argv[1])
if hidden:
    # The interpreter lies in a folder of root's: in a mount namespace of our own, show it alone at the same place.
    syscalls.check(syscalls.libc.unshare(ctypes.c_int(0x00020000)), "unshare")
    handle = os.open(hidden, os.O_PATH)
    namespaces._mount("none", "/", None, 0x44000)
    namespaces._mount("tmpfs", "/" + hidden.split("/")[1], "tmpfs", 0)
    namespaces._bind(handle, hidden)
os.setgroups([])
os.setresgid(uid, uid, uid)
os.setresuid(uid, uid, uid)
os.execv(command[0], command)
"""

RUN = """
import json, os, sys, threading, time
from verifiers import Problem
from verifiers.unit_tests import CallCase, CallTests, UnitTestVerifier
from verifiers.sandbox.isolation import seccomp, syscalls
denied, sources, threads = json.load(sys.stdin)
if denied:
    syscalls.prctl(syscalls.PR_SET_NO_NEW_PRIVS, 1)
    numbers = syscalls.NUMBERS[syscalls.MACHINE]
    tests = [each for name in denied for each in ((0x15, 0, 1, numbers[name]), (0x06, 0, 0, 0x50026))]
    seccomp.Filter([(0x20, 0, 0, 0), *tests, (0x06, 0, 0, 0x7FFF0000)]).install(os.getpid())
problem = Problem("p", "", CallTests("solve", tuple(CallCase((n,), n * n + 7) for n in range(3, 6))))
isolation = "available" if "landlock_create_ruleset" in denied else "auto"
verifier = UnitTestVerifier(timeout_s=0.4, wall_s=6, memory_mib=300, output_mib=2, workers=2, isolation=isolation)
if threads:  # these start after the fork servers
    verifier.verify_batch(sources[:2], [problem] * 2)
    for _ in range(threads):
        threading.Thread(target=threading.Event().wait, daemon=True).start()
    time.sleep(0.3)  # longer than the servers rely on what they counted
verdicts = verifier.verify_batch(sources, [problem] * len(sources))
children = [len(open(f"/proc/{pid}/task/{pid}/children").read().split()) for pid in verifier.idle_servers]
found = [[v.score, *map(v.detail.get, ("isolation", "failure", "exception"))] for v in verdicts]
print(json.dumps([os.getuid(), max(children), found]))
verifier.close()
"""


def is_open_to_all(path: str) -> bool:
    """Whether any user can reach a file."""
    return all(os.stat(parent).st_mode & stat.S_IXOTH for parent in Path(path).resolve().parents)


def run_as(
    uid: int, denied: list[str], sources: list[str], threads: int = 0
) -> tuple[int, int, list[tuple[float, str, str | None, object]]]:
    """Run programs as a user to whom system calls are denied, in a process that has so many threads.

    Returns:
        The user's id, how many children a fork server has in the end at most, and of each verdict score, isolation, failure
        and exception.
    """
    command = [sys.executable, "-B", "-c", RUN]
    if os.getuid() == 0:
        if not is_open_to_all(str(ROOT / "verifiers" / "__init__.py")):
            pytest.skip("the checkout lies where only root can read it")
        hidden = "" if is_open_to_all(f"{sys.base_prefix}/bin/python") else sys.base_prefix
        command = [sys.executable, "-B", "-c", BECOME, json.dumps([hidden, uid, command])]
    done = subprocess.run(
        command,
        input=json.dumps([denied, sources, threads]),
        cwd=ROOT,
        env={"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=600,  # ends a hang
    )
    if "unshare: Operation not permitted" in done.stderr:
        pytest.skip("the interpreter lies where only root can read it, and root may not mount here")
    assert done.returncode == 0, done.stderr
    reported = json.loads(done.stdout)
    return reported[0], reported[1], reported[2]


HONEST = "def solve(n): return n * n + 7"


@pytest.mark.parametrize(
    ("first", "denied", "isolation"),
    [
        (0, [], "namespaces+landlock+seccomp"),
        (1, ["pivot_root"], "landlock+seccomp"),
        (2, ["pivot_root", "landlock_create_ruleset"], "seccomp"),
    ],
)
@pytest.mark.parametrize("share", [3, pytest.param(1, marks=pytest.mark.long)])
def test_hostile_programs_of_an_unprivileged_user(
    first: int, denied: list[str], isolation: str, share: int, tmp_path: Path
) -> None:
    hostile = [source for _, source in programs()][::EVERY][first % share :: share]
    canary = tmp_path / "canary"
    canary.write_text("alive")
    hostile = [source.replace("CANARY", str(canary)).replace("TARGET", str(tmp_path)) for source in hostile]
    sources = [program for source in hostile for program in (source, HONEST)]
    uid, children, verdicts = run_as(NOBODY, denied, sources)
    assert uid != 0
    assert children <= 1, "a tester for each server at most"
    assert {verdict[1] for verdict in verdicts} <= {isolation, "landlock+seccomp"}, (
        "some systems give users no namespaces"
    )
    assert [source for source, verdict in zip(sources, verdicts, strict=True) if verdict[0] != (source == HONEST)] == []
    assert canary.read_text() == "alive"
    assert os.listdir(tmp_path) == ["canary"]


@pytest.mark.skipif(os.getuid() != 0, reason="asks what becomes of root, and this is another user")
@pytest.mark.parametrize("denied", [[], ["pivot_root"]])
def test_root_becomes_a_user_whose_threads_are_limited(denied: list[str]) -> None:
    uid, _, verdicts = run_as(
        0, denied, [HONEST, "import os\ndef solve(n): return [os.getuid()]", f"{THREADS}\nsolve = f"]
    )
    assert uid == 0
    assert verdicts[0][0] == 1
    assert "got [0]" not in str(verdicts[1][3])
    match = re.search(r"got (\d+)", str(verdicts[2][3]))
    assert match is not None
    assert 10 < int(match[1]) <= 128


@pytest.mark.parametrize("denied", [[], ["pivot_root"]])
def test_threads_of_the_caller_are_not_the_programs(denied: list[str]) -> None:
    program = """
import threading
def solve(n):
    go = threading.Event()
    threading.stack_size(65536)
    threads = [threading.Thread(target=go.wait) for _ in range(60)]
    for thread in threads: thread.start()
    go.set()
    for thread in threads: thread.join()
    return n * n + 7
"""
    _, _, verdicts = run_as(NOBODY, denied, [HONEST, program], threads=800)
    assert [(score, failure) for score, _, failure, _ in verdicts] == [(1.0, None)] * 2
