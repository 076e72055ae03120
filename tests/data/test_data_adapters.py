"""Each adapter on rows written for these tests, in the columns of its data set."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from rlvr_envs import tasks
from rlvr_envs.data import ProblemDataset, Source
from tests.benchmark_rows import AIME24, AMC23, EVERY, GPQA, GSM8K, HMMT25, IFEVAL, MATH, MMLU_PRO, Row, mbpp
from verifiers import DataError, MissingDataError, UnknownNameError
from verifiers.sql import SQLReference
from verifiers.unit_tests import AssertTests

WriteRows = Callable[..., Path]


def split_of(name: str) -> str:
    """The split that the rows here are of: training sets have no other than `train`."""
    return "test" if "test" in tasks.SOURCES[name].splits else "train"


def load(folder: Path, name: str, split: str | None = None) -> ProblemDataset:
    return tasks.load(name, split or split_of(name), data_dir=folder)


@pytest.mark.parametrize("name", EVERY)
def test_a_row_becomes_this_problem(tmp_path: Path, write_rows: WriteRows, name: str) -> None:
    write_rows(f"{name}/{split_of(name)}.jsonl", EVERY[name].row)
    loaded = load(tmp_path, name)
    assert (loaded.name, loaded.split) == (name, split_of(name))
    assert list(loaded) == [EVERY[name].problem]


def test_every_benchmark_is_covered_here() -> None:
    assert EVERY.keys() == tasks.SOURCES.keys()


@pytest.mark.parametrize(
    ("name", "column"),
    [(name, column) for name, case in EVERY.items() for column in case.row if column not in case.optional],
)
def test_a_missing_column_names_file_line_and_column(
    tmp_path: Path, write_rows: WriteRows, name: str, column: str
) -> None:
    lacking = {key: value for key, value in EVERY[name].row.items() if key != column}
    path = write_rows(f"{name}/{split_of(name)}.jsonl", lacking)
    with pytest.raises(DataError) as caught:
        load(tmp_path, name)
    message = str(caught.value)
    assert message.startswith(f"{path}, line 1: no column ")
    assert f"'{column}" in message
    assert all(repr(name_left) in message for name_left in lacking)


@pytest.mark.parametrize(
    ("name", "row", "change", "complaint"),
    [
        ("gsm8k", GSM8K, {"answer": 18}, "column 'answer' should hold a string, got int: 18"),
        ("gsm8k", GSM8K, {"answer": "It is 18"}, "final answer after '#### ', got: …'It is 18'"),
        ("math", MATH, {"solution": "It is 18"}, r"column 'solution' should hold its final answer in \boxed{}"),
        ("aime24", AIME24, {"id": "60"}, "column 'id' should hold an integer, got str: '60'"),
        ("amc23", AMC23, {"answer": True}, "column 'answer' should hold a finite number, got bool: True"),
        ("hmmt25", HMMT25, {"answer": ""}, "column 'answer' should hold an answer, a string or an integer, got str:"),
        ("mmlu_pro", MMLU_PRO, {"answer_index": 3}, "column 'answer_index' should hold a position from 0 to 2, got 3"),
        ("ifeval", IFEVAL, {"instruction_id_list": ["no_comma"]}, "column 'instruction_id_list': unknown instruction"),
        ("ifeval", IFEVAL, {"kwargs": []}, "'kwargs' must be a list of one mapping for each of the 1 instructions"),
        ("mbpp", mbpp(11), {"test_list": "assert True"}, "column 'test_list' should hold a list of strings, got str"),
    ],
)
def test_an_ill_typed_column_names_file_and_line(
    tmp_path: Path, write_rows: WriteRows, name: str, row: Row, change: Row, complaint: str
) -> None:
    ids: Mapping[str, Row] = {
        "aime24": {"id": 9},
        "amc23": {"id": 9},
        "hmmt25": {"problem_idx": 9},
        "ifeval": {"key": 8},
        "ifbench": {"key": 8},
        "mbpp": {"task_id": 12},
    }
    path = write_rows(f"{name}/test.jsonl", row, row | ids.get(name, {}) | change)
    with pytest.raises(DataError) as caught:
        load(tmp_path, name)
    assert str(caught.value).startswith(f"{path}, line 2: ")
    assert complaint in str(caught.value)


@pytest.mark.parametrize(
    ("name", "row", "reference"),
    [
        ("amc23", AMC23 | {"answer": 36.0}, "36"),  # without the point of the float column
        ("amc23", AMC23 | {"answer": -1.0}, "-1"),
        ("amc23", AMC23 | {"answer": 7}, "7"),
        ("amc23", AMC23 | {"answer": "36.0"}, "36"),
        ("amc23", AMC23 | {"answer": 2.5}, "2.5"),
        ("gsm8k", GSM8K | {"answer": "#### 1 is wrong\n#### -2.50 "}, "-2.50"),  # what follows the last mark
    ],
)
def test_the_reference_is_the_rows_final_answer(
    tmp_path: Path, write_rows: WriteRows, name: str, row: Row, reference: str
) -> None:
    write_rows(f"{name}/test.jsonl", row)
    assert load(tmp_path, name)[0].reference == reference


def test_mbpp_shows_set_up_code_before_the_tests(tmp_path: Path, write_rows: WriteRows) -> None:
    setup = "root = Node(1)\r\nroot.left = Node(2)"
    write_rows("mbpp/test.jsonl", mbpp(11, test_setup_code=setup))
    problem = load(tmp_path, "mbpp")[0]
    assert str(problem.prompt).endswith(
        "these tests:\n\nroot = Node(1)\nroot.left = Node(2)\nassert negate(1) == -1\nassert negate(0) == 0"
    )
    assert isinstance(problem.reference, AssertTests)
    assert problem.reference.setup == setup


def test_mbpp_tells_its_splits_apart_by_task(tmp_path: Path, write_rows: WriteRows) -> None:
    numbers = [1, 10, 11, 510, 511, 600, 601, 974]
    write_rows("mbpp/test.jsonl", *map(mbpp, numbers))
    splits = {
        split: [problem.id for problem in load(tmp_path, "mbpp", split)] for split in tasks.SOURCES["mbpp"].splits
    }
    assert splits == {
        "train": ["mbpp/601", "mbpp/974"],
        "validation": ["mbpp/511", "mbpp/600"],
        "test": ["mbpp/11", "mbpp/510"],
        "prompt": ["mbpp/1", "mbpp/10"],
    }
    write_rows("mbpp/train.jsonl", mbpp(701))  # a split's own file goes before
    assert [problem.id for problem in load(tmp_path, "mbpp", "train")] == ["mbpp/701"]
    path = write_rows("mbpp/test.jsonl", mbpp(11), mbpp(12))
    with pytest.raises(DataError, match="none of its 2 rows belongs to split 'prompt' of mbpp") as caught:
        load(tmp_path, "mbpp", "prompt")
    assert str(caught.value).startswith(f"{path}: ")


def test_rows_that_nothing_could_judge_are_not_called_rows_of_another_split(
    tmp_path: Path, write_rows: WriteRows
) -> None:
    row = {"sql_prompt": "Who?", "sql_context": "CREATE TABLE t (a INT);", "sql": "SELEC a FROM t"}
    path = write_rows("sql/train.jsonl", row)
    with pytest.raises(DataError) as caught:
        load(tmp_path, "sql", "train")
    said = "none of its 1 rows asks a question: no gold query begins with SELECT, WITH or VALUES"
    assert str(caught.value) == f"{path}: {said}"


def test_a_benchmark_without_a_train_split_says_so() -> None:
    with pytest.raises(UnknownNameError, match=r"Known: test, v1, .*published for evaluation alone. To learn from it"):
        tasks.load("livecodebench", "train")
    with pytest.raises(UnknownNameError, match=r"unknown data set 'gsm'\. Did you mean 'gsm8k'\? Known: aime24, "):
        tasks.load("gsm", "test")


@pytest.mark.parametrize("source", tasks.SOURCES.values(), ids=list(tasks.SOURCES))
def test_an_unknown_split_offers_the_nearest(source: Source) -> None:
    nearest = split_of(source.name)
    with pytest.raises(UnknownNameError) as caught:
        source.load(f"{nearest}s")
    assert str(caught.value) == (
        f"unknown split '{nearest}s'. Did you mean '{nearest}'? Known: {', '.join(sorted(source.splits))}."
    )


@pytest.mark.parametrize("source", tasks.SOURCES.values(), ids=list(tasks.SOURCES))
def test_missing_rows_say_both_ways_to_get_them(tmp_path: Path, source: Source) -> None:
    with pytest.raises(MissingDataError) as caught:
        source.load(split_of(source.name), data_dir=tmp_path)
    message = str(caught.value)
    assert f"was not found at {tmp_path / source.name / split_of(source.name)}.jsonl (or .parquet)" in message
    assert "RLVR_DATA_DIR" in message
    assert source.hub_id in message
    assert "pip install 'rlvr-envs[hub]'" in message


def test_the_argument_goes_before_the_environment_and_a_data_set_is_loaded_once_until_its_file_changes(
    tmp_path: Path, write_rows: WriteRows, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_rows("one/gsm8k/test.jsonl", GSM8K)
    write_rows("two/gsm8k/test.jsonl", GSM8K, GSM8K)
    monkeypatch.setenv("RLVR_DATA_DIR", str(tmp_path / "one"))
    assert len(tasks.SOURCES["gsm8k"].load("test", data_dir=str(tmp_path / "two"))) == 2
    first = tasks.SOURCES["gsm8k"].load("test")
    assert len(first) == 1
    assert tasks.SOURCES["gsm8k"].load("test") is first
    write_rows("one/gsm8k/test.jsonl", GSM8K, GSM8K)
    assert len(tasks.SOURCES["gsm8k"].load("test")) == 2


def test_the_right_choice_of_gpqa_stands_anywhere_and_always_there(tmp_path: Path, write_rows: WriteRows) -> None:
    rows = [GPQA | {"Record ID": f"rec{number}"} for number in range(64)]
    write_rows("gpqa/test.jsonl", *rows)
    letters = {problem.id: str(problem.reference) for problem in load(tmp_path, "gpqa")}
    assert set(letters.values()) == set("ABCD")
    write_rows("gpqa/test.jsonl", *reversed(rows), rows[0] | {"Record ID": "another"})
    again = {problem.id: str(problem.reference) for problem in load(tmp_path, "gpqa")}
    assert {name: again[name] for name in letters} == letters


def test_rows_of_spider_and_bird_name_the_file_of_their_database(tmp_path: Path, write_rows: WriteRows) -> None:
    spider = {"question": "Which?", "query": "SELECT b FROM a", "db_id": "d", "db_path": "d.sqlite"}
    bird = {
        "question": "Which?",
        "SQL": "SELECT 1",
        "evidence": "b is 1",
        "db_path": "d.sqlite",
        "schema": "CREATE TABLE a (b)",
    }
    write_rows("sql/test.jsonl", spider, bird)
    first, second = load(tmp_path, "sql")
    assert (first.prompt, first.reference) == ("Which?", SQLReference("SELECT b FROM a", files=("d.sqlite",)))
    assert first.metadata == {"db_id": "d", "gold_completion": "```sql\nSELECT b FROM a\n```"}
    assert second.prompt == "CREATE TABLE a (b)\n\nWhich?\n\nb is 1"
    assert second.reference == SQLReference("SELECT 1", files=("d.sqlite",))
