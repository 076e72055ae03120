"""Parts of the fork server: the system-call filters, memory copied at the fork, a process that lasts, what counts as idle."""

from __future__ import annotations

import subprocess
import sys
from itertools import cycle

import pytest

from verifiers import Problem
from verifiers.sandbox.isolation import syscalls
from verifiers.sandbox.server.idle import Idleness
from verifiers.unit_tests import CallCase, CallTests, UnitTestVerifier

CALLS_OF_THE_SERVER = ("sendmsg", "recvmsg", "wait4", "pidfd_open", "close_range")
CALLS_OF_NOBODY = ("io_uring_setup", "landlock_create_ruleset", "mount_setattr", "pivot_root", "capset")


@pytest.mark.parametrize("name", [*CALLS_OF_THE_SERVER, *CALLS_OF_NOBODY])
def test_a_program_may_not_call_what_only_the_server_needs(name: str) -> None:
    number = syscalls.NUMBERS[syscalls.MACHINE][name]
    program = f"""
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
def f(x):
    return [libc.syscall({number}, -1, 0, 0, 0, 0), ctypes.get_errno()]
"""
    verifier = UnitTestVerifier()
    verdict = verifier(program, Problem("p", "", CallTests("f", (CallCase((0,), [-1, 1]),))))
    verifier.close()
    assert verdict.score == 1, dict(verdict.detail)


FORKING = """
import os, resource
from verifiers.sandbox.server import page_pinning as hotpages
PAGES, SIZE = 400, 4096
memory = bytearray(b"x" * PAGES * SIZE)
hotpages_pinned = []
pin = hotpages._pin

def record_and_pin(pages):
    hotpages_pinned.append(list(pages))
    pin(hotpages_pinned[-1])

hotpages._pin = record_and_pin

def write_to_all():
    for page in range(PAGES):
        memory[page * SIZE + 100] = 1

def faults_of_a_child():
    reader, writer = os.pipe()
    if os.fork() == 0:
        before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
        write_to_all()
        after = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
        os.write(writer, str(after - before).encode())
        os._exit(0)
    os.wait()
    return int(os.read(reader, 100))

before = faults_of_a_child()
pinned = hotpages.pin_written_by(write_to_all)
print(before, pinned, faults_of_a_child(), sum(len(run) for run in hotpages_pinned))
"""


def test_a_child_meets_no_faults_where_the_fork_has_copied() -> None:
    done = subprocess.run([sys.executable, "-c", FORKING], capture_output=True, text=True, timeout=600, check=True)
    before, pinned, after, pages = done.stdout.split()
    assert int(before) >= 390
    if pinned == "False":
        pytest.skip("this system lets no process pin memory")
    assert int(after) < 100
    # Pages that the child has not written to are not pinned.
    assert int(pages) < 700


TICK = 0.25


@pytest.mark.parametrize(
    ("share", "has_cpu", "seconds"),
    [(0.003, [False], 10), (0.03, [True], 10), (0.03, [False], 0), (0.03, [True, False], 5)],
)
def test_who_does_nothing_is_idle_and_who_does_little_if_there_was_cpu_time_to_be_had(
    share: float, has_cpu: list[bool], seconds: float
) -> None:
    had = cycle(has_cpu)
    idleness = Idleness(lambda: next(had))
    for _ in range(40):
        idleness.add(TICK, share * TICK)
    assert idleness.seconds == seconds
