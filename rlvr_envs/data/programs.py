"""Programming tasks: shared code for the rows of APPS, TACO, DeepCoder, CodeContests and LiveCodeBench."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rlvr_envs.data.rows import Row
from rlvr_envs.data.stored import StoredTests, stored_tests
from verifiers import Problem, _integers

_STDIN = "The program reads standard input and writes to standard output."


def program_problem(
    identifier: str,
    task: str,
    tests: StoredTests,
    metadata: Mapping[str, object],
    *,
    starter_code: str = "",
    function: str | None = None,
    solution: str | None = None,
    language: str = "python",
) -> Problem:
    """Build the problem of a programming task, for the verifier `unit_tests`.

    Args:
        identifier: The problem's id.
        task: The description of the task.
        tests: The row's tests.
        metadata: The row's further columns.
        starter_code: Code that a solution completes, shown below the task.
        function: The function that the tests call, if there is no starter code; None if the program reads standard input.
        solution: A program that passes the tests. None if the source has no such program; the problem then has no gold
            completion.
        language: The program's language, as written at the start of a block of code, such as `python`.
    """
    if starter_code.strip():
        below = f"Complete this code:\n\n```python\n{starter_code.rstrip()}\n```"
    else:
        below = _stdin(language) if function is None else f"The tests call the function `{function}`."
    gold = {} if solution is None else {"gold_completion": _fenced(solution, language)}
    return Problem(identifier, f"{task.strip()}\n\n{below}", tests, {**metadata, **gold})


def _stdin(language: str) -> str:
    from verifiers.unit_tests import language_title

    return _STDIN if language == "python" else f"{_STDIN} Write it in {language_title(language)}."


def _fenced(program: str, language: str) -> str:
    return program if "```" in program else f"```{language}\n{program.strip()}\n```"


def function_name(tests: object) -> str | None:
    """Name of the function that tests call in the form of APPS or DeepCoder; None for standard input or unreadable tests."""
    if isinstance(tests, str):
        if '"fn_name"' not in tests:  # tests may be megabytes, and few name a function
            return None
        try:
            tests = _integers.loads(tests)
        except ValueError:
            return None  # loading the tests will report the error
    first = tests[0] if isinstance(tests, list) and tests else tests
    name = first.get("fn_name") if isinstance(first, Mapping) else None
    return name if isinstance(name, str) and name else None


def first_text(row: Row, column: str) -> str | None:
    """The first text of a column's list or of its JSON; None if the list is empty. The rest of the list is not read.

    Raises:
        DataError: If the column holds something else.
    """
    value = row.values.get(column)
    if isinstance(value, str):
        value = _first_of_json(row, column, value.strip())
    if value is None or value == []:
        return None
    if not isinstance(value, list) or not isinstance(value[0], str):
        raise row.wrong_type("a list of texts, or the JSON of one", value, column)
    return value[0]


def _first_of_json(row: Row, column: str, text: str) -> object:
    """Read the first item of a JSON list.

    The result is a list with only this item, or an empty list. Any other text is returned unchanged.
    """
    items = text[1:].lstrip()
    if text == "" or (text[0] == "[" and items[:1] == "]"):
        return []
    if text[0] != "[":
        return text
    try:
        return [json.JSONDecoder().raw_decode(items)[0]]
    except ValueError as error:
        raise row.error(f"column {column!r} should hold a list of texts, or the JSON of one: {error}") from error


def optional_text(row: Row, column: str) -> str:
    """The text of a column; empty if the column is missing or holds nothing.

    Raises:
        DataError: If the column holds something else.
    """
    return row.text(column) if row.values.get(column) is not None else ""


@dataclass(frozen=True)
class ProgramRows:
    """Turns rows with a task and tests into problems. The tests stay in storage, and the other columns become metadata."""

    tests: str
    """The column of the tests."""
    form: str
    """The converter that makes tests from the column `tests`; see `rlvr_envs.data.converters`."""
    problem: str = "problem"
    """The column of the task."""
    beside: Sequence[str] = ()
    """Further columns that the converter reads."""
    repeated: Sequence[str] = ()
    """Further columns that are left out of the metadata, like the tests."""

    def __call__(self, row: Row, default_id: str) -> Problem:
        """Make the problem; see `ToProblem`."""
        return program_problem(
            default_id,
            row.text(self.problem),
            stored_tests(row, self.form, self.tests, *self.beside),
            row.without(self.problem, self.tests, "starter_code", "solutions", *self.repeated),
            starter_code=optional_text(row, "starter_code"),
            function=function_name(row.value(self.tests)),
            solution=first_text(row, "solutions"),
        )
