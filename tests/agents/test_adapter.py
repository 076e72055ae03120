"""Environments of other makers: a plain Gymnasium environment is played by `reset` and `step` alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from gymnasium.wrappers.vector import TransformReward

import rlvr_envs  # noqa: F401 - registers the ids
from agents import CausalLMPolicy, PolicyConfig, rollout
from agents.rollouts.loop import Episode
from tests.agents.agent_cases import make_agent, playing_policy
from tests.agents.trajectories import tiny_policy
from verifiers import InvalidArgumentError

VOCAB = 16
WIDTH = 6


class CountUp(gymnasium.Env[Any, Any]):
    """Pays 1 for each token that is even; ends after token 0 or when the buffer is full. Knows nothing of this project."""

    observation_space = spaces.Dict(
        {"tokens": spaces.Box(0, VOCAB - 1, (WIDTH,), np.int32), "length": spaces.Box(0, WIDTH, (), np.int32)}
    )
    action_space = spaces.Discrete(VOCAB)

    def __init__(self, masked: bool = False) -> None:
        self.masked = masked
        self.over = True

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        super().reset(seed=seed)
        self.tokens, self.over = [3], False
        return self._observation(), self._info()

    def step(self, action: Any) -> Any:
        assert not self.over, "stepped after its end"
        assert not self.masked or action % 2 == 0, "an illegal action"
        self.tokens.append(int(action))
        terminated, truncated = int(action) == 0, len(self.tokens) == WIDTH
        self.over = terminated or truncated
        return self._observation(), float(action % 2 == 0), terminated, truncated and not terminated, self._info()

    def _observation(self) -> dict[str, Any]:
        tokens = np.zeros(WIDTH, dtype=np.int32)
        tokens[: len(self.tokens)] = self.tokens
        return {"tokens": tokens, "length": np.array(len(self.tokens), dtype=np.int32)}

    def _info(self) -> dict[str, Any]:
        return {"action_mask": (np.arange(VOCAB) % 2 == 0).astype(np.int8)} if self.masked else {}


def third_party(rows: int, make: Callable[[], Any] = CountUp) -> SyncVectorEnv:
    return SyncVectorEnv([make] * rows, autoreset_mode=AutoresetMode.DISABLED)


@pytest.mark.parametrize("rows", [1, 3, 7, 9])
def test_a_third_party_environment_is_played_whole(rows: int) -> None:
    episodes = [Episode(-1, group, seed=group) for group in range(7)]
    played = rollout(third_party(rows), tiny_policy(), episodes)
    assert len(played) == 7
    for one in played:
        own = one.tokens[1:]
        assert one.tokens[0] == 3
        assert one.prompt_length == 1
        assert one.policy_mask.tolist() == [False] + [True] * len(own)
        assert one.rewards[1:].tolist() == [float(token % 2 == 0) for token in own]
        assert one.terminated == (own[-1] == 0)
        assert one.truncated != one.terminated
        assert one.verdict is None
        assert (one.logprobs[1:] < 0).all()
    few = CausalLMPolicy(tiny_policy().model, PolicyConfig(max_cached_tokens=2 * WIDTH))  # fewer rows than there are
    for again in (rollout(third_party(2), tiny_policy(), episodes), rollout(third_party(rows), few, episodes)):
        assert [one.tokens.tolist() for one in again] == [one.tokens.tolist() for one in played]
    for one in rollout(third_party(rows, lambda: CountUp(masked=True)), tiny_policy(), episodes):
        assert (one.tokens[1:] % 2 == 0).all()
        assert one.action_masks is not None


class DrawnPrompt(CountUp):
    """Begins with a token that it draws: from its seed, or, if it is told to, from what it has counted."""

    def __init__(self, seeded: bool = True) -> None:
        super().__init__()
        self.seeded = seeded
        self.resets = 0

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        _, info = super().reset(seed=seed)
        self.resets += 1
        self.tokens = [int(self.np_random.integers(VOCAB)) if self.seeded else self.resets % VOCAB]
        return self._observation(), info


@pytest.mark.parametrize("name", ["grpo", "remax"])
def test_members_of_a_group_begin_alike_in_an_environment_that_draws(name: str) -> None:
    """And a run that is repeated draws the same, with other rows too."""
    agent = make_agent(name, problems_per_step=6, group_size=4)
    played, _ = agent.collect(third_party(5, DrawnPrompt), 0)
    starts = [[int(one.tokens[0]) for one in played[first : first + 4]] for first in range(0, 24, 4)]
    assert all(len(set(group)) == 1 for group in starts)
    assert len({group[0] for group in starts}) > 1
    again, _ = make_agent(name, problems_per_step=6, group_size=4).collect(third_party(3, DrawnPrompt), 0)
    assert [one.tokens.tolist() for one in again] == [one.tokens.tolist() for one in played]
    assert [one.baseline for one in again] == [one.baseline for one in played]
    other, _ = agent.collect(third_party(5, DrawnPrompt), 1)
    assert [one.tokens[0] for one in other] != [one.tokens[0] for one in played]


def test_an_environment_that_ignores_its_seed_can_not_be_compared_in_groups() -> None:
    agent = make_agent("grpo")
    with pytest.raises(InvalidArgumentError, match="SyncVectorEnv began differently when it was reset twice with seed"):
        agent.collect(third_party(2, lambda: DrawnPrompt(seeded=False)), 0)


class Chosen(SyncVectorEnv):
    """A vector environment of somebody else whose problems can be chosen: problem i begins with token i."""

    num_problems = 5

    def reset(self, *, seed: Any = None, options: dict[str, Any] | None = None) -> Any:
        problems = options.pop("problems", None)
        observation, info = super().reset(seed=seed, options=options)
        for row, one in enumerate(self.envs):
            if problems is not None and problems[row] >= 0:
                one.unwrapped.tokens[0] = int(problems[row])  # type: ignore[attr-defined]
                observation["tokens"][row, 0] = problems[row]
        return observation, info


def test_problems_of_a_third_party_environment_are_chosen_where_it_has_them() -> None:
    env = Chosen([CountUp] * 3, autoreset_mode=AutoresetMode.DISABLED)
    agent = make_agent("grpo")
    played, _ = agent.collect(env, 0)
    wanted = [episode.problem for episode in agent.sampling.episodes(env, 0)]
    assert [int(one.tokens[0]) for one in played] == wanted
    assert len(set(wanted)) == 4


@pytest.mark.parametrize("wrapped", [False, True])
def test_a_wrapper_that_hides_wait_is_looked_at_again(wrapped: bool) -> None:
    """The verdicts come in the background; the wrapper's reward still counts."""
    env: Any = gymnasium.make_vec("rlvr/Addition-v0", num_envs=2, tokenizer="char", verification="deferred")
    policy = playing_policy(env)
    episodes = [Episode(n, n, n) for n in range(6)]
    played = rollout(TransformReward(env, lambda reward: reward + 2) if wrapped else env, policy, episodes)
    env.close()
    assert all(one.verdict is not None for one in played)
    extra = [one.score - one.verdict.score for one in played if one.verdict is not None]
    assert all((more >= 2) == wrapped for more in extra)


