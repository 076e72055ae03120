"""The reader of data files: what is malformed is refused, and what is not as expected fails."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.sandbox import Case, cases
from verifiers.unit_tests import AssertTests, UnitTestVerifier

TESTS = Path(__file__).parent.parent
CASE = {"name": "a", "program": "def f(): return 1", "asserts": ["assert f() == 1"], "outcome": "correct"}


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({}, r"a class needs cases, each with a name of its own, got \[\]"),
        ({"case": [CASE, CASE]}, r"a class needs cases, each with a name of its own, got \['a', 'a'\]"),
        ({"case": [{key: CASE[key] for key in CASE if key != "name"}]}, r"the case None, with .*: 'name'"),
        (
            {"case": [{key: CASE[key] for key in CASE if key != "asserts"}]},
            r"the case 'a', with .* says how it is tested, got \[\]",
        ),
        (
            {"case": [CASE | {"test_file": "def test_it(): pass"}]},
            r"the case 'a', with .* says how it is tested, got \['asserts', 'test_file'\]",
        ),
        ({"case": [CASE | {"outcom": "correct"}]}, "the case 'a', with .* unexpected keyword argument 'outcom'"),
        ({"case": [{key: CASE[key] for key in CASE if key != "outcome"}]}, "the case 'a', with .* nothing is expected"),
        ({"case": [CASE | {"outcome": "right"}]}, "the case 'a', with .* 'right' is not a valid Outcome"),
        ({"case": [CASE | {"body": "pass"}]}, "the case 'a', with .* no line BODY"),
    ],
)
def test_a_malformed_case_is_named(table: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        cases(table)


def test_a_line_stands_for_others_as_it_is_indented() -> None:
    table = {"test_file": "HEAD\ndef test_it():\n    BODY\n", "head": "import solution\n", "score": 1}
    (parameters,) = cases(table | {"bodies": ["if solution.f():\n    pass\n"]})
    (case,) = parameters.values
    assert case.name == "if solution.f():\n    pass"
    assert case.tests.test == "import solution\ndef test_it():\n    if solution.f():\n        pass\n"


@pytest.mark.parametrize(
    "expected",
    [{"outcome": "incorrect"}, {"score": 0}, {"failure": ["exit", "wrong_answer"]}, {"reason": "limit"}, {"total": 2}],
)
def test_another_verdict_than_the_expected_one_fails(verifier: UnitTestVerifier, expected: dict[str, Any]) -> None:
    tests = AssertTests(("assert f() == 1",))
    Case("a", "def f(): return 1", tests, {"outcome": "correct", "score": 1, "passed": 1, "total": 1}).check(verifier)
    with pytest.raises((AssertionError, KeyError)):
        Case("a", "def f(): return 1", tests, expected).check(verifier)


def test_a_mistake_is_made_in_a_text_that_is_there() -> None:
    tests = AssertTests(("assert f() == 1",))
    assert Case("a", "def f(): return 1", tests, {}, ("1", "2")).mistaken() == "def f(): return 2"
    with pytest.raises(AssertionError, match="the program of 'a' has no '3'"):
        Case("a", "def f(): return 1", tests, {}, ("3", "2")).mistaken()


def test_lines_of_data_files_are_as_short_as_those_of_code() -> None:
    files = sorted(TESTS.rglob("*.toml"))
    assert TESTS / "unit_tests" / "cases" / "blame.toml" in files
    long = [(file.name, line) for file in files for line in file.read_text().splitlines() if len(line) > 128]
    assert long == []
