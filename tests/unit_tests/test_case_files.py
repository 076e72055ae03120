"""The reader of data files: what is malformed is refused, and what is not as expected fails."""

from __future__ import annotations

from pathlib import Path

from tests.sandbox import cases

TESTS = Path(__file__).parent.parent
CASE = {"name": "a", "program": "def f(): return 1", "asserts": ["assert f() == 1"], "outcome": "correct"}


def test_a_line_stands_for_others_as_it_is_indented() -> None:
    table = {"test_file": "HEAD\ndef test_it():\n    BODY\n", "head": "import solution\n", "score": 1}
    (parameters,) = cases(table | {"bodies": ["if solution.f():\n    pass\n"]})
    (case,) = parameters.values
    assert case.name == "if solution.f():\n    pass"
    assert case.tests.test == "import solution\ndef test_it():\n    if solution.f():\n        pass\n"


def test_lines_of_data_files_are_as_short_as_those_of_code() -> None:
    files = sorted(TESTS.rglob("*.toml"))
    assert TESTS / "unit_tests" / "cases" / "blame.toml" in files
    long = [(file.name, line) for file in files for line in file.read_text().splitlines() if len(line) > 128]
    assert long == []
