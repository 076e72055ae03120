"""The verifiers' court beyond mathematics: what its adapters give to graders, and which cases its columns count."""

from __future__ import annotations

import importlib
import json
from pathlib import Path
from types import ModuleType

import pytest

from tests.audit.second_evaluation import calls_of
from verifiers.audit import Label, draw_cases
from verifiers.audit.runner import Answer

COURT = Path(__file__).parents[2] / "benchmarks" / "court"


@pytest.fixture
def court(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(COURT))
    return importlib.import_module("of_fields")


@pytest.fixture
def graders(court: ModuleType) -> ModuleType:
    return importlib.import_module("field_graders")


@pytest.mark.parametrize("field", ["programs", "sql", "json_schema", "instructions", "choice"])
def test_every_case_is_in_one_column(court: ModuleType, field: str) -> None:
    columns = court.COLUMNS[field]
    for case in draw_cases(300, 21, field=field):
        wrong = Answer(outcome="incorrect" if case.label is Label.CORRECT else "correct")
        shown = court.rates(columns, [(case, wrong)])
        assert sorted(shown[: len(columns)])[: len(columns) - 1] == ["-"] * (len(columns) - 1), case.family
        assert sum(cell.startswith("100.0 ") for cell in shown) == 1, case.family


def test_tests_of_every_kind_become_calls(graders: ModuleType) -> None:
    kinds = set()
    for case in draw_cases(40, 22, field="programs"):
        kinds.add(case.kind)
        given = graders.inputs_and_outputs(case.problem.reference)
        if "fn_name" in given:
            name, calls = calls_of(case.problem.reference)
            assert given["fn_name"] == name
            assert [[json.loads(line) for line in one.split("\n")] for one in given["inputs"]] == [
                one for one, _ in calls
            ]
            assert [json.loads(one) for one in given["outputs"]] == [value for _, value in calls]
    assert kinds >= {"asserts", "check", "calls", "input and output", "test file"}


def test_a_plain_validator_errs_on_repeated_names_alone(graders: ModuleType) -> None:
    cases = draw_cases(200, 23, field="json_schema")
    wrong = {
        case.family
        for case in cases
        if graders.plain_jsonschema(case.completion, case.problem.reference) != (case.label is Label.CORRECT)
    }
    assert wrong <= {"a property twice", "not JSON: NaN", "only a thought"}
    assert "a property twice" in wrong
