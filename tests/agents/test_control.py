"""Environments with vectors as observations: how they are shown, what agents record, and what a time limit means."""

from __future__ import annotations

import dataclasses
from typing import Any

import gymnasium
import numpy as np
import pytest
import torch
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from gymnasium.wrappers import TimeLimit

from agents import Episode, MLPPolicy, PPOConfig, Reinforce, ReinforceConfig, agent_classes, make_batch, rollout
from agents.advantages import returns_to_go, whole_returns
from agents.commands.train import AGENT_COMMANDS
from agents.learn.batch_passes import token_logprobs
from tests.agents.agent_cases import state_values
from tests.agents.trajectories import trajectory
from verifiers import InvalidArgumentError


class Signs(gymnasium.Env[Any, Any]):
    """Shows a sign; the action that repeats it, 4 or 5, earns 1."""

    def __init__(self) -> None:
        self.observation_space: Any = spaces.Dict({"sign": spaces.Discrete(2), "noise": spaces.Box(-1, 1, (2,))})
        self.action_space: Any = spaces.Discrete(2, start=4)

    def _show(self) -> Any:
        self.sign = int(self.np_random.integers(2))
        return {"sign": self.sign, "noise": self.np_random.uniform(-1, 1, 2).astype(np.float32)}

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        return self._show(), {}

    def step(self, action: Any) -> Any:
        reward = float(action == 4 + self.sign)
        return self._show(), reward, False, False, {}


def vector(make: Any, num_envs: int = 3) -> Any:
    return SyncVectorEnv([make] * num_envs, autoreset_mode=AutoresetMode.DISABLED)


def cartpole(num_envs: int = 3, **options: Any) -> Any:
    return vector(lambda: gymnasium.make("CartPole-v1", **options), num_envs)


def signs() -> Any:
    return vector(lambda: TimeLimit(Signs(), 5), 8)


def perceptron(name: str, env: Any, **settings: Any) -> Any:
    """An agent with its defaults for control, but for some settings."""
    cls, config = agent_classes(name)
    return cls(MLPPolicy.for_env(env), config.for_control(**settings))


def played(env: Any, episodes: int, policy: Any = None) -> list[Any]:
    chosen = MLPPolicy.for_env(env) if policy is None else policy
    return rollout(env, chosen, [Episode(-1, index, index, 100 + index) for index in range(episodes)])


def test_episodes_are_those_of_the_environment_itself() -> None:
    """More episodes than rows, of different lengths: each step's observation stands behind the action that led to it."""
    trajectories = played(cartpole(), 7)
    single = gymnasium.make("CartPole-v1")
    assert len({len(one.tokens) for one in trajectories}) > 1
    for index, one in enumerate(trajectories):
        observation, _ = single.reset(seed=100 + index)
        np.testing.assert_array_equal(one.observations[0], observation)
        assert one.prompt_length == 1
        assert one.policy_mask.tolist() == [False] + [True] * (len(one.tokens) - 1)
        for position in range(1, len(one.tokens)):
            observation, reward, terminated, truncated, _ = single.step(int(one.tokens[position]))
            np.testing.assert_array_equal(one.observations[position], observation)
            assert one.rewards[position] == reward
        assert (terminated, truncated) == (one.terminated, one.truncated)
    batch: Any = make_batch(trajectories)
    assert batch.observations.shape == (*batch.tokens.shape, 4)


def test_choices_and_structures_become_vectors() -> None:
    (one,) = played(signs(), 1)
    assert one.observations.shape == (6, 4)  # two numbers, and two for the sign, of which one is 1
    signs_shown = one.observations[:-1, 2:].argmax(axis=1)
    assert one.rewards[1:].tolist() == (one.tokens[1:] == signs_shown).tolist()
    assert one.truncated


def test_log_probabilities_are_those_that_it_sampled_with() -> None:
    env = cartpole()
    policy = MLPPolicy.for_env(env, hidden=(16, 8), seed=3)
    batch = make_batch(played(env, 5, policy))
    torch.testing.assert_close(token_logprobs(policy, batch, 2), batch.logprobs, rtol=0, atol=1e-6)


def test_what_an_mlp_policy_can_not_do() -> None:
    with pytest.raises(InvalidArgumentError, match=r"no time limit.*TimeLimit"):
        MLPPolicy.for_env(vector(Signs))
    with pytest.raises(InvalidArgumentError, match="this environment shows tokens"):
        MLPPolicy.for_env(gymnasium.make_vec("rlvr/Sort-v0", num_envs=1))
    with pytest.raises(InvalidArgumentError, match="sizes must be at least 1"):
        MLPPolicy(4, 2, hidden=())
    with pytest.raises(InvalidArgumentError, match="1 of 2 trajectories have observations"):
        make_batch([*played(cartpole(), 1), trajectory([0, 1])])


