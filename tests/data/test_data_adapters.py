"""Each adapter on rows written for these tests, in the columns of its data set."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from rlvr_envs import tasks
from rlvr_envs.data import ProblemDataset, Source
from verifiers import DataError, MissingDataError, Problem, UnknownNameError
from verifiers.unit_tests import AssertTests, CheckTests

WriteRows = Callable[..., Path]
Row = dict[str, object]

GSM8K: Row = {"question": "A pen costs $2. What do 540 pens cost?", "answer": "2*540=<<2*540=1080>>1080\n#### 1,080"}
MATH: Row = {
    "problem": "Find $1/2 + 1/4$.",
    "level": "Level 1",
    "type": "Prealgebra",
    "solution": r"Not $\boxed{1}$ but $\boxed{\frac{3}{4}}$.",
}
MATH500: Row = {
    "problem": "Find $2^3$.",
    "solution": r"It is $\boxed{8}$.",
    "answer": "8",
    "subject": "Algebra",
    "level": 2,
    "unique_id": "test/algebra/1.json",
}
AIME24: Row = {
    "id": 60,
    "problem": "How many?",
    "solution": "Count them: 25.",
    "answer": "025",
    "url": "https://example.org/1",
    "question": "How many?",
}
AMC23: Row = {"id": 3, "question": "How far?", "answer": 36.0, "url": "https://example.org/2"}
HUMANEVAL: Row = {
    "task_id": "HumanEval/0",
    "prompt": 'def twice(x):\n    """Double x."""\n',
    "canonical_solution": "    return 2 * x\n",
    "test": "def check(candidate):\n    assert candidate(2) == 4\n",
    "entry_point": "twice",
}


def mbpp(task_id: int, **changes: object) -> Row:
    return {
        "task_id": task_id,
        "text": "Write a function to negate a number.",
        "code": "def negate(x):\r\n    return -x",
        "test_setup_code": "",
        "test_list": ["assert negate(1) == -1", "assert negate(0) == 0"],
        "challenge_test_list": ["assert negate(-5) == 5"],
    } | changes


def load(folder: Path, name: str, split: str = "test") -> ProblemDataset:
    return tasks.load(name, split, data_dir=folder)


EXPECTED = [
    (
        "gsm8k",
        GSM8K,
        Problem("gsm8k/test/0", str(GSM8K["question"]), "1,080", {"gold_completion": GSM8K["answer"]}),
    ),
    (
        "math",
        MATH,
        Problem(
            "math/test/0",
            "Find $1/2 + 1/4$.",
            r"\frac{3}{4}",
            {"level": "Level 1", "type": "Prealgebra", "gold_completion": MATH["solution"]},
        ),
    ),
    (
        "math500",
        MATH500,
        Problem(
            "math500/test/algebra/1.json",
            "Find $2^3$.",
            "8",
            {"subject": "Algebra", "level": 2, "gold_completion": r"It is $\boxed{8}$."},
        ),
    ),
    (
        "aime24",
        AIME24,
        Problem(
            "aime24/60",
            "How many?",
            "025",
            {
                "solution": "Count them: 25.",
                "url": "https://example.org/1",
                "gold_completion": r"The answer is $\boxed{025}$.",
            },
        ),
    ),
    (
        "amc23",
        AMC23,
        Problem(
            "amc23/3",
            "How far?",
            "36",
            {"url": "https://example.org/2", "gold_completion": r"The answer is $\boxed{36}$."},
        ),
    ),
    (
        "humaneval",
        HUMANEVAL,
        Problem(
            "HumanEval/0",
            str(HUMANEVAL["prompt"]),
            CheckTests(entry_point="twice", test=str(HUMANEVAL["test"]), prefix=str(HUMANEVAL["prompt"])),
            {"entry_point": "twice", "gold_completion": "    return 2 * x\n"},
        ),
    ),
    (
        "mbpp",
        mbpp(11),
        Problem(
            "mbpp/11",
            "Write a function to negate a number.\nYour code should pass these tests:\n\n"
            "assert negate(1) == -1\nassert negate(0) == 0",
            AssertTests(asserts=("assert negate(1) == -1", "assert negate(0) == 0"), setup=""),
            {
                "task_id": 11,
                "text": "Write a function to negate a number.",
                "code": "def negate(x):\r\n    return -x",
                "challenge_test_list": ("assert negate(-5) == 5",),
                "gold_completion": "```python\ndef negate(x):\r\n    return -x\n```",
            },
        ),
    ),
]
EVERY = [(name, row) for name, row, _ in EXPECTED]


@pytest.mark.parametrize(("name", "row", "problem"), EXPECTED, ids=[name for name, *_ in EXPECTED])
def test_a_row_becomes_this_problem(
    tmp_path: Path, write_rows: WriteRows, name: str, row: Row, problem: Problem
) -> None:
    write_rows(f"{name}/test.jsonl", row)
    loaded = load(tmp_path, name)
    assert (loaded.name, loaded.split) == (name, "test")
    assert list(loaded) == [problem]


def test_every_benchmark_is_covered_here() -> None:
    assert {name for name, _ in EVERY} == set(tasks.SOURCES)


@pytest.mark.parametrize(
    ("name", "row", "column"),
    [(name, row, column) for name, row in EVERY for column in row if column not in ("level", "type", "subject", "url")],
)
def test_a_missing_column_names_file_line_and_column(
    tmp_path: Path, write_rows: WriteRows, name: str, row: Row, column: str
) -> None:
    optional = {("aime24", "solution"), ("aime24", "question")}
    lacking = {key: value for key, value in row.items() if key != column}
    path = write_rows(f"{name}/test.jsonl", lacking)
    if (name, column) in optional:
        assert len(load(tmp_path, name)) == 1
        return
    with pytest.raises(DataError) as caught:
        load(tmp_path, name)
    message = str(caught.value)
    assert message.startswith(f"{path}, line 1: no column ")
    assert repr(column) in message
    assert all(repr(found) in message for found in lacking)


@pytest.mark.parametrize(
    ("name", "row", "change", "complaint"),
    [
        ("gsm8k", GSM8K, {"question": None}, "column 'question' should hold a string, got NoneType: None"),
        ("gsm8k", GSM8K, {"answer": 18}, "column 'answer' should hold a string, got int: 18"),
        ("gsm8k", GSM8K, {"answer": "It is 18"}, "final answer after '#### ', got: …'It is 18'"),
        ("gsm8k", GSM8K, {"answer": "It is\n#### "}, "final answer after '#### '"),
        ("math", MATH, {"solution": "It is 18"}, r"column 'solution' should hold its final answer in \boxed{}"),
        ("math", MATH, {"solution": r"\boxed{1} \boxed{}"}, r"final answer in \boxed{}"),
        ("math500", MATH500, {"answer": 8}, "column 'answer' should hold a string, got int: 8"),
        ("aime24", AIME24, {"id": "60"}, "column 'id' should hold an integer, got str: '60'"),
        ("amc23", AMC23, {"answer": None}, "column 'answer' should hold a finite number, got NoneType: None"),
        ("amc23", AMC23, {"answer": True}, "column 'answer' should hold a finite number, got bool: True"),
        ("amc23", AMC23, {"answer": "many"}, "column 'answer' should hold a finite number, got str: 'many'"),
        ("amc23", AMC23, {"answer": float("nan")}, "column 'answer' should hold a finite number, got float: nan"),
        ("humaneval", HUMANEVAL, {"test": []}, "column 'test' should hold a string, got list: []"),
        ("mbpp", mbpp(11), {"test_list": "assert True"}, "column 'test_list' should hold a list of strings, got str"),
        ("mbpp", mbpp(11), {"task_id": "11"}, "column 'task_id' should hold an integer, got str: '11'"),
    ],
)
def test_an_ill_typed_column_names_file_and_line(
    tmp_path: Path, write_rows: WriteRows, name: str, row: Row, change: Row, complaint: str
) -> None:
    ids: Mapping[str, Row] = {
        "math500": {"unique_id": "b"},
        "aime24": {"id": 9},
        "amc23": {"id": 9},
        "humaneval": {"task_id": "b"},
        "mbpp": {"task_id": 12},
    }
    path = write_rows(f"{name}/test.jsonl", row, row | ids.get(name, {}) | change)
    with pytest.raises(DataError) as caught:
        load(tmp_path, name)
    assert str(caught.value).startswith(f"{path}, line 2: ")
    assert complaint in str(caught.value)


@pytest.mark.parametrize(
    ("value", "answer"), [(36.0, "36"), (-1.0, "-1"), (7, "7"), ("36.0", "36"), ("36", "36"), (2.5, "2.5"), (0.0, "0")]
)
def test_amc_answers_lose_the_point_of_the_float_column(
    tmp_path: Path, write_rows: WriteRows, value: object, answer: str
) -> None:
    write_rows("amc23/test.jsonl", AMC23 | {"answer": value})
    assert load(tmp_path, "amc23")[0].reference == answer


def test_the_gsm8k_reference_is_what_follows_the_last_mark(tmp_path: Path, write_rows: WriteRows) -> None:
    write_rows("gsm8k/test.jsonl", GSM8K | {"answer": "#### 1 is wrong\n#### -2.50 "})
    assert load(tmp_path, "gsm8k")[0].reference == "-2.50"


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
    splits = {split: [problem.id for problem in load(tmp_path, "mbpp", split)] for split in tasks.mbpp.SOURCE.splits}
    assert splits == {
        "train": ["mbpp/601", "mbpp/974"],
        "validation": ["mbpp/511", "mbpp/600"],
        "test": ["mbpp/11", "mbpp/510"],
        "prompt": ["mbpp/1", "mbpp/10"],
    }


def test_mbpp_prefers_a_split_s_own_file(tmp_path: Path, write_rows: WriteRows) -> None:
    write_rows("mbpp/test.jsonl", mbpp(11), mbpp(601), mbpp(602))
    write_rows("mbpp/train.jsonl", mbpp(701))
    assert [problem.id for problem in load(tmp_path, "mbpp", "train")] == ["mbpp/701"]


def test_mbpp_with_no_row_of_the_split(tmp_path: Path, write_rows: WriteRows) -> None:
    path = write_rows("mbpp/test.jsonl", mbpp(11), mbpp(12))
    with pytest.raises(DataError) as caught:
        load(tmp_path, "mbpp", "prompt")
    assert str(caught.value) == f"{path}: none of its 2 rows belongs to split 'prompt' of mbpp"


@pytest.mark.parametrize("source", tasks.SOURCES.values(), ids=list(tasks.SOURCES))
def test_an_unknown_split_offers_the_nearest(source: Source) -> None:
    with pytest.raises(UnknownNameError) as caught:
        source.load("tests")
    assert str(caught.value) == (
        f"unknown split 'tests'. Did you mean 'test'? Known: {', '.join(sorted(source.splits))}."
    )


def test_an_unknown_name_offers_the_nearest() -> None:
    with pytest.raises(UnknownNameError, match=r"unknown data set 'gsm'\. Did you mean 'gsm8k'\? Known: aime24, "):
        tasks.load("gsm", "test")


@pytest.mark.parametrize("source", tasks.SOURCES.values(), ids=list(tasks.SOURCES))
def test_missing_rows_say_both_ways_to_get_them(tmp_path: Path, source: Source) -> None:
    with pytest.raises(MissingDataError) as caught:
        source.load("test", data_dir=tmp_path)
    message = str(caught.value)
    assert f"was not found at {tmp_path / source.name / 'test'}.jsonl (or .parquet)" in message
    assert "RLVR_DATA_DIR" in message
    assert source.hub_id in message
    assert "pip install 'rlvr-envs[hub]'" in message


def test_the_folder_may_come_from_the_environment(
    tmp_path: Path, write_rows: WriteRows, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_rows("gsm8k/test.jsonl", GSM8K)
    monkeypatch.setenv("RLVR_DATA_DIR", str(tmp_path))
    assert tasks.gsm8k.SOURCE.load("test")[0].reference == "1,080"


def test_the_argument_goes_before_the_environment(
    tmp_path: Path, write_rows: WriteRows, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_rows("one/gsm8k/test.jsonl", GSM8K)
    write_rows("two/gsm8k/test.jsonl", GSM8K, GSM8K)
    monkeypatch.setenv("RLVR_DATA_DIR", str(tmp_path / "one"))
    assert len(tasks.gsm8k.SOURCE.load("test", data_dir=tmp_path / "two")) == 2
    assert len(tasks.gsm8k.SOURCE.load("test", data_dir=str(tmp_path / "two"))) == 2
    assert len(tasks.gsm8k.SOURCE.load("test")) == 1


def test_a_relative_folder_is_relative_to_the_working_directory(
    tmp_path: Path, write_rows: WriteRows, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, row in (("one", GSM8K), ("two", GSM8K | {"answer": "#### 7,777"})):
        path = write_rows(f"{name}/data/gsm8k/test.jsonl", row | {"answer": str(row["answer"])[-10:]})
        os.utime(path, ns=(0, 0))
    references = []
    for name in ("one", "two"):
        monkeypatch.chdir(tmp_path / name)
        references.append(tasks.gsm8k.SOURCE.load("test", data_dir="data")[0].reference)
    assert references == ["1,080", "7,777"]


def test_loading_again_gives_the_same_object_until_the_file_changes(tmp_path: Path, write_rows: WriteRows) -> None:
    write_rows("gsm8k/test.jsonl", GSM8K)
    first = load(tmp_path, "gsm8k")
    assert load(tmp_path, "gsm8k") is first
    write_rows("gsm8k/test.jsonl", GSM8K, GSM8K)
    assert len(load(tmp_path, "gsm8k")) == 2
