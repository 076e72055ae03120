"""What other libraries call, called as they call it: rewards of TRL and verl, the layout of OpenRLHF, and texts."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from agents.adapters import trl
from agents.adapters.openrlhf import completions_of, problems_of, reply
from agents.adapters.problems import LoadedTask, before_stop, load_task, prompt_of, text_of
from agents.adapters.verl import compute_score
from rlvr_envs import ChatPrompt, TaskEnv, TaskSpec
from tests.adapters.broken import exactly
from verifiers import (
    InvalidArgumentError,
    Message,
    Outcome,
    Problem,
    UnknownArgumentError,
    Verdict,
    VerifierFailureError,
    from_function,
)

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
    _, reward = trl.environment("tests.adapters.test_rewards:Logs")
    assert reward(prompts=[""], completions=["A:\n\nUser: root"], problem=[0]) == [1.0]


SEEN: list[Problem] = []


def noting(completion: str, problem: Problem) -> bool:
    SEEN.append(problem)
    return True


def test_every_result_has_the_same_keys() -> None:
    right = compute_score(data_source="ours", solution_str=r"\boxed{\frac12}", ground_truth="0.5", extra_info=None)
    assert right == {"score": 1.0, "acc": True, "outcome": "correct", "pred": r"\frac12"}
    none = compute_score("ours", "", "0.5", {"index": 3})
    assert none == {"score": 0.0, "acc": False, "outcome": "no_answer", "pred": ""}


def test_settings_choose_the_verifier() -> None:
    settings = {"verifier": "exact", "verifier_args": {"casefold": True}}
    assert compute_score("ours", "YES", "yes", {}, reward_router_address="http://x", **settings)["score"] == 1.0
    assert compute_score("ours", "YES", "yes", {}, verifier="exact")["score"] == 0.0


def test_the_row_is_the_problem() -> None:
    row = {"index": 3, "question": "2+2?"}
    compute_score("gsm8k", "4", np.array(["4", "four"]), row, verifier="tests.adapters.test_rewards:noting")
    assert SEEN.pop() == Problem("gsm8k/3", "2+2?", ["4", "four"], row)


def test_a_verifier_that_breaks_stops_the_run() -> None:
    with pytest.raises(VerifierFailureError, match="verl can't leave one out: ConnectionError: the pool died"):
        compute_score("ours", "break", "4", {}, verifier="tests.adapters.broken:exactly")


def test_a_completion_is_what_follows_the_prompt_up_to_the_first_end_token() -> None:
    assert completions_of(["ab<e>", "abc<e><pad><pad>", "a"], ["a", "ab", "a"], ["<pad>", "<e>"]) == ["b", "c", ""]
    assert completions_of(["a4</s>"], ["a"]) == ["4</s>"]  # only what is named ends a completion


def test_a_query_without_its_prompt_is_refused() -> None:
    with pytest.raises(InvalidArgumentError, match="query 1 does not begin with its prompt"):
        completions_of(["a4", "4"], ["a", "a"])
    with pytest.raises(InvalidArgumentError, match="1 queries came with 0 prompts"):
        completions_of(["a4"], [])


def test_labels_are_references() -> None:
    assert problems_of(["2+2="], ["4"]) == [Problem("", "2+2=", "4")]
    with pytest.raises(InvalidArgumentError, match="1 prompts came with 2 labels"):
        problems_of(["2+2="], ["4", "5"])


def test_the_reply() -> None:
    verdicts = [Verdict.of(Outcome.CORRECT, "4"), Verdict.of(Outcome.NO_ANSWER), Verdict(0.5, Outcome.SCORED)]
    scores = [1.0, 0.0, 0.5]
    assert reply(verdicts) == {"rewards": scores, "scores": scores, "extra_logs": {"answered": [1.0, 0.0, 1.0]}}


def test_the_last_message_is_what_is_judged() -> None:
    tool = [{"role": "assistant", "content": "4?"}, {"role": "tool", "content": "5"}]
    assert text_of("4") == "4"
    assert text_of([*tool, {"role": "assistant", "content": "6"}]) == "6"
    assert text_of([{"role": "assistant", "content": None, "tool_calls": []}]) == ""
    parts = [{"type": "text", "text": "4"}, {"type": "image"}, {"type": "text", "text": "2"}]
    assert text_of([{"role": "assistant", "content": parts}]) == "42"


@pytest.mark.parametrize("completion", [None, 4, [], [4], ["4"], [{"role": "assistant", "content": 4}]])
def test_what_is_no_completion_is_refused(completion: object) -> None:
    with pytest.raises(InvalidArgumentError, match="must be text or a list"):
        text_of(completion)


def test_a_completion_ends_before_the_first_stop_string() -> None:
    assert before_stop("4\n\nQ: 5\nA: 6", ["\nA:", "\n\nQ:"]) == "4"
    assert before_stop("4", ["Q"]) == before_stop("4", []) == "4"


def test_prompts() -> None:
    assert prompt_of("2+2=") == "2+2="
    assert prompt_of([{"role": "user", "content": "2+2="}]) == (Message("user", "2+2="),)
    with pytest.raises(InvalidArgumentError, match="a prompt must be text"):
        prompt_of([4])


def test_a_task_is_asked_as_its_environment_asks() -> None:
    task = load_task("Addition", "test", size=2)
    assert len(task.problems) == 2
    sum_of = str(task.problems[0].prompt).removesuffix("=")
    assert task.messages(0)[0]["content"].startswith(f"What is {sum_of}?\n\nReason step by step")
    assert task.verifier_spec == ("numeric", {})
    plain = load_task("Addition", "test", chat=False, size=2)
    assert plain.messages(0) == [{"role": "user", "content": plain.text(0)}]
    assert plain.text(0) == task.problems[0].prompt
    assert plain.verifier_spec == ("numeric", {"whole": True})
    chat = LoadedTask(task.problems, task.verifier, ChatPrompt("{problem}?", system="Add."), task.verifier_spec, "test")
    assert chat.messages(1) == [
        {"role": "system", "content": "Add."},
        {"role": "user", "content": f"What is {str(task.problems[1].prompt).removesuffix('=')}??"},
    ]


def test_an_environment_of_several_turns_is_refused() -> None:
    with pytest.raises(InvalidArgumentError, match="GuessNumber has several turns"):
        load_task("GuessNumber")
    assert load_task("Maze").split == "train"  # it has rules of its own, in one turn
