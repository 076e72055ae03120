import os
import pickle
import sys
import threading

import pytest

import verifiers
from verifiers import InvalidArgumentError, Outcome, Problem, UnknownNameError, VerifierContractError
from verifiers._workers import Worker
from verifiers.timeout import WithTimeout

PROBLEM = Problem("p", "", "95")
# Exponential backtracking on a run of `a` that does not end: re holds the interpreter, so no thread could interrupt it.
SLOW = ("format", {"pattern": r"(a|a)*b"})
HOSTILE = "a" * 60

MODULE = """
import os
import verifiers

def own_process(completion, problem):
    print("what a verifier prints is no reply")
    return verifiers.Verdict(float(os.getpid()), verifiers.Outcome.SCORED)

def nothing(completion, problem):
    return None

def fails(completion, problem):
    raise RuntimeError("no judge here")

def dies(completion, problem):
    os._exit(3)

class Picky:
    def __init__(self):
        raise ValueError("not today")
"""


@pytest.fixture(autouse=True)
def own_module(tmp_path, monkeypatch):
    (tmp_path / "timed_verifiers.py").write_text(MODULE)
    monkeypatch.syspath_prepend(tmp_path)
    yield
    sys.modules.pop("timed_verifiers", None)


def test_a_verifier_that_hangs_is_killed_and_the_next_verdict_comes():
    timed = WithTimeout(SLOW, 0.3)
    verdict = timed(HOSTILE, PROBLEM)
    assert verdict.outcome is Outcome.VERIFIER_ERROR
    assert verdict.detail == {"error": "no verdict within 0.3 s"}
    blamed = WithTimeout(SLOW, 0.3, on_timeout="timeout")(HOSTILE, PROBLEM)
    assert (blamed.outcome, blamed.score) == (Outcome.TIMEOUT, 0.0)
    patient = WithTimeout(SLOW, 60)
    assert patient("aab", PROBLEM).outcome is Outcome.CORRECT


def test_the_process_is_started_again_after_a_kill_and_that_does_not_count():
    timed = WithTimeout("timed_verifiers:own_process", 60)
    first = timed("", PROBLEM).score
    assert first == timed("", PROBLEM).score != os.getpid()
    (process,) = [timed._free.get()]
    process._worker.close()
    timed._free.put(process)
    assert timed("", PROBLEM).score not in (first, os.getpid())


def test_a_batch_is_judged_in_order_by_several_processes():
    timed = WithTimeout("numeric", 60, workers=2)
    verdicts = timed.verify_batch(["95", "7", "no", "95"], [PROBLEM] * 4)
    assert [verdict.outcome for verdict in verdicts] == ["correct", "incorrect", "no_answer", "correct"]


def test_what_goes_wrong_in_the_process_is_told():
    raised = WithTimeout("timed_verifiers:fails", 60)("", PROBLEM)
    assert raised.detail["error"] == "RuntimeError: no judge here"
    died = WithTimeout("timed_verifiers:dies", 60)("", PROBLEM)
    assert (died.outcome, died.detail["error"]) == (
        Outcome.VERIFIER_ERROR,
        "the verifier's process broke: the worker died",
    )
    with pytest.raises(VerifierContractError, match="returned None"):
        WithTimeout("timed_verifiers:nothing", 60)("", PROBLEM)
    lock = Problem("p", "", threading.Lock())
    assert "pickle" in WithTimeout("numeric", 60)("95", lock).detail["error"]


@pytest.mark.parametrize(
    ("part", "error", "message"),
    [
        ("numerik", UnknownNameError, "Did you mean 'numeric'"),
        (("numeric", {"whole": True, "rel_tol": -1}), InvalidArgumentError, "rel_tol must be"),
        ("timed_verifiers:Picky", InvalidArgumentError, "ValueError: not today"),
        (lambda completion, problem: True, InvalidArgumentError, "cannot be sent to another process"),
        (("numeric",), InvalidArgumentError, "a pair \\(verifier, arguments\\)"),
    ],
)
def test_a_verifier_that_cannot_be_made_is_refused_at_once(part, error, message):
    with pytest.raises(error, match=message):
        WithTimeout(part, 5)


def test_a_copy_has_processes_of_its_own():
    timed = WithTimeout("timed_verifiers:own_process", 60)
    assert pickle.loads(pickle.dumps(timed))("", PROBLEM).score != timed("", PROBLEM).score


def test_a_request_that_was_interrupted_does_not_answer_the_next(monkeypatch):
    worker = Worker("verifiers.timeout", memory_mib=None)
    worker.ask(["make", verifiers._verifier_process.recipe("numeric", {})], deadline_s=60)
    pid = worker.pid

    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("verifiers._workers._exchange", interrupted)
    with pytest.raises(KeyboardInterrupt):
        worker.ask(["make", ""], deadline_s=60)
    assert pid is not None
    assert worker.pid is None
