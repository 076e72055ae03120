"""TRL's reward functions, called as its trainers call them."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from agents.adapters import trl
from agents.adapters.problems import load_task
from rlvr_envs import TaskEnv, TaskSpec
from tests.adapters.broken import exactly
from verifiers import Message, Problem, UnknownArgumentError, from_function

PROMPTS = ["2+2=", "1+1=", "0+1="]


def test_a_completion_that_can_not_be_judged_has_no_reward() -> None:
    logged: list[tuple[str, float]] = []
    reward = trl.reward_function(from_function(exactly), name="exact")
    rewards = reward(
        prompts=PROMPTS,
        completions=["4", "break", "0"],
        completion_ids=[[1], [2], [3]],
        answer=["4", "2", "1"],
        trainer_state=object(),
        log_metric=lambda *metric: logged.append(metric),
    )
    assert rewards == [1.0, None, 0.0]
    assert logged == [("verifier_errors/exact", 1 / 3)]
    assert getattr(reward, "__name__", None) == "exact"


def test_the_problem_has_the_row() -> None:
    seen: list[Problem] = []
    reward = trl.reward_function(lambda completion, problem: bool(seen.append(problem)), reference="gold")
    reward(
        prompts=[[{"role": "user", "content": "2+2="}]],
        completions=[[{"role": "assistant", "content": "4"}]],
        completion_ids=[[1]],
        gold=["4"],
        id=[7],
        level=["easy"],
    )
    assert seen == [Problem("7", (Message("user", "2+2="),), "4", {"gold": "4", "id": 7, "level": "easy"})]


def test_a_missing_column_is_named_with_those_there_are() -> None:
    with pytest.raises(UnknownArgumentError, match=r"no column 'answer'; it has \['gold'\]"):
        trl.reward_function("exact")(prompts=["2+2="], completions=["4"], gold=["4"])


def test_arguments_are_the_verifiers_which_judges_up_to_a_stop_string() -> None:
    reward = trl.reward_function("exact", casefold=True, stop=["\n\n"])
    assert reward(prompts=["?"], completions=["YES\n\nQ: 5"], answer=["yes"]) == [1.0]


def test_none_of_one_is_none_of_all() -> None:
    calls: list[Any] = []

    def length(completions: list[str], **columns: Any) -> list[float | None]:
        calls.append(completions)
        return [None if text == "0" else float(len(text)) for text in completions]

    first, second = trl.all_or_none(trl.reward_function(from_function(exactly), name="exact"), length)
    assert (first.__name__, second.__name__) == ("exact", "length")
    completions = ["4", "break", "0"]
    columns = {"prompts": PROMPTS, "completions": completions, "answer": ["4", "2", "1"]}
    assert first(**columns) == [1.0, None, None]
    assert second(**columns) == [1.0, None, None]
    assert len(calls) == 1
    assert second(**columns | {"completions": ["44", "2", "1"]}) == [2.0, 1.0, 1.0]  # another batch
    assert first(**columns | {"completions": ["44", "2", "1"]}) == [0.0, 1.0, 1.0]


def test_a_length_is_that_of_what_was_said_and_who_needs_messages_gets_them() -> None:
    def length(completions: list[str], **columns: Any) -> list[float | None]:
        return [-len(text) / 100 for text in completions]

    def roles(completions: list[Any], **columns: Any) -> list[float | None]:
        return [float(turns[-1]["role"] == "assistant") for turns in completions]

    chats = [[{"role": "assistant", "content": text}] for text in ("4", "four")]
    by_length, by_role = trl.all_or_none(length, roles)
    assert by_length(completions=chats, prompts=["", ""]) == [-0.01, -0.04]
    assert by_role(completions=chats, prompts=["", ""]) == [1.0, 1.0]


@pytest.mark.parametrize("template", [None, "{{ messages }}"])
def test_a_model_without_a_chat_template_is_asked_in_text(template: str | None) -> None:
    pytest.importorskip("datasets")
    rows, reward = trl.environment("Addition", "test", size=3, tokenizer=SimpleNamespace(chat_template=template))
    task = load_task("Addition", "test", chat=template is not None, size=3)
    assert list(rows["prompt"]) == [task.messages(index) if template else task.text(index) for index in range(3)]
    assert reward(prompts=[""], completions=[str(task.problems[2].reference)], problem=[2]) == [1.0]


class Logs(TaskEnv):
    """One chat, whose answer looks like another turn of the plain form."""

    task = TaskSpec(
        load=lambda split: [Problem("0", "Write a log.", "A:\n\nUser: root")],
        sizes={"train": 1},
        source="made",
        verifier=("exact", {}),
        prompt="chat",
        max_new_tokens=8,
    )


def test_an_answer_in_a_chat_is_judged_whole() -> None:
    pytest.importorskip("datasets")
    _, reward = trl.environment("tests.adapters.test_trl:Logs")
    assert reward(prompts=[""], completions=["A:\n\nUser: root"], problem=[0]) == [1.0]
