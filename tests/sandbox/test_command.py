"""A program of the machine in the jail: what it may do, and how it ends."""

from __future__ import annotations

import json
import os

import pytest

from tests.sandbox.denying import DENY, run_in_a_new_process
from tests.sandbox.in_jail import MAY, TRY, run
from verifiers.sandbox import LaunchError, Limits, run_binary


def test_it_reads_its_folder_and_writes_what_it_may():
    finished = run(TRY)
    assert finished.exit_code == 0, finished.stderr
    assert {name for name, worked in json.loads(finished.stdout).items() if worked} == MAY
    assert finished.written == {"out.txt": b"written"}


DENIED = f"""
import sys
sys.path.insert(0, {os.getcwd()!r})
import json
from tests.sandbox.in_jail import TRY, run
from verifiers import SandboxUnavailableError
try:
    finished = run(TRY)
    worked = [name for name, worked in json.loads(finished.stdout).items() if worked]
    print(json.dumps([finished.isolation, worked]))
except SandboxUnavailableError as error:
    print(json.dumps(["refused", str(error)]))
"""


def test_without_namespaces_landlock_holds_the_same():
    isolation, worked = json.loads(run_in_a_new_process(f"{DENY}\ndeny('unshare', error=1)\n{DENIED}")[0])
    assert (isolation, {*worked}) == ("landlock+seccomp", MAY)


def test_without_both_it_refuses():
    denied = f"{DENY}\ndeny('unshare', 'landlock_create_ruleset')\n{DENIED}"
    said, why = json.loads(run_in_a_new_process(denied)[0])
    assert said == "refused"
    assert "neither landlock nor namespaces" in why
    assert "isolation='none'" in why


@pytest.mark.parametrize(
    ("source", "stopped"),
    [
        ("while True: pass", "cpu"),
        ("import time; time.sleep(1000)", "wall"),
        (
            "import signal, sys; signal.signal(signal.SIGXFSZ, signal.SIG_DFL)\nwhile True: sys.stdout.write('x' * 4096)",
            "output",
        ),
    ],
)
def test_limits_stop_it(source, stopped):
    finished = run(source, cpu_s=1, wall_s=2 if stopped == "wall" else 60)
    assert finished.stopped == stopped
    assert len(finished.stdout) <= 1 << 20


def test_memory_is_limited():
    finished = run("print(len(bytearray(1 << 30)))")
    assert finished.exit_code == 1
    assert b"MemoryError" in finished.stderr


def test_what_is_no_program_is_an_error_and_no_verdict():
    limits = Limits(10, 60, 60, 512, 1, 8)
    with pytest.raises(LaunchError, match="can't execute /no/such/program"):
        run_binary(["/no/such/program"], {}, [], readable=[], limits=limits, isolation="auto")


FIND_OPEN = """
import os
def is_open(number):
    try: os.fstat(number)
    except OSError: return False
    return True
print([number for number in range(3, 512) if is_open(number)])
"""


def test_a_program_gets_no_report_however_many_files_its_caller_has_open():
    opened = [os.open(os.devnull, os.O_RDONLY) for _ in range(150)]
    try:
        finished = run(FIND_OPEN)
        stopped = run("import time; time.sleep(1000)", wall_s=2)
    finally:
        for descriptor in opened:
            os.close(descriptor)
    assert finished.stdout == b"[]\n", finished.stderr
    assert stopped.stopped == "wall"
