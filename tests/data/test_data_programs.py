"""The tests of programming tasks: left where they are stored, read for a verdict, refused where nothing could pass."""

from __future__ import annotations

import base64
import json
import pickle
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]  # ships no types
import pyarrow.parquet as pq  # type: ignore[import-untyped]  # ships no types
import pytest

from rlvr_envs import tasks
from rlvr_envs.data import ProblemDataset, Row
from rlvr_envs.data.converters import CONVERTERS, seconds
from rlvr_envs.data.local import read_rows
from rlvr_envs.data.programs import first_text, function_name
from verifiers import DataError, InvalidArgumentError, Outcome, Problem
from verifiers.unit_tests import CallTests, DeferredTests, StdioCase, StdioTests, UnitTestVerifier

WriteRows = Callable[..., Path]
APPS: dict[str, object] = {
    "question": "Double it.",
    "solutions": "[]",
    "input_output": json.dumps({"inputs": ["1\n", "-43827161\n"], "outputs": ["2\n", "-87654322\n"]}),
    "starter_code": "",
}
DOUBLE = "print(2 * int(input()))"


def load(folder: Path, name: str = "apps", split: str = "train") -> ProblemDataset:
    return tasks.load(name, split, data_dir=folder)


def made_tests(problem: Problem) -> Any:
    assert isinstance(problem.reference, DeferredTests)
    return problem.reference.load()


def test_tests_are_read_when_a_program_is_judged(
    tmp_path: Path, write_rows: WriteRows, verifier: UnitTestVerifier
) -> None:
    """They are no part of the problem, and what was not read before is what the file holds."""
    write_rows("apps/train.jsonl", APPS, APPS | {"input_output": APPS["input_output"], "question": "Again"})
    problems = load(tmp_path)
    kept = pickle.dumps(problems[1])
    assert b"87654322" not in kept
    assert [made_tests(problem).cases[1].expected for problem in problems] == ["-87654322\n", "-87654322\n"]
    verdicts = verifier.verify_batch([DOUBLE, "print(2)"], problems)
    assert [verdict.outcome for verdict in verdicts] == [Outcome.CORRECT, Outcome.INCORRECT]
    assert verifier(DOUBLE, pickle.loads(kept)).outcome is Outcome.CORRECT


def test_integers_of_any_length_are_read(tmp_path: Path, verifier: UnitTestVerifier) -> None:
    """Python's own JSON has no more than 4,300 digits; here as APPS writes tests, and as a file of one's own may."""
    long, twice = "4" * 5000, "8" * 5000
    spec = f'{{"inputs": [[{long}]], "outputs": [[{twice}]], "fn_name": "double"}}'
    path = tmp_path / "apps/train.jsonl"
    path.parent.mkdir()
    path.write_text(
        json.dumps(APPS | {"input_output": spec}) + "\n" + f'{{"question": "Double it.", "size": {long}}}\n'
    )
    first, _ = read_rows(path)
    assert function_name(first.text("input_output")) == "double"
    made = CONVERTERS["json"](f"[{long}]", first)
    assert isinstance(made, list)
    assert made[0] * 2 == CONVERTERS["json"](f"[{twice}]", first)[0]  # type: ignore[index]  # a list
    path.write_text(json.dumps(APPS | {"input_output": spec}) + "\n")
    verdicts = verifier.verify_batch(["def double(x): return 2 * x", "def double(x): return x"], [*load(tmp_path)] * 2)
    assert [verdict.outcome for verdict in verdicts] == [Outcome.CORRECT, Outcome.INCORRECT]


