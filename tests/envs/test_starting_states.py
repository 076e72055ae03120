"""Episodes that start from captured states instead of prompts."""

from __future__ import annotations

import dataclasses
import pickle
from typing import Any

import numpy as np
import pytest

from rlvr_envs import StreamState, TokenEnv
from tests.envs.helpers import EOS, says, streams, text_tokens, vector_env, visible
from verifiers import InvalidArgumentError

A, B, C = text_tokens("abc")


def captured(problem: int, tokens: list[int], **rules: Any) -> StreamState:
    """The state of an environment after some tokens."""
    env = TokenEnv(streams(**rules))
    env.reset(seed=99, options={"problem": problem})
    env.step_many(tokens)
    return pickle.loads(pickle.dumps(env.get_state()))


def test_an_episode_goes_on_from_a_state_of_another_environment() -> None:
    env = TokenEnv(streams(stop=["bc"]))
    observation, info = env.reset(seed=1, options={"state": captured(1, [A, A, B], stop=["bc"])})
    assert visible(observation) == text_tokens("QQaab")
    assert (info["problem_id"], info["problem_index"]) == ("p1", 1)
    _, reward, terminated, _, info = env.step(C)  # half of the stop string was in the state
    assert (reward, terminated, info["completion"]) == (0.0, True, "aa")


def test_the_budget_and_the_turns_before_go_on_too() -> None:
    rules: dict[str, Any] = {
        "interaction": lambda turns, problem: says(str(len(turns)), reward=len(turns)) if len(turns) < 3 else None,
        "max_inserted_tokens": 4,
    }
    env = TokenEnv(streams(**rules))
    env.reset(options={"state": captured(0, [A, EOS], **rules)})
    observation, reward, *_ = env.step_many([B, EOS])
    assert (visible(observation)[-1:], reward) == (text_tokens("2"), 2.0)
    _, _, terminated, truncated, _ = env.step_many([B, B])
    assert (terminated, truncated) == (False, True)  # after six tokens of the policy, two of them in the state


def test_rows_start_from_states_or_prompts_as_the_list_says() -> None:
    env = vector_env(3)
    env.reset(seed=0)
    env.step([A, A, A])
    states = [captured(2, [B, B]), captured(3, [C]), None]
    options = {"states": states, "problems": np.array([0, 0, 4]), "reset_mask": np.array([True, False, True])}
    observation, info = env.reset(options=options)
    assert visible(observation, 0) == text_tokens("QQQbb")
    assert visible(observation, 1)[-1] == A
    assert visible(observation, 2) == text_tokens("QQQQQ")
    assert info["problem_index"][[0, 2]].tolist() == [2, 4]
    _, reward, *_ = env.step([EOS, EOS, EOS])
    assert reward[[0, 2]].tolist() == [0.0, 0.0]


@pytest.mark.parametrize(
    ("state", "message"),
    [
        (captured(0, [A, EOS]), "has ended, so that nothing can follow from it"),
        (dataclasses.replace(captured(0, [A]), problem_index=9), "problem 9; this environment has"),
        (captured(0, [A], max_new_tokens=20), "of which there may be 21 at the end"),
        (dataclasses.replace(captured(0, [A]), tokens=np.array([81, 300], dtype=np.int32)), "tokens up to 300"),
        ([1, 2], "a state that get_state gave, got list"),
    ],
)
def test_a_state_that_does_not_fit_is_refused_and_changes_nothing(state: Any, message: str) -> None:
    env = vector_env(2)
    env.reset(seed=0, options={"problems": np.array([0, 0])})
    before = pickle.dumps([env.get_state(0), env.get_state(1)])
    with pytest.raises(InvalidArgumentError, match=message):
        env.reset(options={"states": [None, state], "problems": np.array([0, 0])})
    assert pickle.dumps([env.get_state(0), env.get_state(1)]) == before


@pytest.mark.parametrize("states", [[None], "ab"])
def test_one_entry_is_expected_for_each_row(states: Any) -> None:
    env = vector_env(3)
    with pytest.raises(InvalidArgumentError, match="a list with a state or None for each of 3 rows"):
        env.reset(options={"states": states})
