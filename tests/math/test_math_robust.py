"""Hostile answers, deadlines, threads, processes: nothing is executed, nothing hangs, nothing raises."""

import inspect
import multiprocessing
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from math_corpus import PAIRS

from verifiers import Outcome, Problem, verify
from verifiers._workers import Worker, WorkerBrokenError, WorkerTimeoutError
from verifiers.math import MathVerifier
from verifiers.math.reading.parse import parse
from verifiers.math.values.algebra import AlgebraTimeoutError, AlgebraWorker
from verifiers.math.values.limits import limits_differ
from verifiers.math.values.tiers import UndecidedError

HOSTILE = [
    "(" * 1000 + "5" + ")" * 1000,
    "{" * 5000,
    r"\frac{" * 500 + "1" + "}{2}" * 500,
    r"\sqrt{" * 300 + "5" + "}" * 300,
    "5" * 100_000,
    "1+" * 50_000 + "1",
    "1/" * 900 + "1",
    "2^" * 900 + "2",
    "-" * 3000 + "5",
    "x" + "'" * 3000,
    "5" + "!" * 3000,
    "5" + "%" * 3000,
    "|" * 2001,
    r"\left" * 800,
    "$" * 100_000,
    "**" * 50_000,
    r"\boxed{" * 10_000,
    "9^{9^{9^{9^9}}}",
    "9^{-9^{9^{9^9}}}",
    "((10!)!)!",
    "10^{10^{10}}!",
    r"\binom{10^{50}}{10^{49}}",
    r"\sum_{k=1}^{10^{9}} k",
    r"\prod_{k=1}^{500}\prod_{j=1}^{500}\prod_{i=1}^{500} k!",
    r"\sum_{k=1}^{500} \frac{1}{(4000-k)!}",
    r"e^{e^{e^{e^{9}}}}",
    r"\sin(10^{10^{10}})",
    r"\lfloor e^{e^{100}} \rfloor",
    r"\log_{10^{-10^{10}}} 5",
    r"\sqrt[10^{100}]{5}",
    "1e999999",
    "1e-999999",
    "0.(0)",
    "0^{-1}",
    r"\frac{0}{0}",
    r"\infty - \infty",
    "\x00",
    "5\x00",
    "\ud800",
    "5\u202e",
    "__import__('os').system('touch /tmp/executed')",
    "().__class__.__bases__[0].__subclasses__()",
    "exec('1')",
    "lambda: 5",
    "{5}.format",
    "%s%n",
    "\\" * 4000,
    "\\" * 100_000,
    "_" * 4000,
    "^" * 4000,
    "," * 4000,
    "&" * 4000,
    r"\begin{pmatrix}" * 200,
    r"\begin{pmatrix}" + "1 & " * 900 + r"1 \end{pmatrix}",
    ",".join(map(str, range(700))),
    r"\pm 1" + r"\pm 1" * 300,
    "a" * 3999,
    "a " * 1999,
    "½" * 3000,
    "٣",
    "五",
]


@pytest.mark.parametrize(
    "gold", ["5", r"\frac{\sqrt{3}}{2}", "x^2+1", "(1,2)", r"[0,\infty)", "1,2", r"\text{even}", "y=2x"]
)
def test_hostile_answers_are_wrong_and_cheap(gold):
    verifier = MathVerifier()
    for answer in HOSTILE:
        started = time.process_time()
        finding = verifier.compare(answer, gold)
        verdict = verifier(f"The answer is \\boxed{{{answer}}}", Problem("", f"What is {answer}?", gold))
        assert finding.outcome is Outcome.INCORRECT, (answer[:60], finding)
        assert verdict.score == 0.0, (answer[:60], verdict)
        assert time.process_time() - started < 5, answer[:60]


def test_a_hostile_gold_is_no_exception():
    verifier = MathVerifier()
    for gold in HOSTILE:
        finding = verifier.compare("5", gold)
        assert finding.outcome in (Outcome.INCORRECT, Outcome.VERIFIER_ERROR), (gold[:60], finding)


def test_nothing_is_executed(tmp_path):
    mark = tmp_path / "executed"
    for code in (f"__import__('pathlib').Path('{mark}').touch()", f"open('{mark}','w')", f"sum([open('{mark}','w')])"):
        for completion in (code, f"\\boxed{{{code}}}", f"The answer is {code}"):
            assert verify("math", completion, "5").score == 0
            assert verify("math", "5", code).outcome is not Outcome.CORRECT
    assert not mark.exists()


def test_a_defect_is_reported_and_never_scored(monkeypatch):
    verifier = MathVerifier()
    monkeypatch.setattr(verifier, "_compared", lambda *_: 1 / 0)
    verdict = verifier("\\boxed{5}", Problem("", "", "5"))
    assert verdict.outcome is Outcome.VERIFIER_ERROR
    assert "ZeroDivisionError" in verdict.detail["reason"]