def test_a_file_that_has_changed_is_no_wrong_answer(
    tmp_path: Path, write_rows: WriteRows, verifier: UnitTestVerifier
) -> None:
    path = write_rows("apps/train.jsonl", APPS, APPS)
    problems = load(tmp_path)
    other = APPS | {"input_output": str(APPS["input_output"]).replace("-8", "-9")}
    write_rows("apps/train.jsonl", APPS, other)
    right, changed = verifier.verify_batch([DOUBLE, DOUBLE], problems)
    assert (right.outcome, changed.outcome) == (Outcome.CORRECT, Outcome.VERIFIER_ERROR)
    assert changed.detail["error"] == (
        f"DataError: {path}, line 2: the row has changed since it was loaded; load the data set again"
    )
    path.unlink()
    gone = verifier(DOUBLE, problems[0])
    assert gone.outcome is Outcome.VERIFIER_ERROR
    assert "line 1: the file can't be read again" in str(gone.detail["error"])


def test_parquet_rows_hold_the_same_as_lines(tmp_path: Path, write_rows: WriteRows) -> None:
    """In several groups of rows, each of several batches."""
    rows = [APPS | {"input_output": json.dumps({"inputs": [f"{n}"], "outputs": [f"{2 * n}"]})} for n in range(90)]
    write_rows("lines/apps/train.jsonl", *rows)
    folder = tmp_path / "table" / "apps"
    folder.mkdir(parents=True)
    pq.write_table(pa.Table.from_pylist(rows), folder / "train.parquet", row_group_size=40)
    lines, table = load(tmp_path / "lines"), load(tmp_path / "table")
    assert lines.fingerprint == table.fingerprint
    assert list(lines) == list(table)
    for number in (0, 15, 16, 39, 40, 89):
        assert made_tests(table[number]).cases == (StdioCase(f"{number}", f"{2 * number}"),)
    pq.write_table(pa.Table.from_pylist(rows[:80]), folder / "train.parquet", row_group_size=40)
    with pytest.raises(DataError, match=r"row 90: the file (has changed|can't be read again)"):
        made_tests(table[89])


STDIN, CALL = (
    {"input": "1", "output": "1", "testtype": "stdin"},
    {"input": "1", "output": "1", "testtype": "functional"},
)
LCB: dict[str, object] = {
    "question_id": "q",
    "question_content": "?",
    "starter_code": "",
    "public_test_cases": "[]",
    "private_test_cases": "[]",
    "metadata": "{}",
}


def packed(content: bytes) -> str:
    return base64.b64encode(zlib.compress(content)).decode()


def apps(tests: str) -> tuple[str, dict[str, object]]:
    return "apps", APPS | {"input_output": tests}


def livecodebench(public: object = (), **columns: str) -> tuple[str, dict[str, object]]:
    return "livecodebench", LCB | {"public_test_cases": json.dumps(public)} | columns


@pytest.mark.parametrize(
    ("row", "complaint"),
    [
        (apps('{"inputs": [], "outputs": []}'), "it has no tests: nothing would be judged"),
        (apps('{"fn_name": "f", "inputs": [[1], "1 2"], "outputs": [1, 2]}'), "standard input and calls are not mixed"),
        (
            apps('{"inputs": [[[1, 2]]], "outputs": [[3]]}'),
            "without a function's name (fn_name) inputs and outputs are",
        ),
        (("taco", APPS | {"time_limit": "a while"}), "expected a time limit such as '2 seconds', got 'a while'"),
        (livecodebench([STDIN, CALL]), "the tests are of several kinds, which no one program has: functional, stdin"),
        (livecodebench([CALL], metadata='{"func_name": null}'), "functional tests need metadata with 'func_name'"),
        (livecodebench([{"output": ""}]), "a test has 'input', 'output' and 'testtype'"),
        (livecodebench([STDIN | {"testtype": "file"}]), "a test is of the kind stdin, stdin_stdout, functional, func"),
        (livecodebench(private_test_cases=packed(b"\x80\x04X")), "private_test_cases holds damaged tests: "),
        (livecodebench(private_test_cases="!!"), "neither JSON nor base64 of compressed tests"),
    ],
)
def test_tests_that_nothing_could_pass_judge_nothing(
    tmp_path: Path, write_rows: WriteRows, verifier: UnitTestVerifier, row: tuple[str, object], complaint: str
) -> None:
    """Every other row of the file can still be used, and a completion of a bad one is not wrong."""
    name, values = row
    split = "train" if name != "livecodebench" else "test"
    path = write_rows(f"{name}/{split}.jsonl", values)
    (problem,) = load(tmp_path, name, split)
    good = Problem("good", "", StdioTests((StdioCase("", "1"),)))
    verdict, other = verifier.verify_batch(["print(1)"] * 2, [problem, good])
    assert (verdict.outcome, other.outcome) == (Outcome.VERIFIER_ERROR, Outcome.CORRECT)
    assert str(verdict.detail["error"]).startswith(f"DataError: {path}, line 1: column ")
    assert complaint in str(verdict.detail["error"])


