"""The checks of an audit, and the passes that perform them."""

from __future__ import annotations

import enum
import os
import random
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from verifiers.audit.cases import Case, Label
from verifiers.audit.runner import Answer, Mode, Runner
from verifiers.audit.worker import Asked
from verifiers.types import Problem


class Check(enum.StrEnum):
    """The kinds of error that an audit looks for."""

    FALSE_POSITIVE = "false positive"
    """A wrong answer was accepted."""
    FALSE_NEGATIVE = "false negative"
    """A right answer was rejected."""
    EXCEPTION = "exception"
    """The verifier raised an exception."""
    VERIFIER_ERROR = "verifier error"
    """The verdict is VERIFIER_ERROR, although gold and answer are valid."""
    DEADLINE = "deadline"
    """There was no verdict before the deadline; the process was killed."""
    CRASH = "crash"
    """The process died."""
    EXECUTION = "execution"
    """Text of the completion was executed."""
    DETERMINISM = "determinism"
    """The same question, asked again in another order, got another verdict."""
    BATCH = "batch"
    """A completion got another verdict in a batch than alone."""
    SYMMETRY = "symmetry"
    """The verdict changed when gold and answer were exchanged, although it should not have."""
    THREADS = "threads"
    """Several threads that asked at once got other verdicts than one thread."""
    MAIN_THREAD = "main thread"
    """The verifier raised an exception, hung or judged differently outside the main thread."""
    PROCESSES = "processes"
    """Another process, in which strings have other hashes, gave another verdict."""
    SILENT_ERROR = "silent error"
    """A gold that can't be compared with anything was scored; it should have caused VERIFIER_ERROR or an exception."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One error that was found."""

    check: Check
    family: str
    gold: str
    answer: str
    reason: str
    problem_id: str
    seconds: float = 0.0


@dataclass(slots=True)
class Tally:
    """The number of cases that each check examined, and its findings."""

    looked_at: Counter[Check] = field(default_factory=Counter)
    findings: list[Finding] = field(default_factory=list)

    def look(self, checks: Sequence[Check], count: int = 1) -> None:
        """Count cases that were checked."""
        for check in checks:
            self.looked_at[check] += count

    def find(self, check: Check, case: Case, answer: Answer, reason: str | None = None) -> None:
        """Record a finding."""
        why = answer.reason if reason is None else reason
        self.findings.append(finding_of(check, case, answer, why))


def finding_of(check: Check, case: Case, answer: Answer, reason: str) -> Finding:
    """Make a finding; `CANARY` replaces the path that an injection names in this run."""
    text, why = case.answer, reason
    if case.canary:
        text, why = text.replace(case.canary, "CANARY"), why.replace(case.canary, "CANARY")
    return Finding(check, case.family, case.gold, text, why, case.problem.id, answer.seconds)


Progress = Callable[[int, int], None]
_MAX_HANGS_OF_FAMILY = 2
_MAX_HANGS = 10
_CHUNK = 64
_THREAD_SAMPLE = 256
_MAX_LOST_CHUNKS = 3


def ask_all(runner: Runner, cases: Sequence[Case], deadline_s: float, progress: Progress) -> list[Answer | None]:
    """Ask about each case by itself; the answer is None if the case is skipped because too many cases hung or crashed."""
    hangs: Counter[str] = Counter()
    answers: list[Answer | None] = []
    for done, case in enumerate(cases, start=1):
        if hangs[case.family] >= _MAX_HANGS_OF_FAMILY or hangs.total() >= _MAX_HANGS:
            answers.append(None)
            continue
        (answer,) = runner.ask("single", [_asked(case)], deadline_s=deadline_s)
        hangs[case.family] += answer.hung or answer.died
        answers.append(answer)
        progress(done, len(cases))
        if case.canary and os.path.exists(case.canary):
            os.remove(case.canary)
            answers[-1] = Answer(error=EXECUTED, seconds=answer.seconds)
    return answers


EXECUTED = "the completion was executed: it created the file that it names"


def check_answers(tally: Tally, cases: Sequence[Case], answers: Sequence[Answer | None]) -> None:
    """Check each verdict against its label, and look for missing verdicts."""
    for case, answer in zip(cases, answers, strict=True):
        if answer is None:
            continue
        tally.look([Check.EXCEPTION, Check.VERIFIER_ERROR, Check.DEADLINE, Check.CRASH])
        tally.look([Check.EXECUTION], int(bool(case.canary)))
        trouble = _trouble(answer)
        if trouble in (Check.EXCEPTION, Check.VERIFIER_ERROR) and case.mirror is not None:
            continue  # a verifier may refuse, with an error, a gold in a form that its data set never has
        if trouble is not None:
            tally.find(trouble, case, answer)
        elif case.label is Label.WRONG:
            tally.look([Check.FALSE_POSITIVE])
            if answer.accepted:
                tally.find(Check.FALSE_POSITIVE, case, answer)
        elif case.label is Label.CORRECT:
            tally.look([Check.FALSE_NEGATIVE])
            if not answer.accepted:
                tally.find(Check.FALSE_NEGATIVE, case, answer)


