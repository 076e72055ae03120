"""Fork servers: threads, forks, deaths, shutdown, few files, the CPUs of a job, and systems without isolation."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Literal

import pytest

from tests.adversarial.programs import THREADS
from tests.sandbox.denying import DENY, run_in_a_new_process
from verifiers import Outcome, Problem
from verifiers.sandbox import pool, worker
from verifiers.unit_tests import CallCase, CallTests, UnitTestVerifier

SQUARE = Problem("square", "", CallTests("f", (CallCase((3,), 9),)))
RIGHT, WRONG = "def f(x): return x * x", "def f(x): return x"


def wait_until_gone(pid: int) -> None:
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        try:
            if Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] == "Z":
                return
        except (FileNotFoundError, ProcessLookupError):
            return
        time.sleep(0.02)
    raise AssertionError(f"process {pid} is still there")


def server_pid(verifier: UnitTestVerifier) -> int:
    (pid,) = verifier.idle_servers
    return pid


def test_threads_share_a_verifier_and_may_end_before_it() -> None:
    verifier = UnitTestVerifier(workers=1)
    scores: list[float] = []
    threads = [threading.Thread(target=lambda: scores.append(verifier(RIGHT, SQUARE).score)) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert scores == [1] * 6
    pid = server_pid(verifier)
    assert verifier(RIGHT, SQUARE).score == 1
    assert server_pid(verifier) == pid, "the server outlives the thread that started it"
    verifier.close()
    wait_until_gone(pid)


def test_a_forked_process_has_servers_of_its_own() -> None:
    verifier = UnitTestVerifier()
    assert verifier(RIGHT, SQUARE).score == 1
    pid = server_pid(verifier)
    child = os.fork()
    if child == 0:
        good = verifier(RIGHT, SQUARE).score == 1 and server_pid(verifier) != pid
        verifier.close()
        os._exit(0 if good else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert server_pid(verifier) == pid
    assert verifier(WRONG, SQUARE).score == 0
    verifier.close()


def test_a_dead_server_is_replaced_and_the_job_tried_again() -> None:
    verifier = UnitTestVerifier()
    assert verifier.idle_servers == ()
    assert verifier(RIGHT, SQUARE).outcome is Outcome.CORRECT
    for _ in range(2):
        os.kill(server_pid(verifier), signal.SIGKILL)
        assert verifier(RIGHT, SQUARE).outcome is Outcome.CORRECT
    verifier.close()


def test_a_server_that_cannot_start_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker, "_BOOT", worker._BOOT.replace("main()\n", "main(1)\n"))
    verdict = UnitTestVerifier()(RIGHT, SQUARE)
    assert verdict.outcome is Outcome.VERIFIER_ERROR
    error = str(verdict.detail["error"])
    assert error.startswith("the fork server died 2 times: the fork server ended (exit status 0): Traceback")
    assert "main() takes 0 positional arguments but 1 was given" in error
    assert verdict.detail["isolation"] == "unknown"


@pytest.mark.parametrize("program", ["while True: pass", "import time; time.sleep(1000)"])
def test_nothing_survives_a_killed_parent(program: str) -> None:
    source = f"""
import threading
from verifiers import Problem
from verifiers.unit_tests import CallCase, CallTests, UnitTestVerifier
verifier = UnitTestVerifier(timeout_s=300)
problem = Problem("p", "", CallTests("f", (CallCase((3,), 9),)))
verifier({RIGHT!r}, problem)
print(*verifier.idle_servers, flush=True)
verifier({program!r}, problem)
"""
    with subprocess.Popen([sys.executable, "-c", source], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        server = int(parent.stdout.readline())
        children = Path(f"/proc/{server}/task/{server}/children")
        deadline = time.monotonic() + 120
        while len(pids := children.read_text().split()) < 2:
            assert time.monotonic() < deadline
            time.sleep(0.01)
        parent.kill()
    for pid in (server, *map(int, pids)):
        wait_until_gone(pid)


def test_a_verifier_that_is_dropped_ends_its_servers() -> None:
    verifier = UnitTestVerifier()
    assert verifier(RIGHT, SQUARE).score == 1
    pid = server_pid(verifier)
    del verifier
    wait_until_gone(pid)


PATHS = """
import os
TRIED = {
    'forbidden': ['open("/etc/hostname")', 'os.listdir("/proc")', 'open("/root/../etc/passwd")', 'os.scandir("/nothing/here")'],
    'exception': ['open("nothing")', 'open("/usr/lib/nothing/here")', '{}["/etc/hostname"]'],
}
verifier = UnitTestVerifier()
for failure, tries in TRIED.items():
    for each in tries:
        verdict = verifier(f"import os\\ndef f(x): return {each}", problem)
        assert verdict.detail["failure"] == failure, (each, verdict.detail)
    script = verifier(f"import os\\n{tries[0]}", Problem("p", "", StdioTests((StdioCase("", ""),))))
    assert script.detail["failure"] == failure, script.detail