@pytest.mark.parametrize("value", ["", None, "  "])
def test_rows_that_the_source_is_known_to_leave_empty_are_left_out(
    tmp_path: Path, write_rows: WriteRows, value: object
) -> None:
    write_rows("apps/train.jsonl", APPS | {"input_output": value}, APPS)
    assert [problem.id for problem in load(tmp_path)] == ["apps/train/1"]
    path = write_rows("taco/train.jsonl", APPS, APPS | {"input_output": ""})
    with pytest.raises(DataError) as caught:
        load(tmp_path, "taco")
    assert str(caught.value).startswith(f"{path}, line 2: column 'input_output' is empty: the row has no tests")


def test_proofs_and_what_the_source_calls_invalid_are_no_problems_of_numinamath(
    tmp_path: Path, write_rows: WriteRows
) -> None:
    valid = {"problem_is_valid": "Yes", "solution_is_valid": "Yes"}
    good = {"problem": "?", "solution": "long", "answer": "1", "question_type": "MCQ", **valid}
    changes: list[dict[str, object]] = [{"question_type": "proof"}, {"answer": "notfound"}, {"answer": " "}]
    changes += [{"problem": ""}, {"problem_is_valid": "Incomplete"}, {"solution_is_valid": "No"}]
    write_rows("numina_math/train.jsonl", *(good | change for change in changes), good)
    (problem,) = load(tmp_path, "numina_math")
    assert (problem.id, problem.reference) == ("numina_math/train/6", "1")
    assert "solution" not in problem.metadata


def test_programs_that_read_a_file_are_no_problems_of_codecontests(tmp_path: Path, write_rows: WriteRows) -> None:
    tests = {"input": ["1"], "output": ["2"]}
    row = {"description": "?", "public_tests": tests, "private_tests": tests, "generated_tests": None}
    write_rows("codecontests/test.jsonl", row | {"input_file": "input.txt"}, row | {"input_file": ""})
    (problem,) = load(tmp_path, "codecontests", "test")
    assert problem.id == "codecontests/test/1"
    assert made_tests(problem).cases == (StdioCase("1", "2"),) * 2
    assert "gold_completion" not in problem.metadata


@pytest.mark.parametrize(
    ("tests", "metadata", "expected"),
    [
        ([{"input": "1\n[2]", "output": "3", "testtype": "functional"}], {"func_name": "f"}, ((1, [2]), 3)),
        ([{"input": "1", "output": "3", "testtype": "functional", "metadata": {"func_name": "f"}}], None, ((1,), 3)),
        ([{"input": [1, [2]], "output": [3], "type": "function_call", "fn_name": "f"}], None, ((1, [2]), [3])),
        ({"inputs": [[1]], "outputs": [3], "fn_name": "f"}, None, ((1,), 3)),
    ],
)
def test_the_forms_of_calls_in_deepcoder(tests: object, metadata: object, expected: tuple[object, object]) -> None:
    for form in (tests, json.dumps(tests)):
        made = CONVERTERS["test_list"](form, Row({"tests": form, "metadata": metadata}, 0, "here"))
        assert isinstance(made, CallTests)
        assert (made.entry_point, made.cases[0].args, made.cases[0].expected) == ("f", *expected)


