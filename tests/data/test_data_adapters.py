"""Each adapter on rows written for these tests, in the columns of its data set."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from rlvr_envs import tasks
from rlvr_envs.data import ProblemDataset, Row as DataRow, Source
from rlvr_envs.data.stored import StoredTests, stored_tests
from verifiers import DataError, MissingDataError, Problem, UnknownNameError
from verifiers.ifeval import Instruction
from verifiers.sql import SQLReference
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
ARENA: Row = {"problem_idx": 7, "problem": "How many?", "answer": 25, "url": "u"}
HMMT25: Row = {"problem_idx": 8, "problem": "How far?", "answer": r"\frac{1}{2}", "subject": ["Algebra"]}
DAPO: Row = {"prompt": "How many?", "solution": "34", "source_prompt": [], "url": "u"}
TRAINING: Row = {"problem": "How far?", "answer": r"\sqrt{2}", "level": "3/8"}
GPQA: Row = {
    "Record ID": "rec1",
    "Question": "Which gas? ",
    "Correct Answer": "argon\n",
    "Incorrect Answer 1": "neon",
    "Incorrect Answer 2": "radon",
    "Incorrect Answer 3": "xenon",
}
MMLU_PRO: Row = {
    "question": "Which gas?",
    "options": ["neon", "argon", "C"],
    "answer": "B",
    "answer_index": 1,
    "subject": "x",
}
OLYMPIAD: Row = {
    "id": 7,
    "context": None,
    "question": "Which?",
    "final_answer": ["$1$", "$-2$"],
    "unit": None,
    "image_1": None,
}
NUMINA: Row = {
    "problem": "How far?",
    "solution": "Far.",
    "answer": "$7$",
    "question_type": "math-word-problem",
    "problem_is_valid": "Yes",
    "solution_is_valid": "Yes",
    "source": "x",
}
SUPERGPQA: Row = {
    "uuid": "u1",
    "question": "Which gas?",
    "options": ["B", "argon"],
    "answer": "argon",
    "answer_letter": "B",
    "subject": "x",
}
LCB: Row = {
    "question_id": "q1",
    "question_content": "Double it.",
    "starter_code": "",
    "public_test_cases": '[{"input": "1", "output": "2", "testtype": "stdin"}]',
    "private_test_cases": "[]",
    "metadata": "{}",
}
APPS: Row = {
    "question": "Double it.\n",
    "solutions": '["print(2 * int(input()))", "x"]',
    "input_output": '{"inputs": ["1"], "outputs": ["2"]}',
    "starter_code": "",
    "url": "u",
}
DEEPCODER: Row = {
    "problem": "Double it.",
    "tests": '[{"type": "function_call", "fn_name": "twice", "input": [1], "output": [2]}]',
}
CONTEST: Row = {
    "description": "Double it.",
    "public_tests": {"input": ["1"], "output": ["2"]},
    "private_tests": {"input": [], "output": []},
    "generated_tests": {"input": ["2"], "output": ["4"]},
    "solutions": {"language": [2, 3, 3], "solution": ["int main", "print(2 * int(input()))", "x"]},
    "time_limit": {"seconds": 2, "nanos": 0},
    "cf_rating": 800,
}
IFEVAL: Row = {
    "key": 7,
    "prompt": "No commas.",
    "instruction_id_list": ["punctuation:no_comma"],
    "kwargs": [{"num_words": None}],
    "subject": "x",
}
SQL: Row = {
    "sql_prompt": "Which b?",
    "sql_context": "CREATE TABLE a (b INT);",
    "sql": "SELECT b FROM a;",
    "subject": "x",
}
AMC23: Row = {"id": 3, "question": "How far?", "answer": 36.0, "url": "https://example.org/2"}
HUMANEVAL: Row = {
    "task_id": "HumanEval/0",
    "prompt": 'def twice(x):\n    """Double x."""\n',
    "canonical_solution": "    return 2 * x\n",
    "test": "def check(candidate):\n    assert candidate(2) == 4\n",
    "entry_point": "twice",
}


STDIN = "The program reads standard input and writes to standard output."


def deferred(row: Row, converter: str, *columns: str) -> StoredTests:
    return stored_tests(DataRow(row, 0, "here"), converter, *columns)


def mbpp(task_id: int, **changes: object) -> Row:
    return {
        "task_id": task_id,
        "text": "Write a function to negate a number.",
        "code": "def negate(x):\r\n    return -x",
        "test_setup_code": "",
        "test_list": ["assert negate(1) == -1", "assert negate(0) == 0"],
        "challenge_test_list": ["assert negate(-5) == 5"],
    } | changes


def split_of(name: str) -> str:
    """The split that the rows here are of: training sets have no other than `train`."""
    return "test" if "test" in tasks.SOURCES[name].splits else "train"


def load(folder: Path, name: str, split: str | None = None) -> ProblemDataset:
    return tasks.load(name, split or split_of(name), data_dir=folder)


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
        "aime25",
        ARENA,
        Problem("aime25/7", "How many?", "25", {"url": "u", "gold_completion": r"The answer is $\boxed{25}$."}),
    ),
    (
        "aime26",
        ARENA,
        Problem("aime26/7", "How many?", "25", {"url": "u", "gold_completion": r"The answer is $\boxed{25}$."}),
    ),
    (
        "hmmt25",
        HMMT25,
        Problem(
            "hmmt25/8",
            "How far?",
            r"\frac{1}{2}",
            {"subject": ["Algebra"], "gold_completion": r"The answer is $\boxed{\frac{1}{2}}$."},
        ),
    ),
    (
        "dapo_math_17k",
        DAPO,
        Problem(
            "dapo_math_17k/train/0", "How many?", "34", {"url": "u", "gold_completion": r"The answer is $\boxed{34}$."}
        ),
    ),
    *(
        (
            name,
            TRAINING,
            Problem(
                f"{name}/train/0",
                "How far?",
                r"\sqrt{2}",
                {"level": "3/8", "gold_completion": r"The answer is $\boxed{\sqrt{2}}$."},
            ),
        )
        for name in ("deepscaler", "polaris")
    ),
    (
        "gpqa",
        GPQA,
        Problem(
            "gpqa/rec1",
            "Which gas?\n\nA) neon\nB) argon\nC) radon\nD) xenon",
            "B",
            {"choices": ("neon", "argon", "radon", "xenon"), "gold_completion": "The answer is B."},
        ),
    ),
    (
        "mmlu_pro",
        MMLU_PRO,
        Problem(
            "mmlu_pro/test/0",
            "Which gas?\n\nA) neon\nB) argon\nC) C",
            "B",
            {"subject": "x", "choices": ("neon", "argon", "C"), "gold_completion": "The answer is B."},
        ),
    ),
    *(
        (
            name,
            IFEVAL,
            Problem(f"{name}/7", "No commas.", (Instruction("punctuation:no_comma"),), {"subject": "x"}),
        )
        for name in ("ifeval", "ifbench")
    ),
    (
        "json_schema",
        {"json_schema": '{"type": "integer"}\n', "unique_id": "a-1", "subject": "x"},
        Problem(
            "json_schema/a-1",
            'Give a JSON value that fits this JSON schema.\n\n```json\n{"type": "integer"}\n```',
            '{"type": "integer"}\n',
            {"subject": "x"},
        ),
    ),
    (
        "sql",
        SQL,
        Problem(
            "sql/test/0",
            "CREATE TABLE a (b INT);\n\nWhich b?",
            SQLReference("SELECT b FROM a;", ("CREATE TABLE a (b INT);",)),
            {"subject": "x", "gold_completion": "```sql\nSELECT b FROM a;\n```"},
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
EXPECTED += [
    (
        "omni_math",
        TRAINING,
        Problem(
            "omni_math/test/0",
            "How far?",
            r"\sqrt{2}",
            {"level": "3/8", "gold_completion": r"The answer is $\boxed{\sqrt{2}}$."},
        ),
    ),
    (
        "olympiadbench",
        OLYMPIAD,
        Problem(
            "olympiadbench/test/0",
            "Which?",
            "$1$, $-2$",
            {"id": 7, "unit": None, "gold_completion": r"The answer is $\boxed{$1$, $-2$}$."},
        ),
    ),
    (
        "numina_math",
        NUMINA,
        Problem(
            "numina_math/train/0",
            "How far?",
            "$7$",
            {
                "question_type": "math-word-problem",
                "problem_is_valid": "Yes",
                "solution_is_valid": "Yes",
                "source": "x",
                "gold_completion": r"The answer is $\boxed{$7$}$.",
            },
        ),
    ),
    (
        "supergpqa",
        SUPERGPQA,
        Problem(
            "supergpqa/u1",
            "Which gas?\n\nA) B\nB) argon",
            "B",
            {"subject": "x", "choices": ("B", "argon"), "gold_completion": "The answer is B."},
        ),
    ),
    (
        "livecodebench",
        LCB,
        Problem(
            "livecodebench/q1",
            f"Double it.\n\n{STDIN}",
            deferred(LCB, "livecodebench", "public_test_cases", "private_test_cases", "metadata"),
        ),
    ),
    *(
        (
            name,
            APPS,
            Problem(
                f"{name}/test/0",
                f"Double it.\n\n{STDIN}",
                deferred(APPS, "input_output", "input_output", "starter_code"),
                {"url": "u", "gold_completion": "```python\nprint(2 * int(input()))\n```"},
            ),
        )
        for name in ("apps", "taco")
    ),
    (
        "deepcoder",
        DEEPCODER,
        Problem(
            "deepcoder/test/0",
            "Double it.\n\nThe tests call the function `twice`.",
            deferred(DEEPCODER, "test_list", "tests"),
        ),
    ),
    (
        "codecontests",
        CONTEST,
        Problem(
            "codecontests/test/0",
            f"Double it.\n\n{STDIN}",
            deferred(CONTEST, "codecontests", "public_tests", "private_tests", "generated_tests", "time_limit"),
            {
                "cf_rating": 800,
                "time_limit": {"seconds": 2, "nanos": 0},
                "gold_completion": "```python\nprint(2 * int(input()))\n```",
            },
        ),
    ),
]
EVERY = [(name, row) for name, row, _ in EXPECTED]


@pytest.mark.parametrize(("name", "row", "problem"), EXPECTED, ids=[name for name, *_ in EXPECTED])
def test_a_row_becomes_this_problem(
    tmp_path: Path, write_rows: WriteRows, name: str, row: Row, problem: Problem
) -> None:
    write_rows(f"{name}/{split_of(name)}.jsonl", row)
    loaded = load(tmp_path, name)
    assert (loaded.name, loaded.split) == (name, split_of(name))
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
    optional = {
        ("aime24", "solution"),
        ("aime24", "question"),
        ("dapo_math_17k", "source_prompt"),
        ("mmlu_pro", "answer"),
        ("supergpqa", "answer"),
        *(("olympiadbench", name) for name in ("id", "context", "unit", "image_1")),
        *(("numina_math", name) for name in ("solution", "source")),
        *(("livecodebench", name) for name in ("starter_code", "metadata")),
        *((name, optional) for name in ("apps", "taco") for optional in ("solutions", "starter_code")),
        *(("codecontests", name) for name in ("solutions", "time_limit", "cf_rating")),
    }
    lacking = {key: value for key, value in row.items() if key != column}
    path = write_rows(f"{name}/{split_of(name)}.jsonl", lacking)
    if (name, column) in optional:
        assert len(load(tmp_path, name)) == 1
        return
    with pytest.raises(DataError) as caught:
        load(tmp_path, name)
    message = str(caught.value)
    assert message.startswith(f"{path}, line 1: no column ")
    assert repr(column) in message
    assert all(repr(name_left) in message for name_left in lacking)


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
        (
            "hmmt25",
            HMMT25,
            {"answer": 0.5},
            "column 'answer' should hold an answer, a string or an integer, got float: 0.5",
        ),
        (
            "hmmt25",
            HMMT25,
            {"answer": ""},
            "column 'answer' should hold an answer, a string or an integer, got str: ''",
        ),
        ("aime25", ARENA, {"answer": True}, "column 'answer' should hold an answer, a string or an integer, got bool"),
        ("mmlu_pro", MMLU_PRO, {"answer_index": 3}, "column 'answer_index' should hold a position from 0 to 2, got 3"),
        ("gpqa", GPQA, {"Correct Answer": None}, "column 'Correct Answer' should hold a string, got NoneType"),
        ("ifeval", IFEVAL, {"instruction_id_list": ["no_comma"]}, "column 'instruction_id_list': unknown instruction"),
        ("ifeval", IFEVAL, {"kwargs": []}, "'kwargs' must be a list of one mapping for each of the 1 instructions"),
        ("ifbench", IFEVAL, {"key": None}, "column 'key' should hold a string or an integer, got NoneType"),
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
        "aime25": {"problem_idx": 9},
        "hmmt25": {"problem_idx": 9},
        "gpqa": {"Record ID": "b"},
        "ifeval": {"key": 8},
        "ifbench": {"key": 8},
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
    splits = {split: [problem.id for problem in load(tmp_path, "mbpp", split)] for split in tasks.SOURCES["mbpp"].splits}
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
    with pytest.raises(
        UnknownNameError, match=r"Known: test, v1, .*published for evaluation alone. To learn from it all the"
    ):
        tasks.load("livecodebench", "train")


@pytest.mark.parametrize("source", tasks.SOURCES.values(), ids=list(tasks.SOURCES))
def test_an_unknown_split_offers_the_nearest(source: Source) -> None:
    nearest = split_of(source.name)
    with pytest.raises(UnknownNameError) as caught:
        source.load(f"{nearest}s")
    assert str(caught.value) == (
        f"unknown split '{nearest}s'. Did you mean '{nearest}'? Known: {', '.join(sorted(source.splits))}."
    )


def test_an_unknown_name_offers_the_nearest() -> None:
    with pytest.raises(UnknownNameError, match=r"unknown data set 'gsm'\. Did you mean 'gsm8k'\? Known: aime24, "):
        tasks.load("gsm", "test")


@pytest.mark.parametrize("source", tasks.SOURCES.values(), ids=list(tasks.SOURCES))
def test_missing_rows_say_both_ways_to_get_them(tmp_path: Path, source: Source) -> None:
    with pytest.raises(MissingDataError) as caught:
        source.load(split_of(source.name), data_dir=tmp_path)
    message = str(caught.value)
    assert f"was not found at {tmp_path / source.name / split_of(source.name)}.jsonl (or .parquet)" in message
    assert "RLVR_DATA_DIR" in message
    assert source.hub_id in message
    assert "pip install 'rlvr-envs[hub]'" in message


def test_the_folder_may_come_from_the_environment(
    tmp_path: Path, write_rows: WriteRows, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_rows("gsm8k/test.jsonl", GSM8K)
    monkeypatch.setenv("RLVR_DATA_DIR", str(tmp_path))
    assert tasks.SOURCES["gsm8k"].load("test")[0].reference == "1,080"


def test_the_argument_goes_before_the_environment(
    tmp_path: Path, write_rows: WriteRows, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_rows("one/gsm8k/test.jsonl", GSM8K)
    write_rows("two/gsm8k/test.jsonl", GSM8K, GSM8K)
    monkeypatch.setenv("RLVR_DATA_DIR", str(tmp_path / "one"))
    assert len(tasks.SOURCES["gsm8k"].load("test", data_dir=tmp_path / "two")) == 2
    assert len(tasks.SOURCES["gsm8k"].load("test", data_dir=str(tmp_path / "two"))) == 2
    assert len(tasks.SOURCES["gsm8k"].load("test")) == 1


def test_a_relative_folder_is_relative_to_the_working_directory(
    tmp_path: Path, write_rows: WriteRows, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, row in (("one", GSM8K), ("two", GSM8K | {"answer": "#### 7,777"})):
        path = write_rows(f"{name}/data/gsm8k/test.jsonl", row | {"answer": str(row["answer"])[-10:]})
        os.utime(path, ns=(0, 0))
    references = []
    for name in ("one", "two"):
        monkeypatch.chdir(tmp_path / name)
        references.append(tasks.SOURCES["gsm8k"].load("test", data_dir="data")[0].reference)
    assert references == ["1,080", "7,777"]


def test_loading_again_gives_the_same_object_until_the_file_changes(tmp_path: Path, write_rows: WriteRows) -> None:
    write_rows("gsm8k/test.jsonl", GSM8K)
    first = load(tmp_path, "gsm8k")
    assert load(tmp_path, "gsm8k") is first
    write_rows("gsm8k/test.jsonl", GSM8K, GSM8K)
    assert len(load(tmp_path, "gsm8k")) == 2


def test_the_right_choice_of_gpqa_stands_anywhere_and_always_there(tmp_path: Path, write_rows: WriteRows) -> None:
    rows = [GPQA | {"Record ID": f"rec{number}"} for number in range(64)]
    write_rows("gpqa/test.jsonl", *rows)
    letters = {problem.id: str(problem.reference) for problem in load(tmp_path, "gpqa")}
    assert set(letters.values()) == set("ABCD")
    write_rows("gpqa/test.jsonl", *reversed(rows), rows[0] | {"Record ID": "another"})
    again = {problem.id: str(problem.reference) for problem in load(tmp_path, "gpqa")}
    assert {name: again[name] for name in letters} == letters


def test_rows_of_sql_that_ask_for_a_change_are_left_out(tmp_path: Path, write_rows: WriteRows) -> None:
    write_rows(
        "sql/test.jsonl", SQL | {"sql": "DELETE FROM a"}, SQL, SQL | {"sql": "-- all\nWITH c AS (SELECT 1) SELECT 1"}
    )
    assert [problem.id for problem in load(tmp_path, "sql")] == ["sql/test/1", "sql/test/2"]


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
