"""Tests whose threads call the program, and programs whose threads call the tests."""

from __future__ import annotations

import pytest

from tests.sandbox import Case, cases, judge, load
from verifiers import Outcome
from verifiers.unit_tests import FunctionTests, UnitTestVerifier

DATA = load("unit_tests/threads")
pytestmark = pytest.mark.sandbox(timeout_s=1)


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


@pytest.mark.parametrize("case", cases(DATA["answers"]))
def test_threads_get_their_own_answers(verifier: UnitTestVerifier, case: Case) -> None:
    case.check(verifier, PROGRAM)


WRONG = """
from concurrent.futures import ThreadPoolExecutor
from solution import square
def test_it():
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(square, range(9))) == [i * i + (i == 8) for i in range(9)]
"""
WAITING = """
import threading
from solution import Box
def test_it():
    thread = threading.Thread(target=Box().get)
    thread.start()
    thread.join()
"""


def test_wrong_answers_are_found_in_threads(verifier: UnitTestVerifier) -> None:
    verdict = judge(verifier, PROGRAM, FunctionTests(WRONG))
    assert verdict.outcome is Outcome.INCORRECT
    assert verdict.detail["failure"] == "wrong_answer"


@pytest.mark.parametrize("case", cases(DATA["blocked"]))
def test_calls_that_wait_for_each_other_are_not_supported(verifier: UnitTestVerifier, case: Case) -> None:
    case.check(verifier, PROGRAM)


def test_a_program_that_waits_for_itself_is_not_excused(verifier: UnitTestVerifier) -> None:
    verdict = judge(verifier, PROGRAM, FunctionTests(WAITING))
    assert verdict.outcome is Outcome.TIMEOUT, verdict.detail


@pytest.mark.parametrize("case", cases(DATA["polling"]))
def test_looking_from_time_to_time_is_idle(verifier: UnitTestVerifier, case: Case) -> None:
    case.check(verifier)