def test_a_prompt_shows_what_the_tests_need(tmp_path: Path, write_rows: WriteRows) -> None:
    call = json.dumps({"fn_name": "twice", "inputs": [[1]], "outputs": [2]})
    write_rows(
        "apps/train.jsonl",
        APPS,
        APPS | {"input_output": call},
        APPS | {"input_output": call, "starter_code": "def twice(n):\n    "},
        APPS | {"starter_code": None, "solutions": None},
    )
    prompts = [str(problem.prompt).removeprefix("Double it.\n\n") for problem in load(tmp_path)]
    stdin = "The program reads standard input and writes to standard output."
    starter = "Complete this code:\n\n```python\ndef twice(n):\n```"
    assert prompts == [stdin, "The tests call the function `twice`.", starter, stdin]


@pytest.mark.parametrize(
    ("limit", "expected"),
    [
        ("2.0 seconds", 2.0),
        ("0.5 - 2 seconds", 2.0),
        ("", None),
        (None, None),
        (0, None),
        (0.25, 0.25),
        ({"seconds": 1, "nanos": 500_000_000}, 1.5),
    ],
)
def test_time_limits(limit: object, expected: float | None) -> None:
    assert seconds(limit) == expected


@pytest.mark.parametrize("limit", ["soon", "2 minutes", -1, float("nan"), True, {"seconds": "2"}, ["2 seconds"]])
def test_time_limits_that_can_t_be_read(limit: object) -> None:
    with pytest.raises(InvalidArgumentError, match="expected a time limit such as '2 seconds', got "):
        seconds(limit)


def test_a_row_s_time_limit_goes_before_the_verifier_s(
    tmp_path: Path, write_rows: WriteRows, verifier: UnitTestVerifier
) -> None:
    """The verifier here allows 2 seconds: a loop ends sooner under a limit of 0.3, and work of 0.6 seconds is too much."""
    busy = "import time\nwhile time.process_time() < 0.6: pass\nprint(2 * int(input()))"
    write_rows("taco/train.jsonl", APPS | {"time_limit": "0.3 seconds"}, APPS | {"time_limit": "1.9 seconds"}, APPS)
    problems = load(tmp_path, "taco")
    assert [made_tests(problem).timeout_s for problem in problems] == [0.3, 1.9, None]
    outcomes = [verdict.outcome for verdict in verifier.verify_batch([busy] * 3, problems)]
    assert outcomes == [Outcome.TIMEOUT, Outcome.CORRECT, Outcome.CORRECT]


@pytest.mark.parametrize(
    ("value", "expected"), [(None, None), ("", None), ([], None), ('["a\\n", "b"]', "a\n"), (' [\n"a"', "a")]
)
def test_only_the_first_solution_is_read(value: object, expected: str | None) -> None:
    assert first_text(Row({"solutions": value}, 0, "here"), "solutions") == expected


@pytest.mark.parametrize("value", ["print(1)", "[1]", "[oops", 3, [3], {"a": 1}])
def test_solutions_that_are_no_texts(value: object) -> None:
    with pytest.raises(DataError, match=r"^here: column 'solutions' should hold a list"):
        first_text(Row({"solutions": value}, 0, "here"), "solutions")


@pytest.mark.parametrize(
    ("tests", "name"),
    [
        ('{"fn_name": "f", "inputs": []}', "f"),
        ('[{"fn_name": "f"}]', "f"),
        ({"fn_name": "f"}, "f"),
        ('{"inputs": ["\\"fn_name\\""]}', None),
        ('{"fn_name": null}', None),
        ('{"fn_name"', None),
        (None, None),
    ],
)
def test_the_function_that_tests_call(tests: object, name: str | None) -> None:
    assert function_name(tests) == name
