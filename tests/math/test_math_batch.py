"""Batches in several processes: the verdicts of one after another, in order, whatever happens to the processes."""

import multiprocessing
import os
import signal
import subprocess
import sys
import textwrap
from concurrent.futures import ThreadPoolExecutor

import pytest

from verifiers import InvalidArgumentError, Outcome, Problem
from verifiers.math import MathVerifier, batch

PAIRS = [
    *[(rf"\boxed{{{n}+1}}", Problem(f"a{n}", "", str(n + 1 + n % 2))) for n in range(60)],
    *[(rf"\boxed{{\sin({n}x)}}", Problem(f"b{n}", "", rf"-\sin(-{n}x)")) for n in range(1, 11)],
    ("", Problem("none", "", "5")),
    (r"\boxed{5}", Problem("broken gold", "", r"\frac{1}{")),
    (r"\boxed{5}", Problem("no gold", "", None)),
    (r"\boxed{B}", Problem("choice", "", "12", {"choices": ["10", "12"]})),
    (r"\boxed{2.55}", Problem("near", "", "2.5", {"error": "1e-1"})),
]


@pytest.fixture(autouse=True)
def at_once(monkeypatch):
    """Processes start without the calling process having worked first, however little there is to do."""
    for name in ("START_COST_S", "GLANCE_S", "WORTHWHILE_S"):
        monkeypatch.setattr(batch, name, 0.0)


@pytest.fixture
def verifier():
    judge = MathVerifier(workers=2, abs_tol="problem")
    yield judge
    judge._processes.close()


def batch_of(verifier, pairs):
    return verifier.verify_batch([completion for completion, _ in pairs], [problem for _, problem in pairs])


def said(verdicts):
    """Verdicts without their scores: NaN is not equal to itself."""
    return [(verdict.outcome, verdict.answer, verdict.detail) for verdict in verdicts]


def one_by_one(pairs):
    judge = MathVerifier(workers=1, abs_tol="problem")
    return said(judge(*pair) for pair in pairs)