def _trouble(answer: Answer) -> Check | None:
    if answer.hung:
        return Check.DEADLINE
    if answer.died:
        return Check.CRASH
    if answer.error:
        return Check.EXECUTION if answer.error == EXECUTED else Check.EXCEPTION
    return Check.VERIFIER_ERROR if answer.outcome == "verifier_error" else None


def check_symmetry(tally: Tally, cases: Sequence[Case], answers: Sequence[Answer | None]) -> None:
    """Compare each verdict with the verdict when gold and answer are exchanged."""
    for case, answer in zip(cases, answers, strict=True):
        other = None if case.mirror is None else answers[case.mirror]
        if answer is None or other is None or not (answer.judged and other.judged):
            continue
        tally.look([Check.SYMMETRY])
        if answer.accepted != other.accepted:
            tally.find(Check.SYMMETRY, case, answer, f"{answer.outcome}; exchanged: {other.outcome}")


AnsweredCase = tuple[Case, Answer]


def check_repeats(
    tally: Tally, runner: Runner, pairs: Sequence[AnsweredCase], deadline_s: float, rng: random.Random
) -> None:
    """Repeat all questions in another order, one at a time and in batches."""
    shuffled = list(pairs)
    rng.shuffle(shuffled)
    _repeat(tally, runner, shuffled, deadline_s, "single", Check.DETERMINISM)
    _repeat(tally, runner, shuffled, deadline_s, "batch", Check.BATCH)


def check_threads(
    tally: Tally, runner: Runner, pairs: Sequence[AnsweredCase], deadline_s: float, rng: random.Random
) -> None:
    """Repeat a sample of questions in several threads; then ask this sample and all hostile questions off the main thread."""
    ordinary = [pair for pair in pairs if not pair[0].hostile]
    sample = rng.sample(ordinary, min(_THREAD_SAMPLE, len(ordinary)))
    _repeat(tally, runner, sample, deadline_s, "threads", Check.THREADS)
    hostile = [pair for pair in pairs if pair[0].hostile]
    _repeat(tally, runner, sample, deadline_s, "thread", Check.MAIN_THREAD)
    _repeat(tally, runner, hostile, deadline_s, "thread", Check.MAIN_THREAD, chunk=1)


def check_processes(
    tally: Tally, other: Runner, pairs: Sequence[AnsweredCase], deadline_s: float, rng: random.Random
) -> None:
    """Repeat a sample of questions in another process."""
    ordinary = [pair for pair in pairs if not pair[0].hostile]
    sample = rng.sample(ordinary, min(_THREAD_SAMPLE, len(ordinary)))
    _repeat(tally, other, sample, deadline_s, "single", Check.PROCESSES)


def _repeat(
    tally: Tally,
    runner: Runner,
    pairs: Sequence[AnsweredCase],
    deadline_s: float,
    mode: Mode,
    check: Check,
    chunk: int = _CHUNK,
) -> None:
    """Repeat questions in chunks, and compare the answers with the first ones; give up after several chunks without answers."""
    lost = 0
    for batch in _chunks(pairs, chunk):
        if lost == _MAX_LOST_CHUNKS:
            return
        patience = deadline_s + 8 * sum(answer.seconds for _, answer in batch)
        answers = runner.ask(mode, [_asked(case) for case, _ in batch], deadline_s=patience)
        tally.look([check], len(answers))
        if answers and not any(answer.hung or answer.died for answer in answers):
            _compare(tally, batch, answers, check)
        elif answers:
            lost += 1
            tally.find(check, batch[0][0], answers[0], f"{answers[0].reason}, with {len(batch) - 1} other cases")


def _compare(tally: Tally, batch: Sequence[AnsweredCase], answers: Sequence[Answer], check: Check) -> None:
    for index, answer in enumerate(answers):
        case, first = batch[index % len(batch)]
        if not answer.same(first):
            tally.find(check, case, answer, f"{answer.reason}; at first: {first.reason}")


def _chunks(pairs: Sequence[AnsweredCase], size: int) -> Iterator[Sequence[AnsweredCase]]:
    for start in range(0, len(pairs), size):
        yield pairs[start : start + size]


def _asked(case: Case) -> Asked:
    return case.completion, case.problem


@dataclass(frozen=True, slots=True)
class Unusable:
    """A reference that no verifier can compare with anything."""


def check_unusable_golds(tally: Tally, runner: Runner, case: Case, deadline_s: float) -> None:
    """Ask about golds that can't be compared with anything: a score for such a gold means that an error was suppressed."""
    for reference in (None, float("nan"), Unusable()):
        problem = Problem(case.problem.id, case.problem.prompt, reference)
        (answer,) = runner.ask("single", [(case.completion, problem)], deadline_s=deadline_s)
        tally.look([Check.SILENT_ERROR])
        if answer.judged and answer.outcome != "verifier_error":
            odd = Case("unusable gold", Label.ANY, case.answer, case.completion, problem)
            tally.find(Check.SILENT_ERROR, odd, answer)
