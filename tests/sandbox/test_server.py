"""Parts of the fork server: the system-call filters, and what counts as idle."""

from __future__ import annotations

import os
from collections.abc import Iterator
from itertools import cycle, repeat

import pytest

from verifiers import Problem
from verifiers.sandbox.isolation import syscalls
from verifiers.sandbox.memory_files import read_all
from verifiers.sandbox.server.idle import Idleness
from verifiers.unit_tests import CallCase, CallTests, UnitTestVerifier


def test_a_whole_file_is_read_wherever_its_offset_is() -> None:
    file = os.memfd_create("test")
    os.write(file, b"content" * 1000)
    assert read_all(file) == b"content" * 1000
    os.close(file)


CALLS_OF_THE_SERVER = ("sendmsg", "recvmsg", "wait4", "pidfd_open", "close_range")
CALLS_OF_NOBODY = ("landlock_create_ruleset", "mount_setattr", "pivot_root", "capset")


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


TICK = 0.25


def idle_after(ticks: int, shares: Iterator[float], has_cpu: Iterator[bool]) -> float:
    idleness = Idleness(lambda: next(has_cpu))
    for share in (next(shares) for _ in range(ticks)):
        idleness.add(TICK, share * TICK)
    return idleness.seconds


def test_who_does_nothing_is_idle_under_any_load() -> None:
    assert idle_after(40, repeat(0.003), repeat(False)) == 10


def test_who_works_is_not_idle() -> None:
    assert idle_after(40, repeat(0.06), repeat(True)) == 0


def test_who_does_little_is_idle_if_there_was_cpu_time_to_be_had() -> None:
    assert idle_after(40, repeat(0.03), repeat(True)) == 10


def test_who_was_given_little_is_not_idle() -> None:
    assert idle_after(40, repeat(0.03), repeat(False)) == 0
    assert idle_after(40, repeat(0.03), cycle([True, False])) == 5


def test_trials_are_rare() -> None:
    assert idle_after(40, repeat(0.03), iter([True] * 10)) == 10