def test_our_environments_in_gymnasiums_own_vectoriser_give_the_same_kind_of_episodes() -> None:
    env = third_party(2, lambda: gymnasium.make("rlvr/Addition-v0", tokenizer="char", max_new_tokens=4))
    tokens = int(env.single_action_space.n)  # type: ignore[attr-defined]
    policy = CausalLMPolicy(tiny_policy().model, PolicyConfig(vocab_size=tokens))
    played = rollout(env, policy, [Episode(-1, n, n) for n in range(5)])
    assert all(one.verdict is not None and one.problem_id.startswith("addition/") for one in played)
    assert all(one.score == one.verdict.score for one in played if one.verdict is not None)


@pytest.mark.parametrize(
    ("env", "message"),
    [
        (lambda: CountUp(), "expected a vector environment, got CountUp"),
        (lambda: SyncVectorEnv([CountUp]), "AutoresetMode.DISABLED, got AutoresetMode.NEXT_STEP"),
        (
            lambda: third_party(1, lambda: gymnasium.make("Pendulum-v1")),
            r"numbered actions, Discrete\(n\), and this .* Box",
        ),
    ],
)
def test_what_can_not_be_played_is_named(env: Callable[[], Any], message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        rollout(env(), tiny_policy(), [Episode(-1, 0, 0)])
