"""Texts and prompts as other libraries write them."""

from __future__ import annotations

import pytest

from agents.adapters.problems import LoadedTask, before_stop, load_task, prompt_of, text_of
from rlvr_envs import ChatPrompt
from verifiers import InvalidArgumentError, Message


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
