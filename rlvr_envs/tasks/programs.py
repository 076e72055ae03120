"""Code for rows of `programs.toml`: convert tests, and find the rows that have tests."""

from __future__ import annotations

import datetime
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rlvr_envs.data import Row
from rlvr_envs.data.programs import optional_text, program_problem
from rlvr_envs.data.rows import own_id
from rlvr_envs.data.stored import stored_tests
from rlvr_envs.prompts import benchmarks
from verifiers import Problem

if TYPE_CHECKING:
    from verifiers.unit_tests import FunctionTests

_MBPP = {"train": range(601, 975), "validation": range(511, 601), "test": range(11, 511), "prompt": range(1, 11)}
"""The numbers of the tasks in each split of MBPP."""
_CONTEST_TESTS = ("public_tests", "private_tests", "generated_tests")
_LANGUAGES = {"python": 3, "cpp": 2, "java": 4}
"""The number by which CodeContests denotes each language."""


def humaneval(row: Row, default_id: str) -> Problem:
    """Make a problem from a row of HumanEval; see `ToProblem`."""
    from verifiers.unit_tests import CheckTests

    prompt = row.text("prompt")
    metadata = row.without("task_id", "prompt", "test", "canonical_solution")
    return Problem(
        id=row.text("task_id"),
        prompt=prompt,
        reference=CheckTests(entry_point=row.text("entry_point"), test=row.text("test"), prefix=prompt),
        metadata=metadata | {"gold_completion": row.text("canonical_solution")},
    )


def mbpp(row: Row, default_id: str) -> Problem:
    """Make a problem from a row of MBPP; see `ToProblem`."""
    from verifiers.unit_tests import AssertTests

    setup, asserts = row.text("test_setup_code"), row.texts("test_list")
    metadata = row.without("test_setup_code", "test_list", "challenge_test_list")
    gold = {
        "challenge_test_list": row.texts("challenge_test_list"),
        "gold_completion": f"```python\n{row.text('code')}\n```",
    }
    return Problem(
        id=own_id(default_id, row.integer("task_id")),
        prompt=benchmarks.mbpp_text(row.text("text"), asserts, setup),
        reference=AssertTests(asserts=asserts, setup=setup),
        metadata=metadata | gold,
    )


def is_of_split(row: Row, split: str) -> bool:
    """Whether a row of MBPP belongs to a split, by the number of its task."""
    return row.integer("task_id") in _MBPP[split]


def livecodebench(row: Row, default_id: str) -> Problem:
    """Make a problem from a row of LiveCodeBench; see `ToProblem`."""
    row.value("private_test_cases")
    tests = stored_tests(row, "livecodebench", "public_test_cases", "private_test_cases", "metadata")
    used = ("question_id", "question_content", "starter_code", *tests.columns)
    metadata = {name: _plain(value) for name, value in row.without(*used).items()}
    starter_code = optional_text(row, "starter_code")
    identifier = own_id(default_id, row.text("question_id"))
    return program_problem(identifier, row.text("question_content"), tests, metadata, starter_code=starter_code)


def _plain(value: object) -> object:
    """Write a date as text, as in JSON Lines. The hub's table has a separate type for dates."""
    return value.isoformat() if isinstance(value, datetime.datetime) else value


def has_tests(row: Row, split: str) -> bool:
    """Whether a row of APPS has tests."""
    value = row.value("input_output")
    return value is not None and str(value).strip() != ""


@dataclass(frozen=True)
class CodeContests:
    """Turns rows of CodeContests into problems for programs in one language; see `ToProblem`."""

    language: str = "python"
    """The language, by its name in `verifiers.unit_tests.StdioTests.languages`."""

    def __call__(self, row: Row, default_id: str) -> Problem:
        """Make the problem."""
        for column in _CONTEST_TESTS:
            row.value(column)
        used = (*_CONTEST_TESTS, "description", "solutions", "incorrect_solutions", "untranslated_description")
        is_python = self.language == "python"
        return program_problem(
            default_id,
            row.text("description"),
            stored_tests(row, f"codecontests{'' if is_python else f'_{self.language}'}", *_CONTEST_TESTS, "time_limit"),
            row.without(*used),
            solution=_first_solution(row, _LANGUAGES[self.language]),
            language=self.language,
        )


