"""Every planted bug is found, by the check that is there for it; a verifier without one has a clean bill."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.audit import broken
from verifiers import AuditReport, Problem, audit_verifier
from verifiers.audit import ATTACKS, Check

INTEGERS = ("5", "-12", "58500", "0", "144")
MIXTURE = ("7", r"\frac{3}{4}", "(1,2)", "[2,5)", "1,-2", r"3\sqrt{5}", r"\text{(C)}", r"\text{even}")
SOFT = ("empty", "hedge", "every-candidate", "denied", "only-thought", "restated-prompt")
LOUD = tuple(name for name in ATTACKS if name not in SOFT)


def problems(golds: tuple[str, ...]) -> list[Problem]:
    return [Problem(f"p{index}", "What is it?", gold) for index, gold in enumerate(golds)]


def audited(
    verifier: Any, *, golds: tuple[str, ...] = INTEGERS, skip: tuple[str, ...] = LOUD, deadline_s: float = 5.0
) -> AuditReport:
    skip = (*skip, "marking")  # the planted verifiers read no marking, which a test of its own reports
    return audit_verifier(verifier, problems(golds), skip=skip, deadline_s=deadline_s)


def families(report: AuditReport, check: Check) -> set[str]:
    return {finding.family for finding in report.findings_of(check)}


def test_a_verifier_that_reads_no_marking() -> None:
    report = audit_verifier(broken.exact, problems(("7",)), skip=ATTACKS)
    (marking,) = (row for row in report.rows if row.family == "marking")
    assert (marking.cases, marking.wrong) == (6, 4)


def test_an_exact_verifier_has_a_clean_bill() -> None:
    report = audited(broken.exact, skip=())
    assert report.clean, str(report)
    assert "Nothing was found" in str(report)
    assert report.checks["false positive"] > 100
    assert report.checks["false negative"] > 60
    assert {row.accepted for row in report.options} == {0}
    ordinary = [row for row in (*report.rows, *report.options) if row.family not in LOUD]
    assert report.checks["threads"] == 4 * min(256, sum(row.cases for row in ordinary))


def test_accepting_everything() -> None:
    report = audited(broken.accepts_everything, golds=MIXTURE)
    false = report.total(report.rows[-1].label)
    assert (false.wrong, false.wrong) == (false.cases, report.checks["false positive"])
    assert not report.findings_of(Check.FALSE_NEGATIVE)
    assert {"empty", "hedge", "off-by-one", "other-brackets", "other-end"} <= families(report, Check.FALSE_POSITIVE)


def test_rejecting_everything() -> None:
    report = audited(broken.rejects_everything, golds=MIXTURE)
    assert not report.findings_of(Check.FALSE_POSITIVE)
    assert len(report.findings_of(Check.FALSE_NEGATIVE)) == report.checks["false negative"]
    assert "itself" in families(report, Check.FALSE_NEGATIVE)


@pytest.mark.parametrize(
    ("verifier", "check", "family"),
    [
        (broken.float_equality, Check.FALSE_POSITIVE, "inflated-off-by-one"),
        (broken.ignores_brackets, Check.FALSE_POSITIVE, "other-brackets"),
        (broken.ignores_order, Check.FALSE_POSITIVE, "other-order"),
        (broken.substring_match, Check.FALSE_POSITIVE, "hedge"),
        (broken.first_number_wins, Check.FALSE_POSITIVE, "hedge"),
        (broken.reads_thoughts, Check.FALSE_POSITIVE, "only-thought"),
        (broken.one_way, Check.SYMMETRY, "fraction-of-integers (swapped)"),
        (broken.reports_errors, Check.VERIFIER_ERROR, "scientific"),
        (broken.swallows_errors, Check.SILENT_ERROR, "unusable gold"),
    ],
)
def test_wrong_verdicts(verifier: Callable[..., object], check: Check, family: str) -> None:
    assert family in families(audited(verifier, golds=(*INTEGERS, *MIXTURE)), check)


def test_tolerance_is_not_taken_for_a_larger_fault() -> None:
    named = families(audited(broken.float_equality), Check.FALSE_POSITIVE)
    assert named <= {"inflated-off-by-one", "inflated-off-by-one (swapped)", "slightly-off"}


def test_an_exception_on_odd_input_and_a_process_that_dies() -> None:
    report = audited(broken.crashes_on_odd_input, skip=("huge", "long"))
    assert {finding.reason for finding in report.findings_of(Check.EXCEPTION)} == {"IndexError: pop from empty stack"}
    assert families(report, Check.EXCEPTION) == {"malformed"}
    report = audited(broken.kills_its_process, skip=("huge", "long"))
    assert families(report, Check.CRASH) == {"control-characters"}
    assert report.skipped == 4  # the rest of that attack, after two deaths
    assert not report.clean


def test_a_hang_is_reported_and_the_audit_goes_on() -> None:
    report = audited(broken.hangs_on_towers, skip=("long", "injection"), deadline_s=0.5)
    assert families(report, Check.DEADLINE) == {"huge"}
    assert all("^{9^{9" in finding.answer for finding in report.findings_of(Check.DEADLINE))
    assert report.checks["silent error"] == 3


@pytest.mark.parametrize("verifier", [broken.non_deterministic, broken.RemembersTheLast])
def test_the_same_question_twice(verifier: Callable[..., object]) -> None:
    assert audited(verifier).findings_of(Check.DETERMINISM)


@pytest.mark.parametrize(
    ("verifier", "check"),
    [
        (broken.OtherInBatches, Check.BATCH),
        (broken.NotThreadSafe, Check.THREADS),
        (broken.depends_on_hashes, Check.PROCESSES),
    ],
)
def test_a_verdict_that_depends_on_where_it_is_given(verifier: Callable[..., object], check: Check) -> None:
    report = audited(verifier, golds=("5", "12"))
    assert {finding.check for finding in report.findings} == {check}


def test_a_deadline_by_signals_raises_off_the_main_thread_or_is_silently_left_out() -> None:
    report = audited(broken.signal_deadline, golds=("5",))
    assert {finding.check for finding in report.findings} == {Check.THREADS, Check.MAIN_THREAD}
    assert "signal only works in main thread" in report.findings_of(Check.MAIN_THREAD)[0].reason
    report = audited(broken.silent_signal_deadline, golds=("5",), skip=("long", "injection"), deadline_s=1.0)
    assert {finding.check for finding in report.findings} == {Check.MAIN_THREAD}
    assert "no answer before the deadline" in report.findings_of(Check.MAIN_THREAD)[0].reason


def test_executing_the_completion() -> None:
    report = audited(broken.evaluates_input, skip=("huge", "long", "nested", "nested-gold"))
    executed = report.findings_of(Check.EXECUTION)
    assert executed
    assert families(report, Check.EXECUTION) == {"injection"}
    assert any("open(" in finding.answer for finding in executed)
