"""Drawn cases of programs, SQL, JSON and instructions: their labels beside a second evaluation, and audits on them."""

from __future__ import annotations

import json
from collections import Counter

import pytest

from agents.commands.main import main
from tests.audit import broken
from tests.audit.second_evaluation import is_right
from verifiers import InvalidArgumentError, UnknownNameError, audit_verifier, make
from verifiers.audit import Check, Label, draw_cases, field_of
from verifiers.audit.subjects import FIELDS
from verifiers.audit.subjects.tasks import mutants

VERIFIERS = {"programs": "unit_tests", "sql": "sql", "json_schema": "json_schema", "instructions": "ifeval"}
COUNTS = {"programs": 60, "sql": 150, "json_schema": 200, "instructions": 400}


def run(*arguments: str) -> object:
    with pytest.raises(SystemExit) as ended:
        main(["audit-verifier", *arguments])
    return ended.value.code


@pytest.mark.parametrize("field", FIELDS)
def test_a_second_evaluation_confirms_every_label(field: str) -> None:
    cases = draw_cases(COUNTS[field], 11, field=field)
    assert [case for case in cases if is_right(case) != (case.label is Label.CORRECT)] == []
    assert 0.35 < Counter(case.label for case in cases)[Label.CORRECT] / len(cases) < 0.65
    assert {"itself", "only a thought", "wording: thought", "no answer"} <= {case.family for case in cases}


@pytest.mark.parametrize("field", FIELDS)
def test_the_verifier_of_a_field_makes_no_error(field: str) -> None:
    verifier = make(VERIFIERS[field])
    cases = draw_cases(COUNTS[field], 12, field=field)
    verdicts = [verifier(case.completion, case.problem) for case in cases]
    wrong = [
        (case, verdict)
        for case, verdict in zip(cases, verdicts, strict=True)
        if (verdict.outcome == "correct") != (case.label is Label.CORRECT)
    ]
    assert wrong == []


def test_the_choice_verifier_makes_no_error_and_reads_a_denial_in_a_mark_as_final() -> None:
    verifier = make("choice")
    cases = draw_cases(1500, 13, field="choice")
    assert {case.kind for case in cases} == {"choice"}
    assert all((verifier(one.completion, one.problem).score == 1) == (one.label is Label.CORRECT) for one in cases)


def test_a_case_depends_on_the_seed_and_its_index_alone_and_its_problem_is_plain_data() -> None:
    for field in FIELDS:
        cases = draw_cases(20, 3, field=field)
        assert draw_cases(40, 3, field=field)[:20] == cases
        for case in cases:
            assert json.loads(json.dumps(case.problem.reference)) == case.problem.reference


def test_mutants_change_one_whole_token() -> None:
    swaps = {"<": ("<=",), "<=": ("<",), "in": ("not in",), "1": ("2",)}
    assert mutants("min(1) < 11 <= x in '1'", swaps) == [
        "min(2) < 11 <= x in '1'",
        "min(1) <= 11 <= x in '1'",
        "min(1) < 11 < x in '1'",
        "min(1) < 11 <= x not in '1'",
    ]


def test_an_audit_finds_what_a_grader_of_programs_accepts() -> None:
    report = audit_verifier(broken.defines_the_function, drawn=60, field="programs", seed=4)
    families = {finding.family.partition(":")[0] for finding in report.findings_of(Check.FALSE_POSITIVE)}
    assert {"mutant", "forgery"} <= families
    assert report.answer_format is None
    assert sum(row.cases for row in report.rows if row.family == "itself") == report.golds > 0


def test_the_command_draws_the_cases_that_the_named_verifier_is_for(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("json_schema", "--drawn", "60") == 0
    said = capsys.readouterr().out
    assert "wrong value: " in said
    assert "all wrong answers" in said
    assert run("json_schema", "--drawn", "60", "--against", "tests.audit.broken:any_json") == 1
    said = capsys.readouterr().out
    assert "tests.audit.broken:any_json" in said
    assert "[false positive] wrong value: " in said


def test_options_without_an_effect(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(InvalidArgumentError, match="answer_format has no effect on cases of programs"):
        audit_verifier("unit_tests", drawn=2, answer_format="#### ANSWER")
    assert run("sql", "--against", "tests.audit.broken:any_json") == 2
    assert run("jsonschema", "--drawn", "60", "--against", "tests.audit.broken:any_json") == 2
    assert "Did you mean 'json_schema'?" in capsys.readouterr().err


def test_fields_by_the_names_of_verifiers() -> None:
    assert {name: field_of(name) for name in VERIFIERS.values()} == {name: field for field, name in VERIFIERS.items()}
    assert field_of("rewards.py:f") == field_of(broken.any_json) == "mathematics"
    with pytest.raises(UnknownNameError, match="field of drawn cases"):
        draw_cases(1, 0, field="program")
