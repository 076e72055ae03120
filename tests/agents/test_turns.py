"""Episodes of several turns: what an interaction sees, pays, ends and breaks, and that threads change nothing."""

from __future__ import annotations

import pickle
import threading
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from agents import Episode, rollout
from rlvr_envs import ByteTokenizer, Reply, TokenEnv, TokenVectorEnv, Turn
from tests.agents.test_rollout import Scripted
from tests.envs.helpers import EOS, PROBLEMS, says, streams, text_tokens, visible
from verifiers import InvalidArgumentError, Message, Outcome, Problem, Verdict, dialogue_of

A, B = ord("a"), ord("b")


def single(**rules: Any) -> TokenEnv:
    return TokenEnv(streams(**{"max_inserted_tokens": 20, "max_new_tokens": 12, **rules}))


def count_and_echo(turns: Sequence[Turn], problem: Problem) -> Reply | None:
    """Answers with the number of the turn and all that was said; the third turn ends it."""
    said = "".join(turn.text for turn in turns)
    return says(f"{len(turns)}{said}", reward=len(said)) if len(turns) < 3 else Reply(reward=100.0, ends=True)


def test_an_interaction_sees_every_turn_pays_and_ends() -> None:
    env = single(interaction=count_and_echo, verifier=None)
    env.reset(options={"problem": 0})
    observation, reward, *_, info = env.step_many([A, EOS, B])
    assert visible(observation)[1:] == [A, EOS, *text_tokens("1a")]
    assert (reward, info["rewards"].tolist()) == (1.0, [0.0, 1.0])
    observation, reward, *_ = env.step_many([B, B, EOS])
    assert (visible(observation)[-4:], reward) == (text_tokens("2abb"), 3.0)
    observation, reward, terminated, truncated, info = env.step(EOS)
    assert (reward, terminated, truncated, "inserted" in info) == (100.0, True, False, False)


def test_a_turn_holds_its_tokens_its_text_and_what_it_was_answered() -> None:
    seen: list[Sequence[Turn]] = []

    def look(turns: Sequence[Turn], problem: Problem) -> Reply | None:
        seen.append(turns)
        return says("?") if len(turns) == 1 else None

    env = single(interaction=look)
    env.reset(options={"problem": 0})
    env.step_many([A, B, EOS])
    env.step_many([B, EOS])
    first, second = seen[1]
    assert (first.tokens.tolist(), first.text, first.reply) == ([A, B, EOS], "ab", (Message("user", "?"),))
    assert (second.tokens.tolist(), second.text, second.reply) == ([B, EOS], "b", ())
    assert seen[0][0].reply == ()


@pytest.mark.parametrize("rules", [{"max_turns": 1}, {"max_turns": 2}, {"max_new_tokens": 2}])
def test_an_episode_that_would_go_on_is_truncated_after_its_last_turn_and_paid(rules: dict[str, int]) -> None:
    env = single(interaction=count_and_echo, verifier=None, **rules)
    env.reset(options={"problem": 0})
    for turn in range(1, rules.get("max_turns", 1) + 1):
        _, reward, terminated, truncated, info = env.step_many([A, EOS])
        last = turn == rules.get("max_turns", 1)
        assert (reward, terminated, truncated, "inserted" in info) == (turn, False, last, not last)


def test_the_verifier_may_ask_for_the_whole_dialogue() -> None:
    def judge(completion: str, problem: Problem) -> Verdict:
        said = dialogue_of(pickle.loads(pickle.dumps(completion)))
        return Verdict(len(said), Outcome.SCORED, completion, {"roles": [message.role for message in said]})

    env = single(interaction=lambda turns, problem: says("?") if len(turns) == 1 else None, verifier=judge)
    env.reset(options={"problem": 0})
    env.step_many([A, EOS])
    _, reward, _, _, info = env.step_many([B, EOS])
    assert (reward, info["completion"], info["verdict"].answer) == (3.0, "b", "b")
    assert info["verdict"].detail["roles"] == ["assistant", "user", "assistant"]
    assert dialogue_of("b") == (Message("assistant", "b"),)


def broken(turns: Sequence[Turn], problem: Problem) -> Reply | None:
    if problem.id == "p1":
        raise RuntimeError("the tool died")
    return says("ok") if len(turns) == 1 else None


@pytest.mark.parametrize("verification", ["sync", "deferred"])
def test_an_interaction_that_breaks_ends_its_episode_like_a_broken_verifier_and_no_other(verification: str) -> None:
    env = TokenVectorEnv(streams(3, interaction=broken, max_inserted_tokens=8, verification=verification))
    episodes = [Episode(problem, problem, problem) for problem in range(3)]
    trajectories = rollout(env, Scripted([A, EOS, 0, 0, A, EOS]), episodes)
    assert [trajectory.errored for trajectory in trajectories] == [False, True, False]
    verdict = trajectories[1].verdict
    assert verdict is not None
    assert verdict.detail["error"] == "RuntimeError: the tool died"
    assert np.isnan(trajectories[1].score)
    assert (trajectories[1].terminated, trajectories[1].truncated) == (False, True)
    env.close()


