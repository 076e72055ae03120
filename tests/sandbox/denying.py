"""Systems that give less than this one, played by a process to which system calls are denied."""

from __future__ import annotations

import subprocess
import sys

DENY = """
import os
from verifiers.sandbox.isolation import seccomp, syscalls
ELSEWHERE = {"unshare": (272, 97), "mount": (165, 40), "umount2": (166, 39)}
def number_of(name):
    if name in ELSEWHERE:
        return ELSEWHERE[name][syscalls.MACHINE == "aarch64"]
    return syscalls.NUMBERS[syscalls.MACHINE][name]
def deny(*names, error=38):
    syscalls.prctl(syscalls.PR_SET_NO_NEW_PRIVS, 1)
    program = [(0x20, 0, 0, 0)]
    for name in names:
        program += [(0x15, 0, 1, number_of(name)), (0x06, 0, 0, 0x50000 | error)]
    program.append((0x06, 0, 0, 0x7FFF0000))
    seccomp.Filter(program).install(os.getpid())
from verifiers import Problem
from verifiers.unit_tests import CallCase, CallTests, StdioCase, StdioTests, UnitTestVerifier
problem = Problem("p", "", CallTests("f", (CallCase((3,), 9),)))
"""
"""Source that defines `deny`, which has system calls fail by an error, `ENOSYS` or another."""


def run_in_a_new_process(source: str) -> list[str]:
    """Run a script, and return the lines that it prints."""
    done = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True, timeout=600, check=True)
    return done.stdout.strip().split("\n")
