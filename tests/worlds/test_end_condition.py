"""Episodes that are over by themselves: terminated, never truncated, and the same at any width."""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from rlvr_envs import FixedActions, Reply, TokenEnv, Turn
from tests.envs.helpers import EOS, says, streams, text_tokens, vector_env, visible
from verifiers import IllegalTokenError, InvalidArgumentError, Problem

A, B, C = text_tokens("abc")


def two_bs(tokens: np.ndarray, prompt_length: int, problem: Problem) -> bool:
    """Over when the policy's tokens hold two b's."""
    return int((tokens[prompt_length:] == B).sum()) >= 2


def single(**rules: Any) -> TokenEnv:
    return TokenEnv(streams(**{"end_condition": two_bs, **rules}))


def test_the_token_that_meets_the_condition_terminates_and_belongs_to_the_completion() -> None:
    env = single()
    env.reset(options={"problem": 0})
    for token in (B, A):
        assert env.step(token)[2:4] == (False, False)
    _, reward, terminated, truncated, info = env.step(B)
    assert (reward, terminated, truncated, info["completion"]) == (1.0, True, False, "bab")


def test_the_last_budgeted_token_terminates_and_one_more_token_would_have_truncated() -> None:
    env = single(max_new_tokens=3)
    env.reset(options={"problem": 0})
    assert env.step_many([B, A, B])[2:4] == (True, False)
    env.reset(options={"problem": 0})
    assert env.step_many([B, A, A])[2:4] == (False, True)


def test_a_stop_token_still_ends_the_turn_and_is_left_out() -> None:
    env = single()
    env.reset(options={"problem": 0})
    *_, terminated, _, info = env.step_many([A, B, EOS])
    assert (terminated, info["completion"]) == (True, "ab")


def test_tokens_after_the_end_are_not_consumed() -> None:
    env = single()
    env.reset(options={"problem": 0})
    observation, _, terminated, _, info = env.step_many([B, B, A, EOS])
    assert visible(observation) == [ord("Q"), B, B]
    assert (terminated, info["consumed"]) == (True, 2)


def test_it_ends_the_episode_although_the_interaction_would_answer() -> None:
    def ask(turns: Sequence[Turn], problem: Problem) -> Reply:
        return says("?")

    env = single(interaction=ask, max_inserted_tokens=4, stop=["b"])
    env.reset(options={"problem": 0})
    _, _, terminated, truncated, info = env.step(B)
    assert (terminated, truncated, info["inserted"]) == (False, False, 1)
    _, _, terminated, truncated, info = env.step(B)
    assert (terminated, truncated, "inserted" in info) == (True, False, False)


def test_problems_decide_it() -> None:
    def reaches_reference(tokens: np.ndarray, prompt_length: int, problem: Problem) -> bool:
        return chr(tokens[-1]) == problem.reference

    env = vector_env(2, end_condition=reaches_reference)
    env.reset(options={"problems": np.array([0, 1])})
    _, _, terminated, truncated, _ = env.step([A, A])
    assert (terminated.tolist(), truncated.tolist()) == ([True, False], [False, False])
    _, _, terminated, _, info = env.step([A, B])
    assert (terminated.tolist(), info["consumed"].tolist()) == ([False, True], [0, 1])


@settings(max_examples=100)
@given(
    budget=st.integers(1, 6),
    stop=st.sampled_from([(), ("ab",), (C,)]),
    tokens=st.lists(st.lists(st.sampled_from([A, B, C, EOS]), min_size=7, max_size=7), min_size=3, max_size=3),
    widths=st.lists(st.integers(1, 4), min_size=7, max_size=7),
)
def test_any_split_into_chunks_equals_steps(budget: int, stop: Any, tokens: list[list[int]], widths: list[int]) -> None:
    rules: dict[str, Any] = {"end_condition": two_bs, "max_new_tokens": budget, "stop": stop}
    rules["process_scorer"] = lambda tokens, prompt_length, problem: 0.01 * (len(tokens) - prompt_length)
    played = [_play(rules, np.array(tokens), split) for split in (widths, [1] * 7, [7])]
    assert played[0] == played[1] == played[2]
    for row, (_, end, _) in zip(tokens, played[0], strict=True):
        assert end == _expected_end(row, budget, stop)


def _expected_end(tokens: list[int], budget: int, stop: Any) -> tuple[bool, bool]:
    """Read the rules again, one token after the other: whatever ends an episode by itself comes before the budget."""
    for made in range(1, budget + 1):
        text = bytes(token for token in tokens[:made] if token < 256)
        stopped = tokens[made - 1] in (EOS, *(stop_token for stop_token in stop if isinstance(stop_token, int)))
        if stopped or text.count(b"b") >= 2 or ("ab" in stop and text.endswith(b"ab")):
            return True, False
    return False, True


