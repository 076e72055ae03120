"""Drawn cases: their labels beside a second evaluation, their seeds, and what audits on them find."""

from __future__ import annotations

import importlib.util
from collections import Counter
from pathlib import Path
from types import ModuleType

import pytest

from tests.audit import broken
from verifiers import InvalidArgumentError, Outcome, audit_verifier
from verifiers.audit import Check, Label, draw_cases
from verifiers.audit.subjects import SUBJECTS
from verifiers.math import MathVerifier

SLOW = ("huge", "long")
PLACE = Path(__file__).parents[2] / "benchmarks" / "court" / "second_reading.py"


@pytest.fixture(scope="module")
def second_reading() -> ModuleType:
    spec = importlib.util.spec_from_file_location("second_reading", PLACE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_a_second_evaluation_confirms_every_label(second_reading: ModuleType) -> None:
    cases = draw_cases(1500, 1)
    assert [case for case in cases if not second_reading.confirmed(case)] == []
    by_value = [case for case in cases if not case.family.startswith(second_reading.BY_FORM)]
    for label in (Label.CORRECT, Label.WRONG):
        assert {case.kind for case in by_value if case.label is label} == set(SUBJECTS)
    assert 0.4 < Counter(case.label for case in cases)[Label.CORRECT] / len(cases) < 0.6


def test_a_case_depends_on_the_seed_and_its_index_alone() -> None:
    assert draw_cases(60, 3)[:20] == draw_cases(20, 3)
    assert draw_cases(20, 3) != draw_cases(20, 4)
    tagged = draw_cases(20, 3, "<answer>ANSWER</answer>")
    assert [case.problem for case in tagged] == [case.problem for case in draw_cases(20, 3)]
    assert not any("boxed" in case.completion for case in tagged)


def test_the_math_verifier_makes_no_error() -> None:
    verifier = MathVerifier()
    cases = draw_cases(2000, 7)
    accepted = [verifier(case.completion, case.problem).outcome is Outcome.CORRECT for case in cases]
    wrong = [case for case, is_right in zip(cases, accepted, strict=True) if is_right != (case.label is Label.CORRECT)]
    assert wrong == []


def test_an_audit_on_drawn_cases() -> None:
    report = audit_verifier(broken.substring_match, drawn=200, seed=2, skip=SLOW)
    families = {finding.family.partition(":")[0] for finding in report.findings_of(Check.FALSE_POSITIVE)}
    assert {"superseded", "hedge", "denied"} <= families
    assert sum(row.cases for row in report.rows if row.family == "itself") == report.golds > 0
    assert {row.family for row in report.kind_rows} >= set(SUBJECTS)


@pytest.mark.parametrize(("count", "answer_format"), [(0, "ANSWER"), (1, "answer")])
def test_bad_arguments(count: int, answer_format: str) -> None:
    with pytest.raises(InvalidArgumentError, match="positive count, and ANSWER in the answer format"):
        draw_cases(count, 0, answer_format)
