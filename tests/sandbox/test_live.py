"""Programs that go on between questions: each by itself, for as long as it is asked, and without a trace afterwards."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator

import pytest

from verifiers.sandbox import ProgramEndedError, ProgramRunner

COUNTS = """
import sys
said = []
for line in sys.stdin:
    said.append(line.strip())
    print(len(said), *said, flush=True)
"""
LONG_S = 60.0


@pytest.fixture
def runner() -> Iterator[ProgramRunner]:
    runner = ProgramRunner(workers=1)
    yield runner
    runner.close()


def server_of(runner: ProgramRunner) -> int:
    (pid,) = runner._sandbox.pool.idle_pids()
    return pid


def children(server: int) -> list[int]:
    with open(f"/proc/{server}/task/{server}/children") as file:
        return list(map(int, file.read().split()))


def until_there_are(count: int, server: int) -> None:
    while len(children(server)) != count:
        time.sleep(0.01)


def test_programs_go_on_beside_each_other_and_beside_others(runner: ProgramRunner) -> None:
    first, second = runner.keep(COUNTS), runner.keep(COUNTS)
    assert first.ask("a", LONG_S) == "1 a\n"
    assert second.ask("é", LONG_S) == "1 é\n"
    assert runner("print('by itself')").stdout == "by itself\n"
    assert first.ask("c", LONG_S) == "2 a c\n"
    first.close()
    assert second.ask("d", LONG_S) == "2 é d\n"
    until_there_are(1, server_of(runner))
    del second
    until_there_are(0, server_of(runner))


@pytest.mark.parametrize(
    "program",
    ["while True: pass", "import time; time.sleep(1000)", "print('half', end='', flush=True)"],
)
@pytest.mark.parametrize("question", ["", "longer than the pipe" * 10_000])
def test_one_that_does_not_answer_has_ended(runner: ProgramRunner, program: str, question: str) -> None:
    live = runner.keep(f"{program}\nimport time; time.sleep(1000)")
    with pytest.raises(ProgramEndedError, match="in time"):
        live.ask(question, 0.2)
    live.close()
    until_there_are(0, server_of(runner))


@pytest.mark.parametrize(
    "program",
    [
        "raise ValueError",
        "import os; os._exit(0)",
        "x = bytearray(10**10)",
        "open('/etc/passwd')",
        "import os; os.fork()",
    ],
)
def test_one_that_ends_says_so(runner: ProgramRunner, program: str) -> None:
    live = runner.keep(f"input()\n{program}")
    with pytest.raises(ProgramEndedError):
        live.ask("", LONG_S)
    live.close()
    until_there_are(0, server_of(runner))


def test_they_end_with_their_server_and_another_takes_its_place(runner: ProgramRunner) -> None:
    live = runner.keep(COUNTS)
    server = server_of(runner)
    os.kill(server, signal.SIGKILL)
    os.waitid(os.P_PID, server, os.WEXITED | os.WNOWAIT)
    with pytest.raises(ProgramEndedError):
        live.ask("a", LONG_S)
    assert runner.keep(COUNTS).ask("a", LONG_S) == "1 a\n"


def test_where_programs_can_fork_none_is_kept() -> None:
    runner = ProgramRunner(workers=1, isolation="none")
    with pytest.raises(ProgramEndedError, match="needs filters of system calls"):
        runner.keep(COUNTS)
    runner.close()
