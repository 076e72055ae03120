"""Rollouts from captured states, and states that are found again by playing an episode's tokens."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from agents import Episode, make_batch, rollout
from agents.learn.batch_passes import token_logprobs
from agents.rollouts.states import states_before
from rlvr_envs import Reply, Turn
from tests.agents.agent_cases import playing_policy, sort_env
from tests.agents.rounding import FLOAT64, assert_equal_stored
from tests.agents.test_rollout import Scripted
from tests.envs.helpers import EOS, says, text_tokens, vector_env
from verifiers import InvalidArgumentError, Problem

A, B = text_tokens("ab")


def test_an_episode_from_any_of_its_states_goes_on_as_it_did() -> None:
    """Sampling depends on seed and position alone, so that the same seed finds the same rest."""
    env = sort_env("grpo")
    policy = playing_policy(env)
    episodes = [Episode(index, index, 100 + index) for index in range(5)]
    played = rollout(env, policy, episodes)
    positions = [np.flatnonzero(one.policy_mask).tolist() for one in played]
    states = states_before(env, list(zip(played, positions, strict=True)))
    again = [
        Episode(episode.problem, 7, episode.seed, state=state)
        for episode, own in zip(episodes, states, strict=True)
        for state in own
    ]
    continued = iter(rollout(env, policy, again))
    assert len(again) > 10
    for one, own in zip(played, positions, strict=True):
        for position in own:
            other = next(continued)
            assert (other.prompt_length, other.problem_id, other.group) == (position, one.problem_id, 7)
            assert other.tokens.tolist() == one.tokens.tolist()
            assert not other.policy_mask[:position].any()
            assert other.policy_mask[position:].tolist() == one.policy_mask[position:].tolist()
            np.testing.assert_allclose(other.logprobs[position:], one.logprobs[position:], atol=1e-4)
            assert other.rewards[position:].tolist() == one.rewards[position:].tolist()
            assert (other.terminated, other.completion) == (one.terminated, one.completion)


@FLOAT64
def test_an_episode_from_a_state_is_a_row_whose_tokens_were_seen_when_its_own_were_sampled() -> None:
    """The learner finds the log-probabilities that the policy sampled with, and learns no token of the state."""
    env = sort_env("grpo")
    policy = playing_policy(env)
    played = rollout(env, policy, [Episode(index, index, index) for index in range(4)])
    states = states_before(env, [(one, [int(np.flatnonzero(one.policy_mask)[-1])]) for one in played])
    episodes = [Episode(state.problem_index, 0, 50, state=state) for (state,) in states]
    batch = make_batch(rollout(env, policy, episodes))
    assert [int(row.nonzero()[0]) for row in batch.loss_mask] == [len(state.tokens) for (state,) in states]
    recomputed = token_logprobs(policy, batch, 4)
    assert_equal_stored(recomputed[batch.loss_mask], batch.logprobs[batch.loss_mask])


def test_states_within_a_dialogue_know_its_turns() -> None:
    env = vector_env(1, interaction=count, max_inserted_tokens=8, max_new_tokens=9)
    (one,) = rollout(env, Scripted([A, EOS, 0, B, B, EOS], 6), [Episode(0, 0, 0)])
    assert one.policy_mask.tolist() == [False, True, True, False, True, True, True]
    ((first, inside, last),) = states_before(env, [(one, [1, 4, 5])])
    assert [len(state.turns) for state in (first, inside, last)] == [0, 1, 1]
    assert inside.tokens.tolist() == one.tokens[:4].tolist()
    assert inside.turns[0].text == "a"


def count(turns: Sequence[Turn], problem: Problem) -> Reply | None:
    return says(str(len(turns))) if len(turns) < 2 else None


def test_an_episode_that_goes_another_way_when_it_is_played_again_is_named() -> None:
    numbers = itertools.count()
    env = vector_env(
        1,
        interaction=lambda turns, problem: says(str(next(numbers))) if len(turns) < 2 else None,
        max_inserted_tokens=8,
        max_new_tokens=9,
    )
    (one,) = rollout(env, Scripted([A, EOS, 0, B, EOS], 6), [Episode(0, 0, 0)])
    with pytest.raises(InvalidArgumentError, match="problem 'p0' goes another way when its tokens are played again"):
        states_before(env, [(one, [4])])


def test_a_state_of_another_problem_is_refused() -> None:
    env = vector_env(1)
    (one,) = rollout(env, Scripted([A, B, EOS]), [Episode(1, 0, 0)])
    ((state,),) = states_before(env, [(one, [3])])
    assert Episode(1, 0, 0, state=state).state is state
    with pytest.raises(InvalidArgumentError, match="must be that of its state, 1, got 0"):
        Episode(0, 0, 0, state=state)


def test_other_environments_have_no_states() -> None:
    env: Any = SimpleNamespace(unwrapped=object())
    with pytest.raises(InvalidArgumentError, match="captured states in a TokenVectorEnv alone, which object is not"):
        states_before(env, [])
