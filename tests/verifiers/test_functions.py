"""Reward functions that were written for something else, called by the names of their parameters."""

from __future__ import annotations

import dataclasses
import functools
import pickle
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

import rlvr_envs  # noqa: F401 - registers the environments
import verifiers
from verifiers import (
    Completion,
    Message,
    Outcome,
    Problem,
    UnknownArgumentError,
    UnknownNameError,
    VerifierContractError,
)
from verifiers.conventions import read_convention
from verifiers.functions import check_reading, convention_of

PROBLEM = Problem(
    "gsm8k/train/0",
    "What is 70 + 2?",
    "72",
    {"gold_completion": "It is 72.\n#### 72", "level": 3, "data_source": "openai/gsm8k"},
)


# Functions as they are found


def accuracy_reward(completion, reference):
    return reference in completion


def of_answers(answer, gold):
    return answer == gold


def by_solution(solution, answer):
    return {"solution": solution, "score": float(solution.endswith(answer))}


def compute_score(data_source, solution_str, ground_truth, extra_info=None, **kwargs):
    assert not kwargs
    right = solution_str.endswith(f"#### {ground_truth}")
    return {"score": float(right), "source": data_source, "level": extra_info["level"]}


def strict_score(solution_str, ground_truth, method="strict", format_score=0.1, score=1.0):
    return score if solution_str.endswith(f"#### {ground_truth}") else format_score


def batched_score(data_sources, solution_strs, ground_truths, extra_infos):
    assert len(data_sources) == len(extra_infos) == len(solution_strs)
    return [{"score": float(gold in text)} for text, gold in zip(solution_strs, ground_truths, strict=True)]


def of_texts(completions, answer, **kwargs):
    return [float(gold in text) for text, gold in zip(completions, answer, strict=True)]


def of_chats(prompts, completions, answer, **kwargs):
    assert all(prompt[-1]["role"] == "user" for prompt in prompts)
    return [float(gold in chat[0]["content"]) for chat, gold in zip(completions, answer, strict=True)]


def of_annotated_chats(
    completions: list[list[dict[str, str]]], solution: list[str], level, **kwargs
) -> list[float | None]:
    assert set(level) == {3}
    return [1.0 if gold in chat[-1]["content"] else None for chat, gold in zip(completions, solution, strict=True)]


def format_reward(completions, **kwargs):
    return [float(text.startswith("<think>")) for text in completions]


def with_problem(text, p: Problem):
    return p.reference in text


def positional(completion, answer, /):
    return answer in completion


class Grader:
    def __call__(self, response, target):
        return response.count(target)


FOUND: list[tuple[Callable[..., Any], str]] = [
    (accuracy_reward, "accuracy_reward(completion, reference)"),
    (of_answers, "of_answers(answer=completion, gold=reference)"),
    (by_solution, "by_solution(solution=completion, answer=reference)"),
    (compute_score, "compute_score(data_source, solution_str=completion, ground_truth=reference, extra_info)"),
    (batched_score, "batched_score(data_sources, solution_strs=completion, ground_truths=reference, extra_infos)"),
    (of_texts, "of_texts(completions, answer=reference, **columns), in batches, with texts"),
    (of_chats, "of_chats(prompts, completions, answer=reference, **columns), in batches"),
    (of_annotated_chats, "of_annotated_chats(completions, solution=reference, level=column, **columns), in batches"),
    (positional, "positional(completion, answer=reference)"),
    (Grader(), "Grader(response=completion, target=reference)"),
]


@pytest.mark.parametrize(("function", "convention"), FOUND, ids=[said.split("(")[0] for _, said in FOUND])
def test_functions_are_called_by_the_names_of_their_parameters(function: Callable[..., Any], convention: str) -> None:
    judge = verifiers.make(function)
    assert str(convention_of(judge)).startswith(convention)
    completions = ["72" if function is of_answers else "It is #### 72", "7"]
    right, wrong = verifiers.verify_batch(judge, completions, [PROBLEM] * 2)
    assert right.score == 1
    assert wrong.score == 0 or wrong.outcome is Outcome.VERIFIER_ERROR
    assert check_reading(judge, [PROBLEM]) == ("ANSWER" if function is of_answers else None)
    assert pickle.loads(pickle.dumps(judge))("It is #### 72", PROBLEM) == judge("It is #### 72", PROBLEM)