def test_what_is_no_reply_is_an_error_that_changes_nothing() -> None:
    env = single(interaction=lambda turns, problem: "more")
    env.reset(options={"problem": 0})
    with pytest.raises(InvalidArgumentError, match=r"must return a rlvr_envs.Reply, or None to end the episode; got"):
        env.step_many([A, EOS])
    observation, *_ = env.step(B)
    assert visible(observation) == [ord("Q"), B]


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"messages": "text"}, "a reply's messages must be a tuple"),
        ({"messages": ("text",)}, "a reply's messages must be a tuple"),
        ({"reward": float("nan")}, "a reply's reward must be a finite number, got nan"),
    ],
)
def test_a_reply_is_checked(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        Reply(**fields)


def test_rows_are_answered_at_the_same_time() -> None:
    together = threading.Barrier(8, timeout=30)

    def meet(turns: Sequence[Turn], problem: Problem) -> Reply | None:
        together.wait()  # passes only if all eight rows are being answered
        return None

    env = TokenVectorEnv(streams(8, interaction=meet, max_inserted_tokens=8))
    env.reset(seed=0)
    _, _, terminated, _, _ = env.step(np.full(8, EOS))
    assert terminated.all()
    env.close()


def test_deferred_answers_let_other_rows_go_on() -> None:
    answered = threading.Event()

    def wait(turns: Sequence[Turn], problem: Problem) -> Reply | None:
        assert answered.wait(30)
        return says("!", reward=0.5)

    env = TokenVectorEnv(streams(2, interaction=wait, max_inserted_tokens=8, verification="deferred"))
    env.reset(seed=0)
    observation, *_, info = env.step([EOS, A])
    assert info["pending"].tolist() == [True, False]
    _, *_, info = env.step([A, B])
    assert info["consumed"].tolist() == [0, 1]
    with pytest.raises(InvalidArgumentError, match="never reset or awaits its verdict"):
        env.get_state(0)
    answered.set()
    observation, reward, _, _, info = env.wait()
    assert (info["inserted"].tolist(), reward.tolist()) == ([1, 0], [0.5, 0.0])
    assert visible(observation, 0)[-2:] == [EOS, ord("!")]
    assert "pending" not in info
    env.close()


def test_a_wait_for_everything_goes_on_to_the_verdicts_of_what_ended() -> None:
    rules: dict[str, Any] = {"interaction": lambda turns, problem: None, "verification": "deferred"}
    env = TokenVectorEnv(streams(2, max_inserted_tokens=8, **rules))
    env.reset(seed=0)
    env.step([EOS, A])
    _, _, terminated, _, info = env.wait()
    assert terminated.tolist() == [True, False]
    assert info["verdict"][0] is not None
    env.close()


@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_threads_chunks_and_batches_change_nothing(data: st.DataObject) -> None:
    script = data.draw(st.lists(st.sampled_from([A, B, EOS]), min_size=16, max_size=16))
    width = data.draw(st.integers(1, 5))
    rows = data.draw(st.integers(1, 3))
    episodes = [Episode(index % len(PROBLEMS), index, index) for index in range(4)]
    rules: dict[str, Any] = {"interaction": count_and_echo, "max_new_tokens": 8, "max_turns": 2}
    rules["max_inserted_tokens"] = 12
    plain = rollout(TokenVectorEnv(streams(1, **rules)), Scripted(script, 1), episodes)
    other = TokenVectorEnv(streams(rows, verification="deferred", **rules))
    for one, two in zip(plain, rollout(other, Scripted(script, width), episodes), strict=True):
        assert one.tokens.tolist() == two.tokens.tolist()
        assert one.policy_mask.tolist() == two.policy_mask.tolist()
        assert one.rewards.tolist() == two.rewards.tolist()
        assert (one.terminated, one.truncated, one.completion) == (two.terminated, two.truncated, two.completion)
    other.close()


def test_a_fork_and_a_restored_state_know_the_turns_before() -> None:
    rules: dict[str, Any] = {"interaction": count_and_echo, "verifier": None}
    env = TokenVectorEnv(streams(2, max_inserted_tokens=20, max_new_tokens=12, **rules))
    env.reset(seed=0, options={"problems": np.array([0, 1])})
    env.step_many([[A, EOS], [B, EOS]], [2, 2])
    state = pickle.loads(pickle.dumps(env.get_state(0)))
    env.fork(0, [1])
    observation, reward, *_ = env.step_many([[B, EOS], [B, EOS]], [2, 2])
    assert visible(observation, 0) == visible(observation, 1)
    assert reward.tolist() == [2.0, 2.0]
    env.set_state(1, state)
    observation, *_ = env.step_many([[B, EOS], [B, EOS]], [0, 2])
    assert visible(observation, 1) == visible(observation, 0)


def test_a_long_reply_is_cut_and_the_episode_goes_on() -> None:
    env = single(interaction=lambda turns, problem: says("x" * 50), max_inserted_tokens=40, tokenizer=ByteTokenizer())
    env.reset(options={"problem": 0})
    observation, _, terminated, truncated, info = env.step_many([A, EOS])
    assert (terminated, truncated) == (False, False)
    said = bytes(visible(observation)[3:]).decode()
    assert said == f"{'x' * (said.count('x'))} [cut: {50 - said.count('x')} of 50 tokens]"
    assert info["inserted"] == len(said) <= 40
    _, _, terminated, truncated, info = env.step_many([A, EOS])  # there is no room left for another
    assert (terminated, truncated, info["completion"]) == (False, True, "a")