print(verdict.detail["isolation"])
verifier.close()
"""


@pytest.mark.parametrize(
    ("denied", "isolation"),
    [
        ("pivot_root", "landlock+seccomp"),
        ("landlock_create_ruleset", "namespaces+seccomp"),
        ("", "namespaces+landlock+seccomp"),
    ],
)
def test_a_path_out_of_bounds_is_forbidden_by_every_layer(denied: str, isolation: str) -> None:
    deny = f"deny({denied!r})\n" if denied else ""
    done = subprocess.run([sys.executable, "-c", DENY + deny + PATHS], capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == isolation


def test_strays_of_an_unisolated_program_do_not_survive_a_killed_parent(tmp_path: Path) -> None:
    stray = tmp_path / "stray"
    program = f"""
import os, time
if os.fork() == 0:
    os.setsid()
    if os.fork(): os._exit(0)
    open({str(stray) + ".part"!r}, "w").write(str(os.getpid()))
    os.rename({str(stray) + ".part"!r}, {str(stray)!r})
    time.sleep(1000)
def f(x): time.sleep(1000)
"""
    source = f"""
from verifiers import Problem
from verifiers.unit_tests import CallCase, CallTests, UnitTestVerifier
UnitTestVerifier(isolation="none", timeout_s=300)({program!r}, Problem("p", "", CallTests("f", (CallCase((3,), 9),))))
"""
    with subprocess.Popen([sys.executable, "-c", source]) as parent:
        deadline = time.monotonic() + 120
        while not stray.exists():
            assert time.monotonic() < deadline
            time.sleep(0.01)
        parent.kill()
    wait_until_gone(int(stray.read_text()))


ELSEWHERE = """
import sys
for name in {absent!r}: sys.modules[name] = None
import ctypes, os
import importlib.metadata  # before the platform changes: from Python 3.12 on, shutil imports what only Windows has on win32
def missing(*_, **__): raise TypeError("bad argument type for built-in operation")
ctypes.PyDLL = missing
for name in {removed!r}: vars(os).pop(name, None)
sys.platform = {platform!r}
import verifiers
from verifiers import Problem
from verifiers.unit_tests import CallCase, CallTests, StdioCase, StdioTests, UnitTestVerifier
problem = Problem("p", "", CallTests("f", (CallCase((3,), 9),)))
for isolation in ("auto", "none"):
    try:
        verdict = UnitTestVerifier(isolation=isolation)("def f(x): return 9", problem)
        print(verdict.score, verdict.detail["isolation"])
    except verifiers.SandboxUnavailableError as error: print(error)