def test_a_mapping_is_a_score_and_details() -> None:
    verdict = verifiers.make(compute_score)("#### 72", PROBLEM)
    assert (verdict.score, verdict.detail) == (1.0, {"source": "openai/gsm8k", "level": 3})
    assert verifiers.make(compute_score)("", Problem("mine/1", "", "7", {"level": 1})).detail["source"] == "mine"


def test_one_completion_that_breaks_a_batch_leaves_the_others_alone() -> None:
    def numbers(completions, answer):
        return [float(float(text) == float(gold)) for text, gold in zip(completions, answer, strict=True)]

    verdicts = verifiers.verify_batch(verifiers.make(numbers), ["72", "none", "7"], [PROBLEM] * 3)
    assert [verdict.outcome for verdict in verdicts] == [Outcome.SCORED, Outcome.VERIFIER_ERROR, Outcome.SCORED]
    assert "could not convert string to float: 'none'" in str(verdicts[1].detail["error"])


def test_chats_are_messages_for_functions_of_messages_and_text_for_others() -> None:
    chat = Problem("p", (Message("system", "Be brief."), Message("user", "What is it?")), "7")

    def seen(prompts, completions):
        return [{"score": completions[0][0]["content"] == "7", "prompt": prompts[0]}]

    def question(completion, question, answer):
        return {"score": 1, "prompt": question}

    assert verifiers.make(seen)("7", chat).detail["prompt"] == [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "What is it?"},
    ]
    assert verifiers.make(question)("7", chat).detail["prompt"] == "Be brief.\nWhat is it?"


# What is refused, and settled


def unknown(x, y):
    return x == y


def twice(completion, answer, solution):
    return completion == answer


def two_completions(completion, response, answer):
    return True


def only_names(*, model_output, gold):
    return model_output == gold


def of_thing(response, thing=None):
    return response == thing


class Rewards:
    def of_text(self, completion, answer):
        return answer in completion


NO_COMPLETION = "no parameter claims the completion"


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (unknown, r"unknown\(x, y\): nothing is known of y, and no parameter claims the reference.*say which"),
        (twice, r"answer and solution claim the reference.*reference='answer' \(--verifier-args reference=answer\)"),
        (two_completions, "completion and response claim the completion"),
        (only_names, f"{NO_COMPLETION}.*say which parameter gets what, with completion="),
        (lambda expected, answer: expected == answer, NO_COMPLETION),  # a name of the reference is never the completion
        (lambda completion_ids, answer: 1, NO_COMPLETION),
        (lambda self, answer: 1, NO_COMPLETION),
        (lambda self, completion: True, r"nothing is known of self.*name the method of an instance"),
        (of_thing, "nothing is known of thing"),  # which may be the reference, although it is optional
        (min, rf"{NO_COMPLETION}.*functools\.wraps"),
        (lambda *arguments: 1, rf"{NO_COMPLETION}.*functools\.wraps"),
        (lambda *arguments, **names: 1, rf"{NO_COMPLETION}.*functools\.wraps"),
    ],
)
def test_what_is_claimed_twice_or_by_nothing_is_refused(function: Callable[..., Any], message: str) -> None:
    with pytest.raises(VerifierContractError, match=message):
        read_convention(function, {})


@pytest.mark.parametrize(
    ("function", "arguments", "completion", "score"),
    [
        (unknown, {"reference": "y"}, "72", 1),
        (only_names, {"completion": "model_output"}, "72", 1),
        (twice, {"reference": "answer", "solution": "s"}, "72", 1),
        (strict_score, {"format_score": 0.5}, "72", 0.5),
        (of_thing, {"reference": "thing"}, "72", 1),
        (of_thing, {"thing": "7"}, "7", 1),
        (lambda completion, answer, solution=None: solution is None and answer in completion, {}, "72", 1),
        (lambda completion, answer, level=0: level, {}, "72", 3),
        (lambda completion, answer, depth=4: depth, {}, "72", 4),
        (lambda completion, target=2: -abs(len(completion) - target), {}, "72", 0),  # a number is a setting
        (lambda completion, target=np.ones(2): float(target.sum()), {}, "72", 2),  # noqa: B008 - as some write it
        (functools.partial(accuracy_reward, reference="8"), {}, "8", 1),
        (Rewards().of_text, {}, "72", 1),
    ],
)
def test_arguments_and_defaults_settle_what_names_do_not(
    function: Callable[..., Any], arguments: dict[str, Any], completion: str, score: float
) -> None:
    assert verifiers.make(function, **arguments)(completion, PROBLEM).score == score


