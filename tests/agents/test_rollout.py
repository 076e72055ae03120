"""The interaction loop: what it writes down is what happened, and an episode may begin in a captured state."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.vector import AutoresetMode, SyncVectorEnv, VectorWrapper
from numpy.typing import NDArray

from agents import Action, Episode, make_batch, rollout
from agents.learn.batch_passes import token_logprobs
from agents.rollouts.states import states_before
from rlvr_envs import Reply, Turn
from tests.agents.agent_cases import playing_policy, sort_env
from tests.agents.rounding import FLOAT64, assert_equal_stored
from tests.envs.helpers import EOS, says, text_tokens, vector_env
from verifiers import InvalidArgumentError, Problem

A, B = text_tokens("ab")


class Scripted:
    """Writes a given text and stops, `width` tokens at a time; the log-probability of a token is minus its position."""

    version = 3

    def __init__(self, script: list[int], width: int = 1) -> None:
        self.script = script
        self.width = width
        self.start: NDArray[np.int64] = np.zeros(64, dtype=np.int64)
        self.begun: dict[int, int] = {}
        self.fresh = np.zeros(64, dtype=bool)

    def begin(self, rows: NDArray[np.int64], seeds: NDArray[np.uint64]) -> None:
        self.fresh[rows] = True
        self.begun |= dict(zip(rows.tolist(), seeds.tolist(), strict=True))

    def act(self, observation: Any, *, action_mask: Any = None, rows: Any = None) -> Action:
        length = observation["length"].reshape(-1).astype(np.int64)
        count = len(length)
        self.start[:count][self.fresh[:count]] = length[self.fresh[:count]]
        self.fresh[:count] = False
        written = length - self.start[:count]
        at = written[:, None] + np.arange(self.width)
        tokens = np.array([*self.script, *[B] * (self.width + 20)])[at]
        return Action(tokens, np.full(count, self.width) * rows, (-at).astype(np.float32))


EPISODES = [Episode(problem=index % 5, group=index, seed=index) for index in range(7)]


@pytest.mark.parametrize("seed", [-1, 2**64, 1.5])
def test_a_seed_that_is_no_word_of_64_bits_is_refused(seed: Any) -> None:
    with pytest.raises(InvalidArgumentError, match=f"0 to 2\\*\\*64 - 1, got {seed}: take it modulo 2"):
        Episode(0, 0, seed)
    assert Episode(0, 0, 2**64 - 1).seed == Episode(0, 0, int(np.uint64(2**64 - 1))).seed


@pytest.mark.parametrize("width", [1, 2, 5])
@pytest.mark.parametrize("rows", [1, 3, 16])
def test_trajectories_come_in_order_with_each_tokens_own_record(width: int, rows: int) -> None:
    seen, acting = [], Scripted([A, B, A, EOS], width)
    trajectories = rollout(vector_env(rows), acting, EPISODES, on_episode=seen.append)
    assert len(seen) == len(trajectories) == 7
    assert rows < 7 or acting.begun == {index: index for index in range(7)}
    for episode, trajectory in zip(EPISODES, trajectories, strict=True):
        prompt = episode.problem + 1
        assert trajectory.problem_id == f"p{episode.problem}"
        assert trajectory.group == episode.group
        assert trajectory.prompt_length == prompt
        assert trajectory.tokens.tolist() == [*text_tokens("Q" * prompt), A, B, A, EOS]
        assert trajectory.policy_mask.tolist() == [False] * prompt + [True] * 4
        assert trajectory.logprobs.tolist() == [0.0] * prompt + [0, -1, -2, -3]
        score = {0: 2.0, 1: 1.0}.get(episode.problem, 0.0)
        assert trajectory.rewards.tolist() == [0.0] * (prompt + 3) + [score]
        assert trajectory.score == score
        assert (trajectory.terminated, trajectory.truncated, trajectory.completion) == (True, False, "aba")
        assert trajectory.policy_version[prompt:].tolist() == [3] * 4


def test_rows_that_are_not_asked_for_stay_as_they_are() -> None:
    env = vector_env(4)
    env.reset(seed=0)
    rollout(env, Scripted([EOS]), EPISODES[:1])
    assert env.streams.length[1:].tolist() == env.streams.prompt_length[1:].tolist()


def reply(turns: Sequence[Turn], problem: Problem) -> Reply | None:
    return says("!!") if len(turns) == 1 else None


@pytest.mark.parametrize("width", [1, 4])
def test_inserted_tokens_are_not_the_policys(width: int) -> None:
    env = vector_env(2, interaction=reply, max_inserted_tokens=4)
    script = [A, EOS, ord("!"), ord("!"), A, A, EOS]  # positions 2 and 3 are the environment's
    trajectories = rollout(env, Scripted(script, width), EPISODES[:3])
    for trajectory in trajectories:
        own = trajectory.policy_mask[trajectory.prompt_length :]
        assert own.tolist() == [True, True, False, False, True, True, True]
        assert trajectory.logprobs[trajectory.prompt_length :].tolist() == [0, -1, 0, 0, -4, -5, -6]
        assert trajectory.completion == "aa"


class Transparent(VectorWrapper[Any, Any, Any, Any, Any]):
    """A wrapper that hides `step_many`."""

    def __getattr__(self, name: str) -> Any:
        if name == "step_many":
            raise AttributeError(name)
        return super().__getattribute__(name)


def test_a_wrapper_without_step_many_is_stepped_and_a_wide_policy_told_so() -> None:
    wrapped = Transparent(vector_env(3))
    bare = rollout(vector_env(3), Scripted([A, EOS]), EPISODES)
    through = rollout(wrapped, Scripted([A, EOS]), EPISODES)
    assert [t.tokens.tolist() for t in through] == [t.tokens.tolist() for t in bare]
    with pytest.raises(InvalidArgumentError, match=r"returns 2 tokens at once.*Transparent, has no step_many"):
        rollout(wrapped, Scripted([A, EOS], 2), EPISODES)


def test_an_environment_that_resets_itself_is_refused() -> None:
    env = SyncVectorEnv([lambda: gymnasium.make("rlvr/Addition-v0")])
    assert env.metadata["autoreset_mode"] is not AutoresetMode.DISABLED
    with pytest.raises(InvalidArgumentError, match="DISABLED"):
        rollout(env, Scripted([EOS]), EPISODES[:1])


class Wide(Scripted):
    """Says what each of its tokens was chosen from, or does not."""

    says = False

    def act(self, observation: Any, *, action_mask: Any = None, rows: Any = None) -> Action:
        action = super().act(observation, rows=rows)
        kept = np.zeros((*action.tokens.shape, 257), dtype=bool)
        kept[..., [A, B, EOS]] = True
        return dataclasses.replace(action, kept=np.packbits(kept, axis=-1) if self.says else None)


def only_ab(tokens: Any, prompt_length: int) -> NDArray[np.int8]:
    mask = np.zeros(257, dtype=np.int8)
    mask[[A, B, EOS]] = 1
    return mask


def test_masks_of_later_tokens_are_told_by_the_policy_or_refused() -> None:
    """The environment tells those of the next token alone; a mask that no token was chosen from allows all."""
    acting = Wide([A, B, EOS], width=3)
    with pytest.raises(InvalidArgumentError, match=r"returns 3 tokens at once, but the environment"):
        rollout(vector_env(2, legal_actions=only_ab), acting, EPISODES[:3])
    acting.says = True
    played = [
        *rollout(vector_env(2, legal_actions=only_ab), acting, EPISODES[:5]),
        *rollout(vector_env(2, legal_actions=only_ab), Scripted([A, B, EOS]), EPISODES[:5]),
    ]
    for one in played:
        assert one.action_masks is not None
        masks = np.unpackbits(one.action_masks, axis=-1, count=257).astype(bool)
        assert masks[~one.policy_mask].all()
        assert (masks[one.policy_mask] == only_ab(None, 0).astype(bool)).all()


# From captured states


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
    env = vector_env(1, interaction=lambda turns, problem: says(str(next(numbers))), max_inserted_tokens=8)
    (one,) = rollout(env, Scripted([A, EOS, 0, B, EOS], 6), [Episode(0, 0, 0)])
    with pytest.raises(InvalidArgumentError, match="problem 'p0' goes another way when its tokens are played again"):
        states_before(env, [(one, [4])])


def test_a_state_of_another_problem_is_refused() -> None:
    env = vector_env(1)
    ((state,),) = states_before(env, [(rollout(env, Scripted([A, B, EOS]), [Episode(1, 0, 0)])[0], [3])])
    assert Episode(1, 0, 0, state=state).state is state
    with pytest.raises(InvalidArgumentError, match="must be that of its state, 1, got 0"):
        Episode(0, 0, 0, state=state)


def test_other_environments_have_no_states() -> None:
    env: Any = SimpleNamespace(unwrapped=object())
    with pytest.raises(InvalidArgumentError, match="captured states in a TokenVectorEnv alone, which object is not"):
        states_before(env, [])