@pytest.mark.parametrize("name", ["npg", "trpo"])
def test_natural_gradients_train_a_perceptron_with_their_defaults(name: str) -> None:
    env = cartpole(4)
    rows: list[dict[str, float]] = []
    perceptron(name, env, problems_per_step=4).learn(
        env, steps=2, callbacks=[lambda _, metrics: rows.append(dict(metrics))]
    )
    assert all(0 < row["kl_step"] <= 0.02 for row in rows)


@pytest.mark.parametrize("name", ["ppo", "a2c", "actor-critic", "reinforce"])
def test_a_time_limit_is_no_termination(name: str) -> None:
    """The value target of the last action is its reward, and after a time limit also γ times the value of the state there."""
    env = cartpole(max_episode_steps=20)
    agent = perceptron(name, env, problems_per_step=32)
    torch.nn.init.constant_(agent.models.critic.layer.bias, 2.0)
    torch.nn.init.normal_(agent.models.critic.layer.weight, generator=torch.Generator().manual_seed(0))
    trajectories, _ = agent.collect(env, 0)
    ends = [one.truncated for one in trajectories]
    assert len(set(ends)) == 2
    batch, _ = agent.compute_advantages(trajectories)
    _, last = state_values(agent.policy, agent.models.critic, batch, 16)
    for row, truncated in enumerate(ends):
        target = float(batch.value_targets[row, batch.lengths[row] - 1])
        assert target == pytest.approx(1 + truncated * 0.99 * float(last[row]), abs=1e-6)


def test_defaults_for_control() -> None:
    config = {name: agent_classes(name)[1] for name in ("ppo", "a2c", "actor-critic", "reinforce", "dqn", "grpo")}
    assert all(config[name].for_control().gamma == 0.99 for name in ("ppo", "a2c", "actor-critic"))
    assert config["ppo"].for_control(gamma=0.5).gamma == 0.5
    assert config["reinforce"].for_control().baseline == "value"
    assert config["dqn"].for_control().truncation == "bootstrap"
    assert config["grpo"].for_control().problems_per_step * config["grpo"]().group_size == 16
    assert config["ppo"]().gamma == 1  # those of language models stay


def test_the_whole_return_by_hand() -> None:
    rewards = torch.tensor([[5.0, 1.0, 0.0, 2.0, 4.0]], dtype=torch.float64)
    mask = torch.tensor([[False, True, False, True, True]])
    returns = returns_to_go(rewards, mask, 0.5)
    assert whole_returns(returns, mask).tolist() == [[0.0, 3.0, 0.0, 3.0, 3.0]]


@pytest.mark.parametrize("credit", ["reward-to-go", "whole"])
def test_reinforce_weighs_by_its_credit(credit: Any) -> None:
    env = signs()
    agent = Reinforce(MLPPolicy.for_env(env), ReinforceConfig(problems_per_step=4, baseline="none", credit=credit))
    trajectories, _ = agent.collect(env, 0)
    _, advantages = agent.compute_advantages(trajectories)
    for row, one in enumerate(trajectories):
        to_go = np.cumsum(one.rewards[::-1])[::-1]
        expected = to_go if credit == "reward-to-go" else np.full_like(to_go, one.score)
        np.testing.assert_allclose(advantages[row, 1:].numpy(), expected[1:])


@pytest.mark.parametrize("name", ["reinforce", "a2c", "ppo", "grpo", "dqn"])
def test_agents_learn_to_repeat_a_sign(name: str) -> None:
    """At random half of five actions are right; 0 of 5 would be an error of sign, and 5 of 5 is perfect."""
    env = signs()
    exploring = {"learn_from": 40, "epsilon_tokens": 400, "tokens_per_update": 4.0, "batch_size": 32}
    steps = {"ppo": 3, "dqn": 8}.get(name, 20)
    agent = perceptron(name, env, **exploring if name == "dqn" else {})
    agent.learn(env, steps=steps)
    assert agent.evaluate(env, problems=20, greedy=True).score > 4


def test_the_environment_decides_on_the_defaults_of_the_command() -> None:
    def default(*arguments: str) -> Any:
        command = AGENT_COMMANDS.load("ppo", *arguments)
        return next(field for field in dataclasses.fields(command) if field.name == "config").default_factory()  # type: ignore[misc]

    assert default("--env", "CartPole-v1", "--steps", "3") == PPOConfig.for_control()
    assert default("--env=MazeState") == PPOConfig.for_control()
    assert default("--env", "Maze") == default() == PPOConfig()