def test_what_was_settled_is_in_the_convention() -> None:
    settled = verifiers.make(twice, reference="answer", solution="s")
    assert convention_of(settled) == "twice(completion, answer=reference, solution='s')"
    assert "level=column or 0" in str(convention_of(verifiers.make(lambda completion, answer, level=0: level)))


def test_arguments_name_parameters_that_exist() -> None:
    with pytest.raises(UnknownNameError, match=r"unknown parameter of unknown for reference= 'z'\. Known: x, y"):
        verifiers.make(unknown, reference="z")
    with pytest.raises(UnknownArgumentError, match=r"'tolerance'.*Known: answer, completion,"):
        verifiers.make(twice, tolerance=1)


@pytest.mark.parametrize("name", ["expected", "label", "gt", "gold_answer", "truth"])
def test_the_reference_has_many_names(name: str) -> None:
    made: dict[str, Any] = {}
    exec(f"def f(response, {name}=None): return response == {name}", made)
    assert convention_of(verifiers.make(made["f"])) == f"f(response=completion, {name}=reference)"


@dataclasses.dataclass(frozen=True)
class Sum:
    numbers: tuple[int, ...]
    target: int


def test_a_structured_reference_is_a_mapping_and_its_fields_have_names() -> None:
    def equation(completions, target, **columns):
        return [float(str(total) in text) for text, total in zip(completions, target, strict=True)]

    def countdown(solution_str, ground_truth):
        return float(str(ground_truth["target"]) in solution_str and ground_truth["numbers"] == (1, 2))

    problem = Problem("p", "", Sum((1, 2), 3))
    assert verifiers.make(equation)("1+2 = 3", problem).score == 1
    assert verifiers.make(countdown)("1+2 = 3", problem).score == 1


def test_plurals_and_lists_of_references_get_a_list() -> None:
    def any_of(prediction, references):
        return any(prediction == reference for reference in references)

    def annotated(prediction, answer: list[str]):
        return prediction in answer

    def of_plain_list(prediction, answer: list):
        return prediction in answer

    for function in (any_of, annotated, of_plain_list):
        assert verifiers.make(function)("72", PROBLEM).score == 1
        assert verifiers.make(function)("7", PROBLEM).score == 0
        assert verifiers.make(function)("8", Problem("p", "", ["7", "8"])).score == 1


# The check before use


def of_last(wanted, answer):
    numbers = re.findall(r"\d+", answer)
    return bool(numbers) and numbers[-1] == wanted


def in_own_tags(completion, answer):
    return f"<SOLUTION>{answer}</SOLUTION>" in completion


def misread(completion, answer):
    return completion in answer


def failing(completion, **columns):
    return columns["labels"] == completion


def reversed_scores(completions, answer):
    return [float(gold in text) for text, gold in zip(completions, answer, strict=True)][::-1]


MIXED = ("weighted_sum", {"parts": {"right": misread, "form": format_reward}})


@pytest.mark.parametrize(
    ("verifier", "reference", "message"),
    [
        (of_last, "72", "completion and reference exchanged: read as of_last"),
        (misread, "72", "none of the first 2 problems above an empty completion: 0 and 1"),
        (in_own_tags, "72", "expects another format, confirm one of them"),
        (
            lambda completion, answer: float(completion == answer.strip()),
            72,
            "whose reference is 72, with AttributeError: 'int' object has no",
        ),
        (failing, "72", "KeyError: 'labels'"),  # refused even if it was confirmed
        (reversed_scores, "72", "when it is alone, but not beside one in a batch"),
        (
            lambda completion, answer, difficulty: True,
            "72",
            "column 'difficulty', which problem 'gsm8k/train/0' does not have",
        ),
        (MIXED, "72", r"misread\(completion, answer=reference\) scores"),
    ],
)
def test_a_reading_under_which_no_gold_scores_is_refused(verifier: Any, reference: object, message: str) -> None:
    name, arguments = verifier if isinstance(verifier, tuple) else (verifier, {})
    with pytest.raises(VerifierContractError, match=message):
        check_reading(verifiers.make(name, **arguments), [dataclasses.replace(PROBLEM, reference=reference)] * 2)


