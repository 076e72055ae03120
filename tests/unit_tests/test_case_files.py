"""Data files read like code."""

from __future__ import annotations

from pathlib import Path

TESTS = Path(__file__).parent.parent


def test_lines_of_data_files_are_as_short_as_those_of_code() -> None:
    files = sorted(TESTS.rglob("*.toml"))
    assert TESTS / "unit_tests" / "cases" / "blame.toml" in files
    long = [(file.name, line) for file in files for line in file.read_text().splitlines() if len(line) > 128]
    assert long == []
