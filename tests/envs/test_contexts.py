"""Replies that begin a new context: what is seen, counted, captured and refused, by hand."""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from rlvr_envs import ByteTokenizer, Reply, TokenEnv, TokenVectorEnv, Turn
from rlvr_envs.contexts import SummaryRequest
from rlvr_envs.dialogue import PlainDialogue
from tests.envs.helpers import EOS, says, streams, text_tokens, vector_env, visible
from verifiers import InvalidArgumentError, Message, Outcome, Problem, Verdict, dialogue_of

A, B = text_tokens("ab")
TURN = Turn(np.array([A, EOS], dtype=np.int32), "a")


def said(text: str) -> Message:
    return Message("user", text)


def start_again(turns: Sequence[Turn], problem: Problem) -> Reply | None:
    """A new context after the first turn, an answer after the second, and an end."""
    if len(turns) == 1:
        return Reply(reward=0.5, context=(said(f"{problem.prompt}:{turns[0].text}"),))
    return says("!") if len(turns) == 2 else None


def single(**rules: Any) -> TokenEnv:
    given = {"interaction": start_again, "max_inserted_tokens": 8, "max_new_tokens": 8, **rules}
    return TokenEnv(streams(**given))


def test_a_turn_that_fills_the_context_is_truncated_and_one_that_ends_with_it_goes_on() -> None:
    rules = {"max_prompt_tokens": 4, "max_context_tokens": 6, "max_new_tokens": 20}
    env = single(**rules)
    env.reset(options={"problem": 1})
    assert env.observation_space["tokens"].shape == (6,)  # type: ignore[index] # a Dict space
    _, _, _, truncated, info = env.step_many([A, A, A, A, A])
    assert (truncated, info["consumed"]) == (True, 4)
    env.reset(options={"problem": 1})
    observation, _, _, truncated, info = env.step_many([A, A, A, EOS])
    assert (truncated, info["consumed"], visible(observation)) == (True, 4, [*text_tokens("QQ"), A, A, A, EOS])
    env = single(**rules, interaction=lambda turns, problem: Reply(context=(said("xyz"),)))
    env.reset(options={"problem": 1})
    for _ in range(4):
        observation, _, _, truncated, _ = env.step_many([A, A, EOS])
        assert (truncated, visible(observation)) == (False, text_tokens("xyz"))


@pytest.mark.parametrize("size", [13, 14])
def test_a_context_that_leaves_no_room_for_an_answer_truncates_the_episode(size: int) -> None:
    env = single(
        interaction=lambda turns, problem: Reply(context=(said("x" * size),)),
        max_prompt_tokens=4,
        max_inserted_tokens=4,
        max_new_tokens=6,
    )
    env.reset(options={"problem": 0})
    observation, _, terminated, truncated, info = env.step_many([A, EOS])
    fits = size < 14
    assert (terminated, truncated, "inserted" in info) == (False, not fits, fits)
    assert visible(observation) == ([*[ord("x")] * size] if fits else [*text_tokens("Q"), A, EOS])


def test_turns_in_a_context_keep_their_tokens_and_what_is_said_stays_text() -> None:
    def forget(turns: Sequence[Turn], problem: Problem) -> Reply | None:
        if len(turns) < 3:
            return says(f"<{len(turns)}>")
        return Reply((said("now"),), context=(said("Q"), turns[0], said("-"), *turns[1:]))

    env = single(interaction=forget, max_inserted_tokens=20, max_new_tokens=20)
    env.reset(options={"problem": 0})
    odd = 0xFF  # no text has this byte, so that it could only be lost by encoding anew
    for token in (odd, A, B):
        observation, *_, info = env.step_many([token, EOS])
    assert visible(observation) == [ord("Q"), odd, EOS, ord("-"), A, EOS, B, EOS, *text_tokens("now")]
    assert info["inserted"] == len(visible(observation))