"""


@pytest.mark.parametrize("platform", ["darwin", "win32"])
def test_another_platform_is_told_what_to_do(platform: str) -> None:
    removed = (
        "memfd_create",
        "pidfd_open",
        *(["register_at_fork", "fork", "sysconf", "wait4"] if platform == "win32" else []),
    )
    absent = ("resource", "fcntl", "termios") if platform == "win32" else ()
    messages = run_in_a_new_process(ELSEWHERE.format(platform=platform, removed=removed, absent=absent))
    assert len(messages) == 2
    for message in messages:
        assert f"this is {platform!r}, whose Python lacks os.memfd_create and os.pidfd_open" in message
        assert "docker run" in message


@pytest.mark.parametrize(
    ("call", "isolation", "said"),
    [
        ("pidfd_open", "none", "this kernel can't watch processes through descriptors (pidfd_open:"),
        *(("prctl", mode, "this system doesn't let a process reap its descendants") for mode in ("auto", "none")),
    ],
)
def test_a_system_without_pidfds_or_prctl_is_named_at_once(call: str, isolation: str, said: str) -> None:
    source = DENY + (
        f"deny({call!r})\n"
        f"try: UnitTestVerifier(isolation={isolation!r})('def f(x): return 9', problem)\n"
        "except Exception as error: print(type(error).__name__, error)\n"
    )
    (message,) = run_in_a_new_process(source)
    assert message.startswith(f"SandboxUnavailableError {said}")


@pytest.mark.parametrize(
    ("quotas", "cpus"),
    [
        ({}, 6),
        ({"": "max 100000"}, 6),
        ({"": "150000 100000"}, 2),
        ({"/a": "400000 100000", "/a/b": "300000 100000"}, 3),
        ({"/other": "100000 100000"}, 6),
        ({"/a/b": ""}, 6),
    ],
)
def test_cpus_are_those_of_the_container(
    quotas: dict[str, str], cpus: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(6)))
    (tmp_path / "own").write_text("1:name=old:/x\n0::/a/b\n")
    for group, content in quotas.items():
        (tmp_path / f"cgroup{group}").mkdir(parents=True, exist_ok=True)
        (tmp_path / f"cgroup{group}" / "cpu.max").write_text(content)
    assert pool.available_cpus(f"{tmp_path}/cgroup", f"{tmp_path}/own") == cpus
    assert pool.available_cpus(f"{tmp_path}/cgroup", f"{tmp_path}/missing") == 6


def test_threads_are_limited() -> None:
    verifier = UnitTestVerifier(max_threads=20)
    verdict = verifier(THREADS, SQUARE)
    message = verdict.detail["exception"]["message"]  # type: ignore[index]  # a mapping, by its documentation
    assert int(message.split(",")[0].removeprefix("got ")) <= 20
    verifier.close()


@pytest.mark.parametrize("isolation", ["auto", "none"])
def test_a_machine_without_memory_ends_programs_first(isolation: Literal["auto", "none"]) -> None:
    with contextlib.closing(UnitTestVerifier(timeout_s=5, isolation=isolation)) as verifier:
        assert verifier(RIGHT, SQUARE).score == 1
        server = server_pid(verifier)
        children = Path(f"/proc/{server}/task/{server}/children").read_text().split()
        scores = [Path(f"/proc/{pid}/oom_score_adj").read_text().strip() for pid in (server, *children)]
    assert set(scores) == {"1000"}
    assert Path("/proc/self/oom_score_adj").read_text().strip() != "1000"


# Few files


FEW = """
import collections, json, os, resource, threading, warnings
from verifiers import Problem, SandboxUnavailableError
from verifiers.unit_tests import CallCase, CallTests, UnitTestVerifier

warnings.simplefilter("error")
verifier = UnitTestVerifier(workers=12)
problem = Problem("p", "", CallTests("f", (CallCase((3,), 9),)))
found = collections.Counter()

def opened(): return len(os.listdir("/proc/self/fd"))
def children(): return open(f"/proc/self/task/{os.getpid()}/children").read().split()

def judge():
    for _ in range(4):
        try: found[verifier("def f(x): return x * x", problem).outcome.value] += 1
        except SandboxUnavailableError as error:
            assert "ulimit -n" in str(error) and "workers" in str(error), error
            found["refused"] += 1
        except BaseException as error: found[repr(error)] += 1

def judge_at_once():
    threads = [threading.Thread(target=judge) for _ in range(12)]
    for thread in threads: thread.start()
    for thread in threads: thread.join()

before = opened()
resource.setrlimit(resource.RLIMIT_NOFILE, LIMITS)
judge_at_once()
few = dict(found)
verifier.close()
left = [opened() - before, children()]
found.clear()
if LIMITS[1] > 64:
    resource.setrlimit(resource.RLIMIT_NOFILE, (LIMITS[1], LIMITS[1]))
    judge_at_once()
    verifier.close()
print(json.dumps([few, left, found]))
"""


@pytest.mark.parametrize("hard", [4096, 64])
def test_few_descriptors_are_named(hard: int) -> None:
    few, left, more = json.loads(run_in_a_new_process(f"LIMITS = (64, {hard})\n{FEW}")[0])
    assert few.pop("refused") > 0
    assert set(few) <= {"correct"}
    assert left == [0, []]
    assert more == ({"correct": 48} if hard > 64 else {})


BINARY = f"""
import sys
sys.path.insert(0, {os.getcwd()!r})
import os, resource
from tests.sandbox.in_jail import run
from verifiers import SandboxUnavailableError
said = []
before = len(os.listdir("/proc/self/fd"))
for number in range(before, before + 12):
    resource.setrlimit(resource.RLIMIT_NOFILE, (number, 4096))
    try: said.append(run("print(1)").stdout.decode())
    except SandboxUnavailableError as error: said.append("ulimit -n" in str(error))
resource.setrlimit(resource.RLIMIT_NOFILE, (4096, 4096))
print(sorted(map(str, set(said))), len(os.listdir("/proc/self/fd")) - before)
"""


def test_they_are_named_for_programs_of_the_machine_too() -> None:
    assert run_in_a_new_process(BINARY) == [r"['1\n', 'True'] 0"]


# CPUs


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