def _first_solution(row: Row, wanted: int) -> str | None:
    """The first solution in a language; None if there is none."""
    if row.values.get("solutions") is None:
        return None
    languages, programs = row.value("solutions.language"), row.texts("solutions.solution")
    if not isinstance(languages, list) or len(languages) != len(programs):
        raise row.wrong_type("a language for each of its solutions", languages, "solutions")
    return next((text for language, text in zip(languages, programs, strict=True) if language == wanted), None)


def reads_stdin(row: Row, split: str) -> bool:
    """Whether the programs of a row of CodeContests read standard input instead of a named file."""
    return optional_text(row, "input_file").strip() == ""


def leetcode(row: Row, default_id: str) -> Problem:
    """Make a problem from a row of LeetCodeDataset; see `ToProblem`."""
    from verifiers.unit_tests import CheckTests

    task = row.text("problem_description")
    starter_code = row.text("starter_code")
    return Problem(
        id=own_id(default_id, row.text("task_id")),
        prompt=f"{task.strip()}\n\nComplete this code:\n\n```python\n{starter_code.rstrip()}\n```",
        reference=CheckTests(entry_point=row.text("entry_point"), test=row.text("test"), prefix=row.text("prompt")),
        metadata=row.without("task_id", "problem_description", "starter_code", "entry_point", "test", "prompt", *_CHATS)
        | _gold(row.text("completion")),
    )


_CHATS = ("completion", "input_output", "query", "response")


def classeval(row: Row, default_id: str) -> Problem:
    """Make a problem from a row of ClassEval; see `ToProblem`."""
    skeleton = row.text("skeleton").rstrip()
    used = ("task_id", "skeleton", "test", "solution_code", "test_classes", "methods_info", "fields")
    return Problem(
        id=own_id(default_id, row.text("task_id")),
        prompt=f"Complete the class {row.text('class_name')}:\n\n```python\n{skeleton}\n```",
        reference=_beside(row.text("test")),
        metadata=row.without(*used) | _gold(row.text("solution_code")),
    )


def kodcode(row: Row, default_id: str) -> Problem:
    """Make a problem from a row of KodCode; see `ToProblem`."""
    from verifiers.unit_tests import FunctionTests

    return Problem(
        id=own_id(default_id, row.text("question_id")),
        prompt=row.text("question").strip(),
        reference=FunctionTests(row.text("test"), together=True),
        metadata={name: row.values[name] for name in ("style", "subset", "gpt_difficulty") if name in row.values}
        | _gold(row.text("solution")),
    )


def bigcodebench(row: Row, default_id: str) -> Problem:
    """Make a problem from a row of BigCodeBench; see `ToProblem`."""
    used = ("task_id", "complete_prompt", "instruct_prompt", "canonical_solution", "code_prompt", "test", "doc_struct")
    return Problem(
        id=own_id(default_id, row.text("task_id")),
        prompt=row.text("instruct_prompt").strip(),
        reference=_beside(row.text("test"), row.text("entry_point")),
        metadata=row.without(*used) | _gold(row.text("code_prompt") + row.text("canonical_solution")),
    )


def ds1000(row: Row, default_id: str) -> Problem:
    """Make a problem from a row of DS-1000; see `ToProblem`."""
    from verifiers.unit_tests import FunctionTests

    return Problem(
        id=own_id(default_id, row.integer("metadata.problem_id")),
        prompt=row.text("prompt").strip().removesuffix("BEGIN SOLUTION\n<code>").rstrip() + _ONLY_THE_REST,
        reference=FunctionTests(row.text("code_context") + SOLUTION_AS_TEXT, together=True),
        metadata={"library": row.text("metadata.library")} | _gold(row.text("reference_code")),
    )


_ONLY_THE_REST = "\n\nWrite only the code that follows, without the code that is given above."
SOLUTION_AS_TEXT = """

import pathlib
import pytest

@pytest.fixture
def solution():
    return pathlib.Path(__file__).with_name("solution.py").read_text()
"""
"""The fixture for `test_execution(solution)` and `test_string(solution)`. These tests insert the solution's text into a
program."""


def _beside(test: str, entry_point: str = "") -> FunctionTests:
    """Make tests that use the names of the program directly, as if program and tests were one file."""
    from verifiers.unit_tests import FunctionTests

    return FunctionTests(f"from solution import *\n{test}", entry_point=entry_point, together=True)


def _gold(program: str) -> dict[str, str]:
    program = program.lstrip("\n").rstrip()  # the first line may be indented
    return {"gold_completion": f"```python\n{program}\n```"}