def test_the_verifier_and_later_turns_know_what_was_said() -> None:
    seen: list[Any] = []

    def look(turns: Sequence[Turn], problem: Problem) -> Reply | None:
        seen.append(tuple(turns))
        return Reply((said("!"),), context=(said("new"),)) if len(turns) == 1 else None

    def judge(completion: str, problem: Problem) -> Verdict:
        seen.append([message.content for message in dialogue_of(completion)])
        return Verdict(1.0, Outcome.SCORED, completion)

    env = single(interaction=look, verifier=judge)
    env.reset(options={"problem": 0})
    env.step_many([A, EOS])
    env.step_many([B, EOS])
    _, (first, second), dialogue = seen
    assert dialogue == ["a", "!", "b"]
    assert (first.reply, first.context) == ((said("!"),), (said("new"),))
    assert (first.context_tokens, second.context_tokens, second.context) == (3, len("new\n\n!") + 2, None)


def test_a_state_after_a_cut_is_captured_set_and_forked() -> None:
    env = vector_env(3, interaction=start_again, max_inserted_tokens=8, max_new_tokens=8)
    env.reset(seed=0, options={"problems": np.array([1, 2, 2])})
    env.step_many(np.array([[A, EOS]] * 3), np.array([2, 0, 0]))
    state = pickle.loads(pickle.dumps(env.get_state(0)))
    env.fork(0, [1])
    other = TokenVectorEnv(streams(1, interaction=start_again, max_inserted_tokens=8, max_new_tokens=8))
    other.reset(seed=5)
    other.set_state(0, state)
    for token in (B, EOS, B, B, EOS):
        observation, reward, terminated, *_ = env.step(np.array([token] * 3))
        again, reward_again, terminated_again, *_ = other.step(np.array([token]))
        assert visible(observation, 0) == visible(observation, 1) == visible(again, 0)
        assert reward[0] == reward[1] == reward_again[0]
        assert terminated[0] == terminated[1] == terminated_again[0]
    assert terminated[0]


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        ({"context": (said("x"),), "ends": True}, "a reply that ends the episode has no context"),
        ({"context": ()}, r"a reply's context must be a tuple .* got \(\) before \(\)"),
        ({"context": (said("x"), TURN)}, "ends with one"),
        ({"context": (TURN, said("x"))}, "begins with a message"),
        ({"context": ("x",)}, "must be a tuple of verifiers.Message"),
    ],
)
def test_a_context_that_no_policy_could_answer_is_refused(arguments: Any, match: str) -> None:
    with pytest.raises(InvalidArgumentError, match=match):
        Reply(**arguments)


def test_a_context_without_tokens_or_in_a_role_that_a_format_lacks_breaks_the_episode() -> None:
    """As any fault of an interaction: excluded from learning, counted, and the reason given."""

    class NoSystem(PlainDialogue):
        def open(self, messages: Sequence[Message]) -> Any:
            raise InvalidArgumentError("can't render the roles system")

    empty = single(interaction=lambda turns, problem: Reply(context=(said(""),)))
    role = single(
        interaction=lambda turns, problem: Reply(context=(Message("system", "x"),)), dialogue=NoSystem(ByteTokenizer())
    )
    for env, reason in ((empty, "the context of a reply has no tokens"), (role, "can't render the roles system")):
        env.reset(options={"problem": 0})
        *_, terminated, truncated, info = env.step(EOS)
        assert (terminated, truncated, info["verdict"].outcome) == (False, True, Outcome.VERIFIER_ERROR)
        assert reason in str(info["verdict"].detail)


@pytest.mark.parametrize(("size", "asks"), [(30, True), (48, True), (49, False)])
def test_a_request_for_a_summary_takes_the_room_of_the_next_turn_before_it_costs_the_episode(
    size: int, asks: bool
) -> None:
    """A quarter of the context is kept free for the next turn, unless the request would then be cut."""
    env = single(
        interaction=lambda turns, problem: Reply((SummaryRequest("user", "x" * size),)),
        max_prompt_tokens=4,
        max_context_tokens=52,
        max_new_tokens=40,
        max_inserted_tokens=100,
    )
    env.reset(options={"problem": 0})
    observation, _, terminated, truncated, info = env.step_many([A, EOS])
    assert (terminated, truncated, info.get("inserted")) == (False, not asks, size if asks else None)
    assert visible(observation).count(ord("x")) == (size if asks else 0)
