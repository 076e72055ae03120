from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import gymnasium
import pytest

from rlvr_envs.data import ProblemDataset, text
from verifiers import DataError, InvalidArgumentError, Message, MissingDataError, Problem, UnknownNameError

WriteRows = Callable[..., Path]


def load(*args: object, **kwargs: object) -> ProblemDataset:
    loaded = text.load(*args, **kwargs)  # type: ignore[arg-type]  # passed through
    assert isinstance(loaded, ProblemDataset)
    return loaded


def test_the_built_in_splits_share_no_question() -> None:
    questions = [problem.prompt for split in text.SPLITS for problem in load(split=split)]
    assert len(questions) == len(set(questions)) == 32


def test_a_file_with_other_columns(write_rows: WriteRows) -> None:
    path = write_rows("sums.jsonl", {"key": 7, "ask": "1 + 1?", "gold": [2], "work": "It is 2.", "hard": False})
    columns = {"prompt": "ask", "reference": "gold", "id": "key", "gold_completion": "work"}
    loaded = load(path, columns=columns)
    assert (loaded.name, loaded.split) == ("sums", "train")
    assert list(loaded) == [Problem("7", "1 + 1?", [2], {"hard": False, "gold_completion": "It is 2."})]
    assert list(load(str(path), columns=columns)) == list(loaded)


def test_a_plain_reference_is_its_own_gold_completion_and_a_prompt_may_be_a_chat(write_rows: WriteRows) -> None:
    chat = [{"role": "system", "content": ""}, {"role": "user", "content": "1 + 1?"}]
    for answer, gold in (("2", "2"), (2, "2"), (2.5, "2.5")):
        (problem,) = load(write_rows("chats.jsonl", {"question": chat, "answer": answer}))
        assert problem.prompt == (Message("system", ""), Message("user", "1 + 1?"))
        assert (problem.reference, problem.metadata) == (answer, {"gold_completion": gold})


@pytest.mark.parametrize("prompt", [5, [], ["hi"], [{"role": "user"}]])
def test_a_prompt_that_is_neither_text_nor_chat(write_rows: WriteRows, prompt: object) -> None:
    path = write_rows("chats.jsonl", {"question": "ok", "answer": "2"}, {"question": prompt, "answer": "2"})
    with pytest.raises(DataError) as caught:
        load(path)
    assert str(caught.value).startswith(
        f"{path}, line 2: column 'question' should hold a string, or a list of messages "
        "{'role': ..., 'content': ...}, got "
    )


HALF = "half of a surrogate pair as its character 2"
EMPTY = "an empty prompt, where a question was expected: write it, or leave the row out"


@pytest.mark.parametrize(
    ("row", "complaint"),
    [
        ({"question": ""}, f"column 'question' holds {EMPTY}"),
        ({"question": "a\ud800"}, f"column 'question' holds {HALF}"),
        ({"question": [{"role": "user", "content": "a\ud800"}]}, f"column 'question.0.content' holds {HALF}"),
        ({"answer": ["1", "a\ud800"]}, f"column 'answer.1' holds {HALF}"),
        ({"key": "a\ud800"}, f"column 'key' holds {HALF}"),
    ],
)
def test_text_that_no_policy_could_read_names_file_line_and_column(
    write_rows: WriteRows, row: dict[str, object], complaint: str
) -> None:
    good = {"question": "?", "answer": "2", "gold": "2", "key": "1"}
    path = write_rows("sums.jsonl", good, {**good, "key": "2", **row})
    columns = {"prompt": "question", "reference": "answer", "gold_completion": "gold", "id": "key"}
    with pytest.raises(DataError, match=re.escape(f"{path}, line 2: {complaint}")):
        load(path, columns=columns)


def test_choices_are_text_that_a_policy_can_read(write_rows: WriteRows) -> None:
    path = write_rows("choices.jsonl", {"question": "?", "answer": 0, "choices": ["a", "a\ud800"]})
    with pytest.raises(DataError, match=re.escape(f"{path}, line 1: column 'choices.1' holds {HALF}")):
        load(path, convert="choices")


@pytest.mark.parametrize("name", ["GSM8K", "MATH"])
def test_benchmarks_name_the_line_of_a_prompt_that_is_empty_or_no_text(
    write_rows: WriteRows, tmp_path: Path, name: str
) -> None:
    folder, column = {"GSM8K": ("gsm8k", "question"), "MATH": ("math", "problem")}[name]
    row = {"answer": "#### 2", "solution": r"\boxed{2}", "level": "Level 1", "type": "Algebra", "subject": "Algebra"}
    for asked, complaint in (
        ("", f"the prompt that the row makes is empty (columns that hold an empty text: '{column}'), where a question"),
        ("a\ud800", f"column '{column}' holds {HALF}"),
    ):
        path = write_rows(f"{folder}/test.jsonl", {**row, column: "?"}, {**row, column: asked})
        with pytest.raises(DataError, match=re.escape(f"{path}, line 2: {complaint}")):
            gymnasium.make(f"rlvr/{name}-v0", split="test", data_dir=tmp_path)