@pytest.mark.parametrize(
    ("function", "arguments", "answer_format", "warning"),
    [
        (of_last, {"reference": "answer"}, "ANSWER", "completion and reference exchanged"),
        (in_own_tags, {"reference": "answer"}, None, "scores the gold answer of none"),
        (lambda completion, answer: completion == answer == "72", {}, "ANSWER", "only 1 of the first 3 golds"),
    ],
)
def test_a_reading_that_was_confirmed_or_fits_some_is_a_warning(
    function: Any, arguments: Any, answer_format: str | None, warning: str, caplog: pytest.LogCaptureFixture
) -> None:
    others = [Problem(str(n), "", f"{n} apples") for n in range(2)] if not arguments else []
    assert check_reading(verifiers.make(function, **arguments), [PROBLEM, *others]) == answer_format
    assert warning in caplog.text


@pytest.mark.parametrize(
    ("function", "answer_format"),
    [
        (lambda text, answer: text == answer, "ANSWER"),
        (format_reward, "<think>\n\n</think>\n<answer>ANSWER</answer>"),
        (lambda completion: 1 / (1 + len(completion)), None),  # what takes no reference is not checked
        (with_problem, None),
    ],
)
def test_the_check_gives_the_format_in_which_golds_score(function: Any, answer_format: str | None) -> None:
    assert check_reading(verifiers.make(function), [PROBLEM]) == answer_format


def test_the_conventions_of_parts_stand_side_by_side_and_one_that_can_read_the_gold_is_enough() -> None:
    mixed = verifiers.make(MIXED[0], **MIXED[1])
    assert "misread(completion, answer=reference); format_reward(completions" in str(convention_of(mixed))
    assert check_reading(verifiers.make("first", parts={"right": misread, "math": "math"}), [PROBLEM]) is None


def test_an_environment_refuses_a_function_that_was_misread() -> None:
    with pytest.raises(VerifierContractError, match="scores the gold answer of none of the first 8 problems"):
        gym.make("rlvr/Addition-v0", verifier=misread)
    env: Any = gym.make("rlvr/Addition-v0", verifier=Grader())
    assert env.unwrapped.manifest["verifier_call"] == "Grader(response=completion, target=reference)"


def test_the_convention_is_said_once(caplog: pytest.LogCaptureFixture) -> None:
    def said_once(prediction, gold):
        return True

    for _ in range(2):
        verifiers.make(said_once)
    (record,) = caplog.records
    assert record.getMessage().endswith("said_once(prediction=completion, gold=reference)")

    def of_chats(completions, gold):
        return [chat[0]["content"] == right for chat, right in zip(completions, gold, strict=True)]

    verifiers.verify_batch(batched := verifiers.make(of_chats), ["72"], [PROBLEM])
    verifiers.verify_batch(batched, ["72"], [PROBLEM])
    verifiers.make(lambda completion, problem: True)
    (record,) = caplog.records[1:]
    assert record.getMessage().endswith(", with a list of messages each")


# Files


def test_a_function_is_named_by_its_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "sibling.py").write_text("RIGHT = '72'\n")
    code = "import sibling\ndef reward(completion, answer): return completion == answer == sibling.RIGHT\n"
    (tmp_path / "elsewhere" / "json.py").write_text(code)  # the name of a module that is loaded already
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    judge = verifiers.make("elsewhere/json.py:reward")
    assert judge("72", PROBLEM).score == 1
    with pytest.raises(UnknownNameError, match=r"there is no file elsewhere/jsons\.py"):
        verifiers.make("elsewhere/jsons.py:reward")


def turns_of(completion, dialogue):
    return {"score": float(len(dialogue)), "roles": [message.role for message in dialogue]}


def test_a_parameter_named_dialogue_gets_all_turns_and_no_strip_loses_them() -> None:
    said = (Message("assistant", "a"), Message("user", "b"), Message("assistant", " c "))
    verifier = verifiers.from_function(turns_of)
    problem = Problem("p", "", "c")
    assert verifier(Completion(" c ", said), problem).score == 3
    assert verifier("c", problem).score == 1  # one turn
    batched = verifiers.from_function(lambda completions, dialogues: [len(one) for one in dialogues])
    assert [verdict.score for verdict in batched.verify_batch([Completion("c", said), "c"], [problem] * 2)] == [3, 1]