def is_running(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_verdicts_and_their_order_are_those_of_one_after_another(verifier):
    results = said(batch_of(verifier, PAIRS))
    assert results == one_by_one(PAIRS)
    assert {outcome for outcome, *_ in results} == {
        Outcome.CORRECT,
        Outcome.INCORRECT,
        Outcome.NO_ANSWER,
        Outcome.VERIFIER_ERROR,
    }
    assert len(verifier._processes.pids) == 2
    assert os.getpid() not in verifier._processes.pids


def test_small_batches_and_one_worker_start_nothing(verifier):
    small = PAIRS[-batch.MIN_BATCH + 1 :]
    assert said(batch_of(verifier, small)) == one_by_one(small)
    assert verifier._processes.pids == ()
    assert MathVerifier(workers=1)._processes is None


def test_a_batch_that_is_soon_done_starts_nothing(verifier, monkeypatch):
    monkeypatch.setattr(batch, "START_COST_S", 3600.0)
    assert said(batch_of(verifier, PAIRS)) == one_by_one(PAIRS)
    assert verifier._processes.pids == ()


def test_quick_verdicts_are_not_worth_an_exchange(verifier, monkeypatch):
    batch_of(verifier, PAIRS)
    monkeypatch.setattr(batch, "WORTHWHILE_S", 3600.0)
    monkeypatch.setattr(batch, "_ask", None)  # nothing is asked of the processes that run
    assert said(batch_of(verifier, PAIRS)) == one_by_one(PAIRS)


def test_a_process_that_is_killed_is_replaced(verifier):
    batch_of(verifier, PAIRS)
    for pid in verifier._processes.pids:
        os.kill(pid, signal.SIGKILL)
    assert said(batch_of(verifier, PAIRS)) == one_by_one(PAIRS)


class Deadly(MathVerifier):
    """Ends its process at one completion, wherever it is not the process of the tests."""

    def __init__(self, **options):
        super().__init__(**options)
        self.home = os.getpid()

    def __call__(self, completion, problem):
        if completion == "die" and os.getpid() != self.home:
            os._exit(1)
        return super().__call__(completion, problem)


def test_what_kills_processes_is_an_error_of_the_verifier_and_spares_the_rest():
    verifier = Deadly(workers=2, abs_tol="problem")
    pairs = [PAIRS[0], ("die", PAIRS[0][1]), *PAIRS]  # the first is judged by the calling process
    verdicts = batch_of(verifier, pairs)
    verifier._processes.close()
    errored = [index for index, verdict in enumerate(verdicts) if "the worker died" in str(verdict.detail.get("error"))]
    assert errored == list(range(1, 1 + batch.MIN_CHUNK))
    assert {verdicts[index].outcome for index in errored} == {Outcome.VERIFIER_ERROR}
    assert said(verdicts)[1 + batch.MIN_CHUNK :] == one_by_one(pairs[1 + batch.MIN_CHUNK :])


def test_an_exception_is_raised_where_the_batch_was_given(verifier):
    with pytest.raises(InvalidArgumentError, match="a completion must be a string, got None"):
        batch_of(verifier, [*PAIRS, (None, PAIRS[0][1])])
    assert said(batch_of(verifier, PAIRS)) == one_by_one(PAIRS)


def test_what_cannot_be_told_to_a_process_is_judged_by_the_caller(verifier):
    odd = [(completion, Problem(problem.id, "", problem.reference, {"f": lambda: 0})) for completion, problem in PAIRS]
    assert said(batch_of(verifier, odd))[:60] == one_by_one(PAIRS)[:60]

    class Local(MathVerifier):
        pass

    local = Local(workers=2, abs_tol="problem")
    assert said(batch_of(local, PAIRS)) == one_by_one(PAIRS)
    assert local._processes.pids == ()


def test_no_process_can_be_started(verifier, monkeypatch):
    monkeypatch.setattr(sys, "executable", "/no/such/python")
    assert said(batch_of(verifier, PAIRS)) == one_by_one(PAIRS)


def test_deadlines_hold_in_processes():
    """A comparison that needs computer algebra has none of its time left, whichever process asks."""
    verifier = MathVerifier(workers=2, deadline_s=1e-3)
    hard = (r"\boxed{\int_0^x t^9e^{t}\sin(t)\cos(3t)dt}", Problem("hard", "", r"\int_0^x t^8e^{t}\sin(t)\cos(3t)dt+x"))
    verdicts = batch_of(verifier, [*PAIRS, hard])
    verifier._processes.close()
    assert verdicts[-1].outcome is MathVerifier(deadline_s=1e-3)(*hard).outcome is not Outcome.CORRECT


def test_threads_share_the_processes(verifier):
    with ThreadPoolExecutor(4) as threads:
        for results in threads.map(lambda _: said(batch_of(verifier, PAIRS)), range(4)):
            assert results == one_by_one(PAIRS)
    assert len(verifier._processes.pids) == 2


def test_verifiers_share_their_processes_and_the_last_one_ends_them():
    first, second = MathVerifier(workers=3), MathVerifier(workers=3, units="require")  # no other test has three
    assert first._processes is second._processes
    batch_of(first, PAIRS)
    pids = first._processes.pids
    del first
    assert all(map(is_running, pids))
    del second
    assert not any(map(is_running, pids))


def judged_in_daemon(connection):
    verifier = MathVerifier(workers=2, abs_tol="problem")
    connection.send((said(batch_of(verifier, PAIRS)), verifier._processes.pids))


@pytest.mark.parametrize("method", ["spawn", "fork"])
def test_in_a_daemonic_process_one_after_another(method, verifier):
    batch_of(verifier, PAIRS)
    context = multiprocessing.get_context(method)
    ours, theirs = context.Pipe()
    process = context.Process(target=judged_in_daemon, args=(theirs,), daemon=True)
    process.start()
    assert ours.recv() == (one_by_one(PAIRS), ())
    process.join()
    assert len(verifier._processes.pids) == 2  # the fork has left the parent's processes alone


def test_a_script_without_a_guard_leaves_no_process_behind(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        textwrap.dedent(
            """
            from verifiers import Problem
            from verifiers.math import MathVerifier, batch

            batch.START_COST_S = batch.WORTHWHILE_S = 0.0
            verifier = MathVerifier(workers=2)
            verdicts = verifier.verify_batch([str(n) for n in range(200)], [Problem("", "", str(n)) for n in range(200)])
            print(sum(verdict.score for verdict in verdicts), *verifier._processes.pids)
            """
        )
    )
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, check=True, timeout=300)
    correct, *pids = done.stdout.split()
    assert (correct, len(pids), done.stderr) == ("200.0", 2, "")
    for pid in map(int, pids):
        wait_for_end(pid)


def wait_for_end(pid):
    """A process that reads the end of its requests ends by itself; one that did not would keep this waiting for good."""
    while is_running(pid):
        with open(f"/proc/{pid}/stat") as stat:
            if stat.read().rpartition(")")[2].split()[0] == "Z":
                return  # it has ended, and waits for its new parent


def test_by_default_there_is_a_process_for_each_cpu(monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {0, 2, 5}, raising=False)
    assert MathVerifier()._processes is batch.shared_processes(3)