def test_a_prompt_without_tokens_is_an_error_that_names_the_problem() -> None:
    message = "the prompt of problem 'p' is empty: expected at least one token for the policy to continue"
    with pytest.raises(DataError, match=message):
        gymnasium.make("rlvr/Text-v0", dataset=[Problem("p", "", "1")])
    env = gymnasium.make("rlvr/Text-v0", dataset=[Problem("q", "?", "1"), Problem("p", "", "1")])
    with pytest.raises(DataError, match=message):
        env.reset(options={"problem": 1})
    gymnasium.make("rlvr/Text-v0", dataset=[Problem("p", "", "1")], prompt="Say {problem}").reset()


@pytest.mark.parametrize("prompt", ["\ud800", (Message("user", "\ud800"),)])
def test_a_problem_of_one_s_own_that_is_no_text_is_named(prompt: str | tuple[Message, ...]) -> None:
    with pytest.raises(DataError, match="the prompt of problem 'p' has half of a surrogate pair at"):
        gymnasium.make("rlvr/Text-v0", dataset=[Problem("p", prompt, "1")])


def test_a_folder_has_a_file_for_each_split(tmp_path: Path, write_rows: WriteRows) -> None:
    write_rows("sums/train.jsonl", {"question": "1 + 1?", "answer": "2"})
    write_rows("sums/dev.jsonl", {"question": "1 + 2?", "answer": "3"})
    assert load(tmp_path / "sums", split="train")[0].id == "sums/train/0"
    assert load(tmp_path / "sums", split="dev")[0].id == "sums/dev/0"
    with pytest.raises(UnknownNameError, match=r"unknown split 'trian'\. Did you mean 'train'\? Known: dev, train\."):
        load(tmp_path / "sums", split="trian")


def test_a_name_is_looked_for_in_the_data_folder(
    tmp_path: Path, write_rows: WriteRows, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_rows("gsm8k/test.jsonl", {"question": "1 + 1?", "answer": "#### 2"})
    assert load("gsm8k", split="test", data_dir=tmp_path)[0].id == "gsm8k/test/0"
    monkeypatch.setenv("RLVR_DATA_DIR", str(tmp_path))
    assert load("gsm8k", split="test")[0].reference == "#### 2"


def test_an_id_is_text_or_an_integer(write_rows: WriteRows) -> None:
    path = write_rows("sums.jsonl", {"question": "?", "answer": "2", "key": 1.5})
    with pytest.raises(DataError, match=r"line 1: column 'key' should hold a string or an integer, got float: 1\.5"):
        load(path, columns={**text.DEFAULT_COLUMNS, "id": "key"})


ONE = Problem("a", "?", "2")
SEQUENCE = "expected a sequence of Problem, got"
DATA_SET = "expected a data set's name, path or sequence of problems, got"


@pytest.mark.parametrize(
    ("dataset", "options", "error", "complaint"),
    [
        ([ONE, {"prompt": "?"}], {}, InvalidArgumentError, rf"{SEQUENCE} dict at 1 \(counted from 0\)"),
        (["a"], {}, InvalidArgumentError, rf"{SEQUENCE} str at 0 \(counted from 0\)"),
        (
            [Problem("a", None, "2")],
            {},
            InvalidArgumentError,
            "a prompt must be a string or a tuple of messages; problem",
        ),
        ([], {}, InvalidArgumentError, "expected at least one problem, got an empty sequence"),
        (5, {}, InvalidArgumentError, f"{DATA_SET} int"),
        ({0: ONE}, {}, InvalidArgumentError, f"{DATA_SET} dict"),
        (None, {"data_dir": "."}, InvalidArgumentError, "data_dir= and config= need a data set: name it with dataset="),
        (None, {"config": "a"}, InvalidArgumentError, "data_dir= and config= need a data set: name it with dataset="),
        (None, {"split": "tst"}, UnknownNameError, r"unknown split 'tst'\. Did you mean 'test'\? Known: test, train\."),
        (
            None,
            {"columns": {"promt": "q"}},
            UnknownNameError,
            r"unknown key of columns 'promt'\. Did you mean 'prompt'",
        ),
        (None, {"columns": {"prompt": "q"}}, InvalidArgumentError, r"columns names no column for \['reference'\], got"),
        (
            "none/sums.jsonl",
            {},
            MissingDataError,
            r"there is no file .*sums\.jsonl; give a \.jsonl, \.parquet, \.json or",
        ),
        (
            Path(__file__).parent,
            {"split": "x"},
            MissingDataError,
            r"data holds no data: expected .*x\.jsonl \(or \.parquet",
        ),
    ],
)
def test_what_is_no_data_set_is_refused(
    dataset: object, options: dict[str, object], error: type[Exception], complaint: str
) -> None:
    with pytest.raises(error, match=complaint):
        load(dataset, **options)