def _play(rules: dict[str, Any], tokens: np.ndarray, widths: list[int]) -> list[Any]:
    env = vector_env(3, **rules)
    env.reset(seed=[1, 2, 3])
    rewards: list[list[float]] = [[], [], []]
    ends: list[Any] = [None] * 3
    start = 0
    for width in widths:
        chunk = tokens[:, start : start + width]
        if chunk.shape[1] == 0:
            break
        start += width
        observation, _, terminated, truncated, info = env.step_many(chunk, np.full(3, chunk.shape[1]))
        for row in range(3):
            rewards[row] += info["rewards"][row, : info["consumed"][row]].tolist()
            if terminated[row] or truncated[row]:
                assert ends[row] is None
                ends[row] = (bool(terminated[row]), bool(truncated[row]))
    return [(rewards[row], ends[row], visible(observation, row)) for row in range(3)]


def test_states_and_forks_go_on_towards_the_same_end() -> None:
    env = vector_env(2, end_condition=two_bs)
    env.reset(options={"problems": np.array([0, 1])})
    env.step([B, A])
    state = pickle.loads(pickle.dumps(env.get_state(0)))
    env.fork(0, [1])
    assert env.step([B, B])[2].tolist() == [True, True]
    env.set_state(0, state)
    assert env.step([A, A])[2].tolist() == [False, False]
    assert env.step([B, A])[2].tolist() == [True, False]
    ended = env.get_state(0)
    env.set_state(1, ended)
    assert env.step([A, A])[4]["consumed"].tolist() == [0, 0]


def test_a_condition_that_raises_changes_nothing() -> None:
    def raises_on_c(tokens: np.ndarray, prompt_length: int, problem: Problem) -> bool:
        if tokens[-1] == C:
            raise RuntimeError("no such letter")
        return False

    env = vector_env(2, end_condition=raises_on_c)
    env.reset(seed=0)
    env.step([A, A])
    before = env.streams.tokens.copy(), env.streams.length.copy()
    with pytest.raises(RuntimeError, match="no such letter"):
        env.step_many([[A, A], [B, C]], [2, 2])
    assert (env.streams.tokens == before[0]).all()
    assert (env.streams.length == before[1]).all()


def test_a_deferred_verdict_keeps_the_flag() -> None:
    env = vector_env(1, end_condition=two_bs, verification="deferred")
    env.reset(options={"problems": np.array([0])})
    _, _, terminated, truncated, info = env.step_many([[B, B]], [2])
    assert (terminated.tolist(), truncated.tolist(), info["pending"].tolist()) == ([False], [False], [True])
    _, _, terminated, truncated, _ = env.wait()
    assert (terminated.tolist(), truncated.tolist()) == ([True], [False])
    env.close()


def test_an_environment_without_a_condition_keeps_its_short_cut() -> None:
    plain, conditional = streams(), streams(end_condition=two_bs)
    for stream in (plain, conditional):
        stream.reset([0], [np.random.default_rng(0)], [0])
    assert plain.append_ordinary(A)
    assert not conditional.append_ordinary(A)


# Fixed legal tokens


def test_spaces_draw_and_hold_only_the_legal_tokens() -> None:
    mask = np.zeros(257, dtype=np.int8)
    mask[[A, C]] = 1
    env, vector = single(legal_actions=FixedActions(mask)), vector_env(3, legal_actions=FixedActions(mask))
    env.action_space.seed(0)
    vector.action_space.seed(0)
    assert {int(env.action_space.sample()) for _ in range(64)} == {A, C}
    assert {int(token) for _ in range(64) for token in vector.action_space.sample()} == {A, C}
    assert [env.action_space.contains(token) for token in (A, B, C, 257, "a")] == [True, False, True, False, False]
    assert vector.action_space.contains(np.array([A, C, A]))
    assert not vector.action_space.contains(np.array([A, B, A]))
    only_c = np.zeros(257, dtype=np.int8)
    only_c[C] = 1
    assert env.action_space.sample(only_c) == C
    assert vector.action_space.sample((only_c,) * 3).tolist() == [C, C, C]
    again = pickle.loads(pickle.dumps(env.action_space))
    assert again == env.action_space
    assert not again.contains(B)
    env.reset(seed=0)
    with pytest.raises(IllegalTokenError, match=rf"token {B} of row 0 is not legal"):
        env.step(B)


@pytest.mark.parametrize("mask", [np.zeros(257, dtype=np.int8), np.ones(257), np.full(257, 2, dtype=np.int8)])
def test_a_mask_that_is_none_is_named(mask: Any) -> None:
    with pytest.raises(InvalidArgumentError, match=r"int8 of shape \(vocab_size,\), 1 where legal, at least once"):
        FixedActions(mask)


def test_a_mask_of_another_vocabulary_is_named() -> None:
    with pytest.raises(InvalidArgumentError, match="each of the 257 tokens, got 5"):
        single(legal_actions=FixedActions(np.ones(5, dtype=np.int8)))
