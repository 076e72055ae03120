"""What tests of the sandbox share: cases in data files, and a judge.

A data file holds classes of cases. What stands in a class holds for each of its cases, unless the case says otherwise:

    [liars]
    test_file = '''
    from solution import area
    def test_it():
        BODY
    '''
    outcome = 'incorrect'

    [[liars.case]]
    name = 'equals everything'
    program = '''
    class Number:
        def __eq__(self, other): return True
    def area(radius): return Number()
    '''
    body = 'assert area(1) == 3'

`program` is the completion, and one of `asserts`, `calls`, `check`, `stdio` and `test_file` says how it is tested, with the
fields of its class of tests beside it. A line `BODY` or `HEAD` stands for the lines of `body` or `head`, indented as it is.
`bodies` in a class is short for a case for each, which it names. Expected are `outcome`, `score`, `passed` and `total` cases,
`failure` (one, or several possible) and `reason` (a part of it). `mistake` is a text of the program and another in its place
that makes it wrong.
"""

from __future__ import annotations

import textwrap
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from verifiers import Outcome, Problem, Verdict
from verifiers.unit_tests import (
    AssertTests,
    CallCase,
    CallTests,
    CheckTests,
    FunctionTests,
    StdioCase,
    StdioTests,
    UnitTestVerifier,
)

Tests = AssertTests | CallTests | CheckTests | FunctionTests | StdioTests
_KINDS: dict[str, Any] = {
    "asserts": lambda asserts, **rest: AssertTests(tuple(asserts), **rest),
    "calls": lambda calls, **rest: CallTests(cases=tuple(CallCase(tuple(a), e) for a, e in calls), **rest),
    "check": lambda check, **rest: CheckTests(test=check, **rest),
    "stdio": lambda stdio, **rest: StdioTests(tuple(StdioCase(*case) for case in stdio), **rest),
    "test_file": lambda test_file, **rest: FunctionTests(test_file, **rest),
}
_EXPECTED = ("outcome", "score", "passed", "total", "failure", "reason")


def judge(verifier: UnitTestVerifier, completion: str, tests: Tests) -> Verdict:
    """The verdict on a completion, of a problem that has no name and no prompt."""
    return verifier(completion, Problem("p", "", tests))


def fenced(program: str) -> str:
    """A completion that gives a program in a block of Markdown."""
    return f"```python\n{program}\n```"


@dataclass(frozen=True)
class Case:
    """A program, its tests, and what is to become of it."""

    name: str
    program: str
    tests: Tests
    expected: Mapping[str, Any]
    mistake: tuple[str, str] | None = None

    def check(self, verifier: UnitTestVerifier, program: str | None = None) -> Verdict:
        """Assert that the verdict on the program, or on another in its place, is the expected one, and return it."""
        verdict = judge(verifier, self.program if program is None else program, self.tests)
        fields = {"outcome": verdict.outcome, "score": verdict.score, **verdict.detail}
        for key, value in self.expected.items():
            if key == "reason":
                assert value in str(fields["reason"]), fields
            else:
                assert fields[key] in (value if isinstance(value, list) else [value]), fields
        return verdict

    def mistaken(self) -> str:
        """The program with its mistake."""
        assert self.mistake is not None, f"the case {self.name!r} has no mistake"
        right, wrong = self.mistake
        assert right in self.program, f"the program of {self.name!r} has no {right!r}"
        return self.program.replace(right, wrong)


def load(name: str) -> dict[str, Any]:
    """The classes of a data file, such as `unit_tests/blame`."""
    folder, _, stem = name.rpartition("/")
    return tomllib.loads((Path(__file__).parents[1] / folder / "cases" / f"{stem}.toml").read_text(encoding="utf-8"))


def cases(table: Mapping[str, Any]) -> list[Any]:
    """The cases of a class, to parametrize a test; `ValueError` says which one is malformed and how."""
    shared = {key: value for key, value in table.items() if key not in ("case", "bodies")}
    rows = [*table.get("case", ()), *({"name": body.rstrip("\n"), "body": body} for body in table.get("bodies", ()))]
    parsed = [_case(shared | row) for row in rows]
    if not parsed or len({case.name for case in parsed}) < len(parsed):
        raise ValueError(f"a class needs cases, each with a name of its own, got {[case.name for case in parsed]}")
    return [pytest.param(case, id=case.name) for case in parsed]


def _case(row: Mapping[str, Any]) -> Case:
    name, fields = row.get("name"), dict(row)
    try:
        del fields["name"]
        mistake = fields.pop("mistake", None)
        lines = {key.upper(): fields.pop(key) for key in ("body", "head") if key in fields}
        expected = {key: fields.pop(key) for key in _EXPECTED if key in fields}
        if not expected:
            raise ValueError("nothing is expected")
        if "outcome" in expected:
            expected["outcome"] = Outcome(expected["outcome"])
        kinds = sorted(fields.keys() & _KINDS.keys())
        if len(kinds) != 1:
            raise ValueError(f"one of {', '.join(_KINDS)} says how it is tested, got {kinds}")
        if unused := lines.keys() - {line.strip() for text in _texts(fields) for line in text.splitlines()}:
            raise ValueError(f"no line {' or '.join(unused)}")
        filled = {key: _filled(value, lines) for key, value in fields.items()}
        return Case(name, filled.pop("program", ""), _KINDS[kinds[0]](**filled), expected, mistake and tuple(mistake))
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"the case {name!r}, with {', '.join(row)}, is malformed: {error}") from error


def _texts(fields: Mapping[str, Any]) -> Iterator[str]:
    for value in fields.values():
        yield from (text for text in (value if isinstance(value, list) else [value]) if isinstance(text, str))


def _filled(value: Any, lines: Mapping[str, str]) -> Any:
    """A text, or a list of them, with each line that stands for others replaced by those."""
    if isinstance(value, list):
        return [_filled(item, lines) for item in value]
    if not isinstance(value, str):
        return value
    return "".join(
        textwrap.indent(lines[line.strip()].rstrip("\n") + "\n", line[: -len(line.lstrip())])
        if line.strip() in lines
        else line
        for line in value.splitlines(keepends=True)
    )
