"""Nested columns, converters, multiple choice and verl's layout, from `gym.make` and from the command line."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path

import gymnasium as gym
import pytest

import verifiers
from rlvr_envs.data import ProblemDataset, text
from verifiers import DataError, InvalidArgumentError, Message, Outcome, Problem, UnknownNameError

WriteRows = Callable[..., Path]
NESTED = {"prompt": "prompt.0.content", "reference": "reward_model.ground_truth"}


def verl_row(source: str, content: str, truth: object, index: int = 0) -> dict[str, object]:
    return {
        "data_source": source,
        "prompt": [{"role": "user", "content": content}],
        "ability": "any",
        "reward_model": {"style": "rule", "ground_truth": truth},
        "extra_info": {"index": index, "split": "train"},
    }


def load(path: Path, **options: object) -> ProblemDataset:
    loaded = text.load(path, **options)  # type: ignore[arg-type]  # passed through
    assert isinstance(loaded, ProblemDataset)
    return loaded


def judged(dataset: ProblemDataset, *completions: str) -> list[Outcome]:
    assert dataset.verifier is not None
    name, arguments = dataset.verifier
    verdicts = verifiers.verify_batch(verifiers.make(name, **arguments), completions, dataset)
    return [verdict.outcome for verdict in verdicts]


def test_a_path_with_dots_leads_into_a_column(write_rows: WriteRows) -> None:
    path = write_rows("sums.jsonl", verl_row("s", "1 + 1?", "2"))
    (problem,) = load(path, columns=NESTED)
    assert (problem.prompt, problem.reference) == ("1 + 1?", "2")
    assert problem.metadata["extra_info"] == {"index": 0, "split": "train"}
    env = gym.make("rlvr_envs:rlvr/Text-v0", dataset=str(path), columns=NESTED)
    assert env.unwrapped.num_problems == 1  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"reward_model": "2"}, "no 'reward_model.ground_truth': 'reward_model' holds str: '2'"),
        ({"reward_model": {"ground_truth": None}}, "column 'reward_model.ground_truth' holds nothing"),
        ({"prompt": []}, "no 'prompt.0.content': 'prompt' holds a list of 0"),
        ({"prompt": [{"role": "user"}]}, "no 'prompt.0.content': 'prompt.0' holds the keys 'role'"),
    ],
)
def test_what_is_not_there(write_rows: WriteRows, change: Mapping[str, object], complaint: str) -> None:
    path = write_rows("sums.jsonl", verl_row("s", "1 + 1?", "2") | change)
    with pytest.raises(DataError) as caught:
        load(path, columns=NESTED)
    assert str(caught.value).startswith(f"{path}, line 1: {complaint}")


@pytest.mark.parametrize(
    ("convert", "answer", "complaint"),
    [
        ("json", "{", "not valid JSON: "),
        ("json", 2, "expected JSON text, got int"),
        ("json_first", "[]", "expected the JSON of a list that is not empty, got '[]'"),
        ("input_output", '{"inputs": []}', "input_output needs the keys 'inputs' and 'outputs'"),
        ("input_output", None, "expected JSON text or an object with inputs and outputs, got NoneType"),
        ("livecodebench", "", "a LiveCodeBench row has a column 'public_test_cases'"),
    ],
)
def test_what_can_t_be_converted_names_the_row(
    write_rows: WriteRows, convert: str, answer: object, complaint: str
) -> None:
    path = write_rows("p.jsonl", {"question": "?", "answer": answer})
    with pytest.raises(DataError) as caught:
        load(path, convert=convert)
    assert str(caught.value).startswith(f"{path}, line 1: column 'answer': {complaint}")


CHOICES = {"prompt": "question", "reference": "answer", "choices": "options"}


def test_the_converter_of_choices_reads_the_column_of_that_name(write_rows: WriteRows) -> None:
    path = write_rows("c.jsonl", {"question": "Which?", "choices": ["red", "blue"], "answer": 1})
    assert load(path, convert="choices")[0].prompt == "Which?\n\nA) red\nB) blue"
    with pytest.raises(DataError, match=r"no column 'options'.*Columns found: 'question', 'choices', 'answer'"):
        load(path, columns=CHOICES, convert="choices")
    with pytest.raises(UnknownNameError, match=r"choises.*Did you mean 'choices'"):
        load(path, convert="choises")
    with pytest.raises(InvalidArgumentError, match="give only one of them"):
        load(path, columns=CHOICES, convert="json")


@pytest.mark.parametrize(
    ("convert", "row", "verifier"),
    [
        ("choices", {"answer": 1, "choices": ["red", "blue"]}, "choice"),
        ("input_output", {"answer": '{"inputs": ["1"], "outputs": ["2"]}'}, "unit_tests"),
        ("test_list", {"answer": '[{"input": "1", "output": "2"}]'}, "unit_tests"),
        ("ifeval", {"answer": ["punctuation:no_comma"], "kwargs": [{}]}, "ifeval"),
        ("json_first", {"answer": '["2"]'}, "math"),
    ],
)
def test_references_that_one_verifier_reads_are_judged_by_it(
    write_rows: WriteRows, convert: str, row: dict[str, object], verifier: str
) -> None:
    path = write_rows("p.jsonl", {"question": "?", **row})
    default = gym.make("rlvr_envs:rlvr/Text-v0", dataset=str(path), convert=convert)
    assert default.unwrapped.manifest["verifier"][0] == verifier  # type: ignore[attr-defined]
    given = gym.make(
        "rlvr_envs:rlvr/Text-v0", dataset=str(path), convert=convert, verifier=("format", {"structure": "think"})
    )
    assert given.unwrapped.manifest["verifier"][0] == "format"  # type: ignore[attr-defined]


@pytest.mark.parametrize("answer", [1, "B", "blue"])
def test_a_column_of_choices_makes_it_multiple_choice(write_rows: WriteRows, answer: object) -> None:
    path = write_rows("c.jsonl", {"question": "Which?", "options": ["red", "blue"], "answer": answer})
    (problem,) = load(path, columns=CHOICES)
    assert problem.prompt == "Which?\n\nA) red\nB) blue"
    assert (problem.reference, problem.metadata["choices"]) == ("B", ("red", "blue"))
    assert verifiers.make("choice")("The answer is B.", problem).outcome is Outcome.CORRECT
    assert verifiers.make("choice")("The answer is A.", problem).outcome is Outcome.INCORRECT


@pytest.mark.parametrize(
    ("options", "answer"),
    [
        (["red", "blue"], 2),
        (["red", "blue"], True),
        (["B", "red"], "B"),  # the letter of red, and the text of A
        (["red"], 0),
        ("red", 0),
    ],
)
def test_choices_that_leave_the_answer_open(write_rows: WriteRows, options: object, answer: object) -> None:
    path = write_rows("c.jsonl", {"question": "Which?", "options": options, "answer": answer})
    ambiguous = ".*ambiguous" if answer == "B" else ""
    with pytest.raises(DataError, match=rf"line 1: column '(options|answer)' should hold{ambiguous}"):
        load(path, columns=CHOICES)


def test_verl_rows_are_judged_by_their_source(write_rows: WriteRows) -> None:
    program = json.dumps({"inputs": ["2\n"], "outputs": ["4\n"]})
    path = write_rows(
        "mixed.jsonl",
        verl_row("openai/gsm8k", "1 + 1?", "2"),
        verl_row("taco", "Double it.", program, 1),
        verl_row("mine/words", "Capital of Peru?", "Lima", 2),
        verl_row("aime2025", "2 + 2?", "4", 3),
    )
    dataset = load(path, layout="verl", verifiers={"mine/*": "exact"})
    assert dataset[0].prompt == (Message("user", "1 + 1?"),)
    assert [problem.id for problem in dataset][:2] == ["mixed/train/0", "mixed/train/1"]
    right = ["#### 2", "```python\nprint(2 * int(input()))\n```", "Lima", "Answer: 4"]
    wrong = ["#### 3", "```python\nprint(3)\n```", "Quito", "Answer: 5"]
    assert judged(dataset, *right) == [Outcome.CORRECT] * 4
    assert judged(dataset, *wrong) == [Outcome.INCORRECT] * 4


def test_a_given_verifier_goes_before_the_known_one(write_rows: WriteRows) -> None:
    path = write_rows("m.jsonl", verl_row("openai/gsm8k", "1 + 1?", '["2"]'))
    judge = {"verifier": ["exact", {}], "convert": "json_first"}
    dataset = load(path, layout="verl", verifiers={"openai/gsm8k": judge}, columns={"id": "extra_info.index"})
    assert (dataset[0].id, dataset[0].reference) == ("0", "2")
    assert judged(dataset, "2") == [Outcome.CORRECT]
    assert judged(dataset, "#### 2") == [Outcome.INCORRECT]


def test_sources_without_a_verifier_are_all_named(write_rows: WriteRows) -> None:
    rows = [verl_row(source, "?", "2") for source in ("openai/gsm8k", "b/c", "a/b", "b/c")]
    path = write_rows("m.jsonl", *rows)
    with pytest.raises(DataError) as caught:
        gym.make("rlvr_envs:rlvr/Text-v0", dataset=str(path), layout="verl")
    message = str(caught.value)
    assert message.startswith(f"{path}, line 3: no verifier is known for the data_source 'a/b', 'b/c'; say which one ")
    assert "Known: DigitalLearningGmbH/MATH-lighteval, HuggingFaceH4/MATH-500, aime*, apps, " in message


@pytest.mark.parametrize(
    ("options", "error", "complaint"),
    [
        ({"layout": "verk"}, UnknownNameError, r"unknown layout 'verk'\. Did you mean 'verl'\?"),
        ({"convert": "jsn"}, UnknownNameError, r"unknown converter 'jsn'\. Did you mean 'json'\?"),
        ({"verifiers": {"a": "math"}}, InvalidArgumentError, r"verifiers= maps a data_source .* needs layout='verl'"),
        ({"layout": "verl", "verifiers": {"s": 3}}, InvalidArgumentError, r"verifiers\['s'\] must be the name of"),
    ],
)
def test_options_that_do_not_fit(
    write_rows: WriteRows, options: dict[str, object], error: type[Exception], complaint: str
) -> None:
    path = write_rows("m.jsonl", verl_row("s", "?", "2"))
    with pytest.raises(error, match=complaint):
        load(path, **options)


def test_by_metadata_does_not_score_a_problem_that_names_no_part() -> None:
    verifier = verifiers.make("by_metadata", parts={"a": "exact"}, key="kind")
    problems = [Problem("0", "", "2", {"kind": "a"}), Problem("1", "", "2", {"kind": "b"}), Problem("2", "", "2")]
    verdicts = verifiers.verify_batch(verifier, ["2", "2", "2"], problems)
    assert [verdict.outcome for verdict in verdicts] == ["correct", "verifier_error", "verifier_error"]
    assert verdicts[1].detail == {"error": "problem '1' has kind='b', which is none of ['a']"}