def test_swapping_gold_and_answer_is_no_exception():
    verifier = MathVerifier()
    for pair in PAIRS[::7]:
        finding = verifier.compare(pair.gold, pair.answer)
        # As a gold, an answer may be too hard for computer algebra, as one with (n+300)! is.
        allowed = (Outcome.CORRECT, Outcome.INCORRECT, Outcome.VERIFIER_ERROR, Outcome.TIMEOUT)
        assert finding.outcome in allowed, pair


def test_the_same_question_has_the_same_answer_in_every_thread():
    verifier = MathVerifier()
    pairs = PAIRS[::9]
    expected = [verifier.compare(pair.answer, pair.gold) for pair in pairs]
    with ThreadPoolExecutor(8) as pool:
        for _ in range(2):
            assert list(pool.map(lambda pair: verifier.compare(pair.answer, pair.gold), pairs)) == expected


UNKNOWN_SUM = r"\sum_{k=1}^{\infty} \frac{1}{k^4}"
SLOW = r"\int_0^1 \sin(\cos(x^3+\ln(x+2)))\,dx"  # no antiderivative is known
VALUE_OF_SLOW = "0.3507883300"  # too near to be told apart by quadrature


def slow_algebra():
    """Two expressions, the first of which takes computer algebra longer than a short deadline."""
    return parse(SLOW), parse("5")


def test_what_only_computer_algebra_decides():
    verifier = MathVerifier(deadline_s=60)
    assert verifier.compare(UNKNOWN_SUM, r"\frac{\pi^4}{90}").same
    comparison = verifier.compare(r"\frac{10^{6}(10^6+1)}{2}", r"\sum_{k=1}^{10^6} k")
    assert (comparison.outcome, comparison.tier.name) == (Outcome.CORRECT, "SYMPY")


def test_a_deadline_holds_off_the_main_thread_and_the_next_question_is_answered():
    algebra = AlgebraWorker(deadline_s=0.5, memory_mib=1024)
    caught = []

    def ask():
        try:
            algebra.for_one_verdict()(*slow_algebra())
        except AlgebraTimeoutError as error:
            caught.append(error)

    algebra_ready = AlgebraWorker(deadline_s=60, memory_mib=1024)
    assert algebra_ready.for_one_verdict()(parse("x+x"), parse("2x"))  # the process is warm
    thread = threading.Thread(target=ask)
    thread.start()
    thread.join(120)  # the worker may have to start first; without a deadline it would answer, and nothing be caught
    assert len(caught) == 1
    assert algebra_ready.for_one_verdict()(parse("x+x"), parse("2x"))


def test_a_timeout_is_the_answers_fault_only_if_the_gold_alone_is_quick():
    slow, quick = slow_algebra()
    algebra = AlgebraWorker(deadline_s=0.5, memory_mib=1024)
    AlgebraWorker(deadline_s=60, memory_mib=1024).for_one_verdict()(quick, quick)
    for gold, answer in ((quick, slow), (slow, quick)):
        with pytest.raises(AlgebraTimeoutError) as caught:
            algebra.for_one_verdict()(gold, answer)
        assert caught.value.of_gold == (gold is slow)


def test_an_answers_own_items_that_take_too_long_are_not_the_golds_fault():
    comparison = MathVerifier(deadline_s=0.5).compare(r"\{-2,1-\sqrt{10000!+5},1+\sqrt{5}\}", r"\frac{1}{2004!}")
    assert comparison.outcome in (Outcome.TIMEOUT, Outcome.INCORRECT)


def test_the_outcome_of_a_deadline():
    verifier = MathVerifier(deadline_s=0.5)
    late = verifier.compare(SLOW, VALUE_OF_SLOW)
    assert (late.outcome, late.tier.name) == (Outcome.TIMEOUT, "SYMPY")
    assert verifier.compare(VALUE_OF_SLOW, SLOW).outcome is Outcome.VERIFIER_ERROR  # the gold is to blame
    assert verifier.compare("5", "5").outcome is Outcome.CORRECT


def test_one_deadline_holds_for_all_questions_of_one_verdict(monkeypatch):
    algebra = AlgebraWorker(deadline_s=1.0, memory_mib=1024)
    deadlines = []

    def ask(self, request, *, deadline_s):
        gold, answer, seconds = request
        assert gold != answer
        assert deadline_s >= 5 * seconds  # wall time, generous: processor time decides
        deadlines.append(seconds)
        return [True, 0.4]

    monkeypatch.setattr(Worker, "ask", ask)
    for equal in (algebra.for_one_verdict(), algebra.for_one_verdict()):
        for _ in range(3):
            assert equal(parse("x"), parse("y"))
        with pytest.raises(AlgebraTimeoutError, match="used up"):
            equal(parse("x"), parse("y"))
    assert deadlines == pytest.approx([1.0, 0.6, 0.2] * 2)


