"""Long dialogues: summed up by the policy, or without old results, and answered as if they were whole."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import gymnasium
import numpy as np
import pytest

import rlvr_envs
from rlvr_envs import Reply, Turn
from rlvr_envs.contexts import HEADING, NOTE, REQUEST, DropResults, Summarize, SummaryRequest
from verifiers import InvalidArgumentError, Message, Problem, ToolMessage

pytest.importorskip("jsonschema")

PROBLEM = Problem("p", "Why?", "because")


ASKED = SummaryRequest("user", REQUEST)


def said(text: str) -> Message:
    return Message("user", text)


def turn(text: str, *reply: Message, seen: int = 0, context: Any = None) -> Turn:
    return Turn(np.zeros(1, dtype=np.int32), text, reply=reply, context_tokens=seen, context=context)


class Numbered:
    """Answers with the number and the text of every turn it sees; the fourth ends the episode."""

    def __call__(self, turns: Sequence[Turn], problem: Problem) -> Reply | None:
        seen = " ".join([f"{one.text}{''.join(message.content for message in one.reply)}" for one in turns])
        return None if len(turns) == 4 else Reply((said(f"[{seen}]"),), reward=len(turns))


def test_a_summary_is_asked_for_and_then_stands_below_the_problem() -> None:
    interaction = Summarize(Numbered(), after_tokens=10)
    first = turn("one", seen=10)
    assert interaction([first], PROBLEM) == Reply((said("[one]"),), 1.0)
    first, second = turn("one", said("[one]"), seen=10), turn("two", seen=11)
    asks = Reply((said("[one[one] two]"), ASKED), 2.0)
    assert interaction([first, second], PROBLEM) == asks
    asked = turn("two", *asks.messages, seen=11)
    summary = turn(" so far ", seen=40)
    begins = Reply(context=(said(f"Why?\n\n{HEADING}\nso far"),))
    assert interaction([first, asked, summary], PROBLEM) == begins


def test_what_answers_never_sees_summaries() -> None:
    interaction = Summarize(Numbered(), after_tokens=10)
    turns = [turn("one", said("[one]"), ASKED, seen=11), turn("sum", seen=20, context=(said("x"),))]
    assert interaction([*turns, turn("two", seen=5)], PROBLEM) == Reply((said("[one[one] two]"),), 2.0)
    third = Reply((said("[one[one] two! three]"), ASKED), 3.0)
    assert interaction([*turns, turn("two", said("!"), seen=5), turn("three", seen=11)], PROBLEM) == third
    more = [turn("two", said("!")), turn("three", said("?"), ASKED), turn("sum"), turn("four", seen=99)]
    assert interaction([*turns, *more], PROBLEM) is None


def test_a_chat_gets_the_summary_below_its_last_user_message() -> None:
    chat = (Message("system", "Be brief."), said("Hi."), Message("assistant", "Hello."), said("Why?"))
    interaction = Summarize(Numbered(), after_tokens=1)
    reply = interaction([turn("x", ASKED), turn("y")], Problem("p", chat, ""))
    assert reply == Reply(context=(*chat[:3], said(f"Why?\n\n{HEADING}\ny")))


def test_results_are_dropped_but_for_the_latest_and_only_where_there_are_more() -> None:
    def answer(turns: Sequence[Turn], problem: Problem) -> Reply | None:
        return Reply((ToolMessage("tool", f"result {len(turns)}", "t"), said("Go on.")))

    def result(number: int) -> ToolMessage:
        return ToolMessage("tool", f"result {number}", "t")

    interaction = DropResults(answer, after_tokens=10, keep=1)
    turns = [turn(str(number), result(number), said("Go on."), seen=10) for number in (1, 2)]
    assert interaction([*turns, turn("3", seen=10)], PROBLEM).context is None  # type: ignore[union-attr]
    assert interaction([turn("1", seen=99)], PROBLEM).context is None  # type: ignore[union-attr]
    assert interaction([turns[0], turn("2", seen=99)], PROBLEM).context is None  # type: ignore[union-attr]
    last = turn("3", seen=11)
    reply = interaction([*turns, last], PROBLEM)
    note = ToolMessage("tool", NOTE, "t")
    context = (said("Why?"), turns[0], note, said("Go on."), turns[1], result(2), said("Go on."), last)
    assert reply == Reply((result(3), said("Go on.")), context=context)
    cut = turn("3", result(3), seen=11, context=context)
    again = interaction([*turns, cut, turn("4", seen=12)], PROBLEM)
    assert again is not None
    assert again.context is not None
    assert [item.content for item in again.context if isinstance(item, ToolMessage)] == [NOTE, NOTE, "result 3"]


def number(text: str) -> str:
    """Says a number of characters."""
    return "x" * int(text)


def play(env: Any, *turns: str) -> tuple[str, list[bool]]:
    env.reset(seed=0)
    cuts = []
    for text in turns:
        observation, *_, info = env.step_many(env.tokenizer.encode(text))
        if "inserted" not in info:
            observation, *_, info = env.step(env.tokenizer.eos_token)
        cuts.append("new_context" in info)
    return rlvr_envs.decode(env.tokenizer, observation["tokens"][: observation["length"][0]]), cuts


def test_any_environment_with_tools_can_sum_up() -> None:
    env: Any = gymnasium.make(
        "rlvr/Addition-v0", tools=[number], summarize_after=150, max_context_tokens=600, max_new_tokens=900
    ).unwrapped
    env.reset(seed=0)
    prompt = env.streams.rules.render_prompt(env.streams.problem(0))
    text, cuts = play(env, "<tool>99</tool>", "<tool>20</tool>", "Twice.", "<tool>3</tool>")
    problem = env.streams.problem(0).prompt
    assert cuts == [False, False, True, False]
    assert text == prompt.replace(problem, f"{problem}\n\n{HEADING}\nTwice.") + "<tool>3</tool><result>xxx</result>"
    assert env.observation_space["tokens"].shape == (600,)
    assert env.manifest["context"] == {"max_context_tokens": 600, "summarize_after": 150}
    assert env.manifest["turns"]["interaction"] == "rlvr_envs.tools.calls.ToolInteraction"


def test_plain_text_between_chat_templates_is_refused() -> None:
    pytest.importorskip("transformers")
    from tests.dialogue.templates import tokenizer_of

    with pytest.raises(InvalidArgumentError, match="dialogue='plain' can't put a problem again"):
        gymnasium.make(
            "rlvr/Addition-v0",
            tokenizer=tokenizer_of("chatml"),
            tools=["calculator"],
            dialogue="plain",
            summarize_after=10,
        )


HELD = {"summarize_after": 100, "max_new_tokens": 60}
"""The request has 222 bytes, the frame of an empty result 17; the policy may write 59 tokens after its first."""


def test_a_context_that_holds_a_summary_is_large_enough() -> None:
    gymnasium.make("rlvr/Addition-v0", tools="calculator", **HELD, max_context_tokens=399)


@pytest.mark.parametrize(
    ("settings", "match"),
    [
        ({"summarize_after": 5, "tools": None}, r"^summarize_after is for episodes of several turns: give tools="),
        ({"summarize_after": 5, "drop_results_after": 5}, "exclude each other: give one of the two"),
        ({"summarize_after": 0}, r"^summarize_after must be a whole number of at least 1, got 0"),
        ({"drop_results_after": -1}, r"^drop_results_after must be a whole number of at least 1, got -1"),
        (
            {"summarize_after": 900, "max_context_tokens": 900},
            r"^summarize_after must be less than max_context_tokens=900",
        ),
        ({"max_context_tokens": 2, "tools": None}, "max_context_tokens must be more than max_prompt_tokens"),
        *(
            (
                {**HELD, "max_context_tokens": most},
                "^summarize_after=100 leads to no summary: that takes 399 tokens in view, 101 before the request, 239 for "
                f"this .* Raise max_context_tokens from {most} to 399, or lower summarize_after$",
            )
            for most in (101, 398)
        ),
        (
            {"summarize_after": 5000, "max_new_tokens": 50},
            r"^summarize_after=5000 leads to no summary: that takes 5289 .* Raise max_new_tokens=50 or "
            r"max_inserted_tokens=1024, with which a dialogue has at most 1080, or lower",
        ),
        (
            {"summarize_after": 50, "max_inserted_tokens": 238},
            r"^max_inserted_tokens=238 has no room .* takes 239 tokens",
        ),
        (
            {"summarize_after": 3},
            r"^summarize_after=3 asks for a summary after every turn.*fewer than 4. Give more than",
        ),
        ({"summarize_after": 50, "max_turns": 2}, r"^max_turns must be at least 3 with summarize_after.*got 2$"),
        ({"drop_results_after": 50, "max_turns": 3}, r"^max_turns must be at least 4 with drop_results_after.*got 3$"),
        (
            {"drop_results_after": 1158},
            r"^drop_results_after=1158 drops nothing.*Raise max_new_tokens=128 or max_inserted_tokens=1024.* at most 1158",
        ),
        (
            {"drop_results_after": 10, "tools": None, "interaction": lambda turns, problem: None},
            r"^drop_results_after drops the results of tools: give tools=, too",
        ),
    ],
)
def test_what_does_not_fit_and_what_never_or_always_happens_is_refused(settings: dict[str, Any], match: str) -> None:
    with pytest.raises(InvalidArgumentError, match=match):
        gymnasium.make("rlvr/Addition-v0", **{"tools": "calculator", **settings})


def test_nothing_to_keep_and_nothing_to_ask_for_are_refused() -> None:
    with pytest.raises(InvalidArgumentError, match="keep must be at least 0, got -1"):
        DropResults(Numbered(), 1, keep=-1)
    with pytest.raises(InvalidArgumentError, match="needs a request"):
        Summarize(Numbered(), 1, request="")
