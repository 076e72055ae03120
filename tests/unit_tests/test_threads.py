# ruff: noqa: E501 - a program reads best on one line
"""Tests whose threads call the program, programs whose threads call the tests, and what counts as idle."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import cycle, repeat

import pytest

from verifiers import Outcome, Problem, Verdict
from verifiers.unit_tests import CallCase, CallTests, FunctionTests, UnitTestVerifier
from verifiers.unit_tests.sandbox.server.idle_detector import Idleness


@pytest.fixture(scope="module")
def verifier() -> Iterator[UnitTestVerifier]:
    verifier = UnitTestVerifier(timeout_s=1, memory_mib=512)
    yield verifier
    verifier.close()


PROGRAM = """
import queue, threading
class Counter:
    def __init__(self): self.value, self.lock, self.items = 0, threading.Lock(), []
    def increase(self):
        with self.lock: self.value += 1
    def __add__(self, other): return self.value + other
    def append(self, item): self.items.append(item)
    def __len__(self): return len(self.items)
class Box(queue.Queue): pass
barrier = threading.Barrier(2)
def square(x): return x * x
def fail(x): raise ValueError(x)
def apply(function, values):
    from concurrent.futures import ThreadPoolExecutor
    with ThreadPoolExecutor(4) as pool: return list(pool.map(function, values))
"""
IMPORTS = "import threading\nfrom concurrent.futures import ThreadPoolExecutor\nfrom unittest.mock import patch\nimport pytest, solution\nfrom solution import Box, Counter, apply, barrier, fail, square\n"
HONEST = {
    "threads": "counter = Counter()\n    def work():\n        for _ in range(50): counter.increase()\n    threads = [threading.Thread(target=work) for _ in range(4)]\n    for t in threads: t.start()\n    for t in threads: t.join()\n    assert counter.value == 200",
    "answers": "with ThreadPoolExecutor(4) as pool: assert list(pool.map(square, range(40))) == [i * i for i in range(40)]",
    "exceptions": "with ThreadPoolExecutor(4) as pool: found = [pool.submit(fail, i).exception().args for i in range(20)]\n    assert found == [(i,) for i in range(20)]",
    "operators": "Counter().increase()\n    with ThreadPoolExecutor(4) as pool: assert all(pool.map(lambda i: Counter() + i == i, range(40)))",
    "sizes": "counter = Counter()\n    def work(i):\n        counter.append(i)\n        return len(counter)\n    with ThreadPoolExecutor(4) as pool: sizes = list(pool.map(work, range(40)))\n    assert max(sizes) == 40 == len(counter)",
    "names": "with ThreadPoolExecutor(4) as pool: assert list(pool.map(lambda i: solution.square(i), range(20))) == [i * i for i in range(20)]",
    "callbacks": "with ThreadPoolExecutor(4) as pool: assert list(pool.map(lambda i: apply(square, [i, i + 1]), range(5))) == [[i * i, (i + 1) ** 2] for i in range(5)]",
    "replaced": "with patch('builtins.abs', lambda x: 7), ThreadPoolExecutor(4) as pool: assert list(pool.map(square, range(20))) == [i * i for i in range(20)]",
    "program's threads": "seen = []\n    assert apply(lambda x: seen.append(x) or square(x), range(20)) == [i * i for i in range(20)]\n    assert sorted(seen) == list(range(20))",
    "queue": "box = Box()\n    thread = threading.Thread(target=box.put, args=(3,))\n    thread.start()\n    thread.join()\n    assert box.get() == 3",
}


def judge(verifier: UnitTestVerifier, body: str) -> Verdict:
    return verifier(PROGRAM, Problem("p", "", FunctionTests(f"{IMPORTS}def test_it():\n    {body}\n")))


@pytest.mark.parametrize("name", HONEST)
def test_threads_get_their_own_answers(verifier: UnitTestVerifier, name: str) -> None:
    verdict = judge(verifier, HONEST[name])
    assert verdict.outcome is Outcome.CORRECT, verdict.detail


def test_wrong_answers_are_found_in_threads(verifier: UnitTestVerifier) -> None:
    verdict = judge(
        verifier,
        "with ThreadPoolExecutor(4) as pool: assert list(pool.map(square, range(9))) == [i * i + (i == 8) for i in range(9)]",
    )
    assert verdict.outcome is Outcome.INCORRECT
    assert verdict.detail["failure"] == "wrong_answer"


BLOCKED = {
    "barrier": "with ThreadPoolExecutor(2) as pool: list(pool.map(lambda _: barrier.wait(), range(2)))",
    "queue": "box = Box()\n    thread = threading.Thread(target=box.get)\n    thread.start()\n    box.put(3)\n    thread.join()",
    "callback": "ready = threading.Event()\n    def work(x):\n        threading.Thread(target=lambda: square(2) and ready.set()).start()\n        ready.wait()\n        return x\n    assert apply(work, [1]) == [1]",
}


@pytest.mark.parametrize("name", BLOCKED)
def test_calls_that_wait_for_each_other_are_not_supported(verifier: UnitTestVerifier, name: str) -> None:
    verdict = judge(verifier, BLOCKED[name])
    assert (verdict.outcome, verdict.detail["failure"]) == (Outcome.INCORRECT, "unsupported"), verdict.detail
    assert "one call at a time" in str(verdict.detail["reason"])


def test_a_program_that_waits_for_itself_is_not_excused(verifier: UnitTestVerifier) -> None:
    verdict = judge(verifier, "thread = threading.Thread(target=Box().get)\n    thread.start()\n    thread.join()")
    assert verdict.outcome is Outcome.TIMEOUT, verdict.detail


POLLING = {
    "alone": "import time\ndef f():\n    while True: time.sleep(.01)",
    "bomb": "import threading, time\ndef f():\n    while True:\n        try: threading.Thread(target=time.sleep, args=(1000,)).start()\n        except RuntimeError: time.sleep(.01)",
}


@pytest.mark.parametrize("name", POLLING)
def test_looking_from_time_to_time_is_idle(verifier: UnitTestVerifier, name: str) -> None:
    verdict = verifier(POLLING[name], Problem("p", "", CallTests("f", (CallCase((), 1),))))
    assert verdict.outcome is Outcome.TIMEOUT
    assert verdict.detail["reason"] == "idle time limit"


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