@pytest.mark.parametrize("integral", [SLOW, r"\int_0^1 x^x\,dx", r"\int_{-\infty}^\infty \frac{e^{-x^2}}{1+x^4}\,dx"])
def test_integrals_that_plainly_differ_never_reach_computer_algebra(integral, monkeypatch):
    monkeypatch.setattr(Worker, "ask", lambda *_, **__: pytest.fail("computer algebra was asked"))
    for other in ("5", r"\frac{\pi}{7}", integral + "+10^{-3}"):
        comparison = MathVerifier().compare(other, integral)
        assert (comparison.outcome, comparison.tier.name) == (Outcome.INCORRECT, "NUMERIC"), other


@pytest.mark.parametrize(
    ("integral", "value"),
    [
        (r"\int_0^\infty\frac{\sin x}{x}\,dx", r"\frac{\pi}{2}"),  # neither rule converges
        (r"\int_0^1\frac{1}{\sqrt{x}}\,dx", "2"),  # one rule converges slowly at the end
        (r"\int_{-1}^1|x|\,dx", "1"),  # no rule converges fast at a corner
        (r"\int_{-1}^1x^3\,dx", "0"),
        (r"\int_0^1-\ln x\,dx", "1"),
        (r"\int_0^{2}\lfloor x\rfloor\,dx", "1"),
    ],
)
def test_quadrature_tells_no_integral_from_its_value(integral, value):
    assert not limits_differ(parse(integral), parse(value))


@pytest.mark.parametrize(("gold", "answer"), [("5", "4+1"), (r"\frac{\sqrt3}{2}", r"\sin 60^\circ"), ("x+1", "1+x")])
def test_a_caller_deep_in_its_stack_gets_the_same_verdict(gold, answer):
    judge, problem = MathVerifier(), Problem("", "", gold)

    def at_depth(frames):
        return judge(rf"\boxed{{{answer}}}", problem) if frames == 0 else at_depth(frames - 1)

    used = len(inspect.stack())
    for left in (200, 60, 40, 25, 15):
        assert at_depth(sys.getrecursionlimit() - used - left).outcome is Outcome.CORRECT, left


@pytest.mark.parametrize(
    ("answer", "gold"),
    [
        ("99999999999!", r"\lim_{x\to0}\frac{\sin x}{x}"),  # refused before it is computed
        (r"x\sim|x|", r"[-2,7]"),  # a relation that has no converse is no inequality
        (r"5\sim|x|", r"[-2,7]"),
    ],
)
def test_what_is_refused_without_an_exception(answer, gold):
    assert MathVerifier().compare(answer, gold).outcome is Outcome.INCORRECT


def test_algebra_says_when_it_cannot_tell():
    with pytest.raises(UndecidedError):
        AlgebraWorker(deadline_s=60, memory_mib=1024).for_one_verdict()(parse("(1,2)"), parse("5"))


LONG_SERIES = [
    r"\sum_{k=1}^{10^{12}} k!",
    r"\sum_{k=1}^{10^{12}} \sin k",
    r"\sum_{k=1}^{10^{5}} \sqrt{k}",
    r"\sum_{k=1}^{10^{12}} \lfloor\sqrt{k}\rfloor",
    r"\sum_{k=1}^{10^{9}} k^{k}",
    r"\prod_{k=1}^{10^{12}} k",
    r"\prod_{k=1}^{3000}\sin(k)",
]


@pytest.mark.parametrize("series", LONG_SERIES)
@pytest.mark.parametrize("gold", ["5", r"\pi", "x^2+1"])
def test_a_series_too_long_for_every_method_never_reaches_computer_algebra(gold, series, monkeypatch):
    monkeypatch.setattr(Worker, "ask", lambda *_, **__: pytest.fail("computer algebra was asked"))
    assert MathVerifier().compare(series, gold).outcome is Outcome.INCORRECT


def test_a_long_sum_of_a_polynomial_is_still_decided():
    algebra = MathVerifier(deadline_s=60)
    assert algebra.compare(r"\sum_{k=1}^{10^{6}} k^3", "250000500000250000000000").same
    assert algebra.compare(r"\sum_{k=1}^{10^{6}} k^3", "250000500000250000000001").outcome is Outcome.INCORRECT


@pytest.mark.parametrize("gold", [r"\oint_C F", r"\nabla f", r"\iint_D x\,dA"])
def test_a_gold_that_cannot_be_read_is_compared_as_text_only(gold):
    verifier = MathVerifier()
    assert verifier.compare(f" ${gold}$ ", gold).outcome is Outcome.CORRECT
    assert verifier.compare("5", gold).outcome is Outcome.VERIFIER_ERROR
    assert verifier.compare("", gold).outcome is Outcome.VERIFIER_ERROR
    assert verifier.compare("", "").outcome is Outcome.VERIFIER_ERROR


