"""Where a process may open few files, one error says what to raise, and nothing is left behind."""

from __future__ import annotations

import json
import os

import pytest

from tests.sandbox.denying import run_in_a_new_process

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
