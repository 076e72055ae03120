"""Environments of other makers: a plain Gymnasium environment is played by `reset` and `step` alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, SyncVectorEnv

import rlvr_envs  # noqa: F401 - registers the ids
from agents import GRPO, GRPOConfig, LearnerConfig, Reinforce, ReinforceConfig, rollout
from agents.rollouts import Episode
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


def foreign(rows: int, make: Callable[[], Any] = CountUp) -> SyncVectorEnv:
    return SyncVectorEnv([make] * rows, autoreset_mode=AutoresetMode.DISABLED)


@pytest.mark.parametrize("rows", [1, 3, 7])
def test_a_foreign_environment_is_played_whole(rows: int) -> None:
    episodes = [Episode(-1, group, seed=group) for group in range(7)]
    played = rollout(foreign(rows), tiny_policy(), episodes)
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
    again = rollout(foreign(2), tiny_policy(), episodes)
    assert [one.tokens.tolist() for one in again] == [one.tokens.tolist() for one in played]


def test_legal_actions_of_a_foreign_environment_are_kept() -> None:
    played = rollout(foreign(3, lambda: CountUp(masked=True)), tiny_policy(), [Episode(-1, n, n) for n in range(5)])
    assert all((one.tokens[1:] % 2 == 0).all() for one in played)
    assert all(one.action_masks is not None for one in played)


def test_an_agent_learns_from_a_foreign_environment() -> None:
    learner = LearnerConfig(learning_rate=0.02)
    agent = Reinforce(tiny_policy(), ReinforceConfig(problems_per_step=64, learner=learner))
    rewards: list[float] = []
    agent.learn(foreign(16), steps=25, callbacks=[lambda _, metrics: rewards.append(metrics["reward"])])
    assert np.mean(rewards[-3:]) > np.mean(rewards[:3]) + 1


def test_groups_need_problems_that_can_be_chosen() -> None:
    agent = GRPO(tiny_policy(), GRPOConfig())
    with pytest.raises(InvalidArgumentError, match="group_size=8 needs an environment with num_problems"):
        agent.learn(foreign(2), steps=1)


def test_our_environments_in_gymnasiums_own_vectoriser_give_the_same_kind_of_episodes() -> None:
    def make() -> Any:
        return gymnasium.make("rlvr/Addition-v0", tokenizer="char", max_new_tokens=4)

    env = foreign(2, make)
    policy = tiny_policy()
    policy.vocab_size = int(env.single_action_space.n)  # type: ignore[attr-defined]
    played = rollout(env, policy, [Episode(-1, n, n) for n in range(5)])
    assert all(one.verdict is not None and one.problem_id.startswith("addition/") for one in played)
    assert all(one.score == one.verdict.score for one in played if one.verdict is not None)


@pytest.mark.parametrize(
    ("env", "message"),
    [
        (lambda: CountUp(), "expected a vector environment, got CountUp"),
        (lambda: SyncVectorEnv([CountUp]), "AutoresetMode.DISABLED, got AutoresetMode.NEXT_STEP"),
        (
            lambda: SyncVectorEnv([lambda: gymnasium.make("CartPole-v1")], autoreset_mode=AutoresetMode.DISABLED),
            r"expected the observation Dict\(tokens=",
        ),
    ],
)
def test_what_can_not_be_played_is_named(env: Callable[[], Any], message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        rollout(env(), tiny_policy(), [Episode(-1, 0, 0)])