# The worker process.


@pytest.fixture
def echo(tmp_path, monkeypatch):
    (tmp_path / "echo_worker.py").write_text(
        textwrap.dedent(
            """
            import json, os, time
            from verifiers._workers import limit_processor_time
            def serve(requests, replies):
                replies.write(b"ready\\n"); replies.flush()
                for line in requests:
                    request = json.loads(line)
                    if request == "sleep": time.sleep(60)
                    limit_processor_time(0.15)
                    if request == "nap": time.sleep(0.2)
                    while request == "work": pass
                    limit_processor_time(0)
                    if request == "die": os._exit(3)
                    if request == "noise": replies.write(b"{\\n")
                    if request == "grow": request = len(bytearray(1 << 33))
                    replies.write(json.dumps([request, os.getpid()]).encode() + b"\\n"); replies.flush()
            """
        )
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    worker = Worker("echo_worker", memory_mib=512)
    yield worker
    worker.close()


def test_a_worker_stays_warm_and_may_spend_processor_time_however_busy_the_machine_is(echo):
    first, second = (echo.ask("a", deadline_s=120) for _ in range(2))
    assert first == second == ["a", echo.ask("nap", deadline_s=120)[1]]
    assert first[1] != os.getpid()
    with pytest.raises(WorkerTimeoutError, match="processor time"):
        echo.ask("work", deadline_s=120)
    assert echo.ask("nap", deadline_s=120)[0] == "nap"


@pytest.mark.parametrize(
    ("request_", "error"),
    [("sleep", WorkerTimeoutError), *((each, WorkerBrokenError) for each in ("die", "noise", "grow"))],
)
def test_a_worker_that_failed_is_replaced(echo, request_, error):
    before = echo.ask("a", deadline_s=120)
    with pytest.raises(error):
        echo.ask(request_, deadline_s=0.3 if request_ == "sleep" else 120)
    after = echo.ask("a", deadline_s=120)
    assert after[0] == "a"
    assert after[1] != before[1]


def test_a_worker_killed_from_outside_is_replaced(echo):
    pid = echo.ask("a", deadline_s=120)[1]
    os.kill(pid, signal.SIGKILL)
    os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)  # until the last of its threads has ended
    assert echo.ask("b", deadline_s=120)[0] == "b"


def test_a_worker_that_cannot_start_says_so():
    with pytest.raises(WorkerBrokenError, match="no_such_module"):
        Worker("no_such_module", memory_mib=512).ask("a", deadline_s=5)


def test_the_time_in_the_queue_counts_toward_no_deadline(echo):
    echo.ask("warm", deadline_s=120)
    started = time.monotonic()
    with ThreadPoolExecutor(16) as pool:
        replies = list(pool.map(lambda _: echo.ask("nap", deadline_s=3)[0], range(16)))
    assert replies == ["nap"] * 16
    assert time.monotonic() - started > 3  # longer than the deadline of each


def _ask_in_child(worker, queue):
    queue.put(worker.ask("child", deadline_s=120))


@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_a_forked_child_starts_its_own_worker(echo):
    ours = echo.ask("parent", deadline_s=120)
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    child = context.Process(target=_ask_in_child, args=(echo, queue))
    child.start()
    theirs = queue.get(timeout=120)
    child.join(120)
    assert theirs[0] == "child"
    assert theirs[1] != ours[1]
    assert echo.ask("parent", deadline_s=120) == ours


def _runs(pid):
    stat = Path(f"/proc/{pid}/stat")
    return stat.exists() and stat.read_text().split()[2] != "Z"


def test_a_worker_dies_with_its_parent():
    program = textwrap.dedent(
        """
        import os, signal
        from verifiers.math.reading.parse import parse
        from verifiers.math.values.algebra import AlgebraWorker, _shared_worker
        AlgebraWorker(deadline_s=60, memory_mib=1024).for_one_verdict()(parse("x"), parse("x+0"))
        print(_shared_worker(1024)._process.pid, flush=True)
        os.kill(os.getpid(), signal.SIGKILL)
        """
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=300, check=False)
    pid = int(done.stdout)
    end = time.monotonic() + 120  # it takes milliseconds on an idle machine, and longer on a busy one
    while _runs(pid):
        assert time.monotonic() < end
        time.sleep(0.01)


def test_importing_the_verifier_loads_no_computer_algebra():
    program = (
        "import sys, verifiers.math as m; m.MathVerifier().compare('1/2', '0.5'); sys.exit('sympy' in sys.modules)"
    )
    subprocess.run([sys.executable, "-c", program], check=True, timeout=300)
