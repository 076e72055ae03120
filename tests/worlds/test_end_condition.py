"""Episodes that are over by themselves: terminated, never truncated."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

from rlvr_envs import FixedActions, TokenEnv
from tests.envs.helpers import streams, text_tokens, two_bs, vector_env
from verifiers import IllegalTokenError, InvalidArgumentError

A, B, C = text_tokens("abc")


def single(**rules: Any) -> TokenEnv:
    return TokenEnv(streams(**{"end_condition": two_bs, **rules}))


def test_the_token_that_meets_the_condition_terminates_and_belongs_to_the_completion() -> None:
    env = single()
    env.reset(options={"problem": 0})
    for token in (B, A):
        assert env.step(token)[2:4] == (False, False)
    _, reward, terminated, truncated, info = env.step(B)
    assert (reward, terminated, truncated, info["completion"]) == (1.0, True, False, "bab")


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
