"""DQN: its transitions and targets by hand, and what it learns where the best policy is known."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from agents import (
    DQN,
    CriticConfig,
    DQNConfig,
    LearnerConfig,
    MLPPolicy,
    TorchPolicy,
    make_batch,
)
from agents.algorithms.dqn import action_values
from agents.commands.common import make_any_vec
from agents.learn.replay import ReplayBuffer
from agents.policies.epsilon_greedy import EpsilonGreedyPolicy
from rlvr_envs import exact
from tests.agents import corridor
from tests.agents.agent_cases import playing_policy, sort_env
from tests.agents.trajectories import trajectory
from verifiers import InvalidArgumentError

V = 4


def filled(*trajectories: Any, size: int = 8, bootstraps: bool = False) -> ReplayBuffer:
    buffer = ReplayBuffer(size, V)
    buffer.add(trajectories, bootstraps=bootstraps)
    return buffer


def test_transitions_of_tokens_end_before_the_next_own_token() -> None:
    """Two prompt tokens, an action, a token of the environment with a reward of its own, and another action."""
    one = trajectory([0, 0, 1, 0, 1], tokens=[1, 2, 3, 1, 2], rewards=[0, 0, 0.5, 0.25, 2])
    batch, legal = filled(one).sample(np.arange(2))
    assert batch.tokens.tolist() == [[1, 2, 3, 1, 0], [1, 2, 3, 1, 2]]
    assert batch.lengths.tolist() == [4, 5]
    assert batch.loss_mask.tolist() == [[False, False, True, False, False], [False, False, False, False, True]]
    assert batch.scores.tolist() == [0.75, 2.0]
    assert batch.rewards.sum(dim=1).tolist() == [0.75, 2.0]
    assert batch.truncated.tolist() == [True, False]
    assert legal.all()


def test_transitions_of_vectors_are_pairs_of_states() -> None:
    shown = np.arange(6, dtype=np.float32).reshape(3, 2)
    one = trajectory([0, 1, 1], tokens=[0, 3, 1], rewards=[0, 1, 2], observations=shown)
    batch, _ = filled(one).sample(np.arange(2))
    assert batch.tokens.tolist() == [[0, 3], [3, 1]]
    assert batch.loss_mask.tolist() == [[False, True]] * 2
    assert batch.observations is not None
    np.testing.assert_array_equal(batch.observations, [shown[:2], shown[1:]])


@pytest.mark.parametrize(
    ("terminated", "bootstraps", "goes_on"), [(True, True, False), (False, True, True), (False, False, False)]
)
def test_a_time_limit_goes_on_if_asked(terminated: bool, bootstraps: bool, goes_on: bool) -> None:
    one = trajectory([0, 1], terminated=terminated, truncated=not terminated)
    assert filled(one, bootstraps=bootstraps).sample(np.zeros(1, np.int64))[0].truncated.tolist() == [goes_on]


def test_the_oldest_transitions_are_dropped_and_a_copy_holds_the_same() -> None:
    buffer, copy, rows = ReplayBuffer(3, V), ReplayBuffer(3, V), np.arange(3)
    for score in range(5):
        buffer.add([trajectory([0, 1] + [0] * score, rewards=[0, score] + [0] * score)], bootstraps=False)
    assert len(buffer) == 3
    assert sorted(buffer.sample(rows)[0].scores.tolist()) == [2, 3, 4]
    copy.load_state_dict(buffer.state_dict())
    samples = []
    for one in (buffer, copy):
        one.add([trajectory([0, 1])], bootstraps=False)
        samples.append(dataclasses.astuple(one.sample(rows)[0]))
    for mine, other in zip(*samples, strict=True):
        assert torch.equal(mine, other) if isinstance(mine, torch.Tensor) else mine == other


def test_legal_tokens_are_those_of_the_next_state() -> None:
    masks = np.packbits(np.array([[1, 1, 1, 1], [1, 1, 0, 0], [0, 0, 1, 1]], dtype=bool), axis=1)
    buffer = filled(trajectory([0, 1, 1], action_masks=masks), size=2, bootstraps=True)
    assert buffer.sample(np.arange(2))[1].tolist() == [[False, False, True, True]] * 2


@pytest.mark.parametrize("double", [False, True])
def test_targets_by_hand(double: bool) -> None:
    """After token 1 action 2 is best, of the legal ones 0, and by the target network of those 3; then the episode ends."""
    values = [[0.0] * 4, [5.0, 4.0, 9.0, 3.0], [1.0, 2.0, 3.0, 4.0], [0.0] * 4]  # row x: of the state after token x
    target = [[0.0] * 4, [10.0, 20.0, 90.0, 40.0], [0.0] * 4, [0.0] * 4]
    table = torch.nn.Embedding.from_pretrained(torch.tensor(values), freeze=False)
    agent = DQN(TorchPolicy(table, torch.nn.Identity()), DQNConfig(gamma=0.5, double=double))
    agent.target.model["body"].weight.data = torch.tensor(target)
    masks = np.packbits(np.array([[1, 1, 1, 1], [1, 1, 1, 1], [1, 1, 0, 1]], dtype=bool), axis=1)
    one = trajectory([0, 1, 1], tokens=[2, 1, 0], rewards=[0, 1, 7], action_masks=masks)
    made, wanted = agent.values_and_targets(*filled(one).sample(np.arange(2)))
    assert made.tolist() == [2.0, 5.0]  # of action 1 after token 2, and of action 0 after token 1
    assert wanted.tolist() == [1 + 0.5 * (10.0 if double else 40.0), 7.0]
    assert not wanted.requires_grad


def test_a_dueling_layer_has_the_value_as_its_mean() -> None:
    policy = MLPPolicy(2, 3, dueling=True, seed=1)
    head, states = policy.model["head"], torch.randn(5, 64, generator=torch.Generator().manual_seed(0))
    values = head(states)
    torch.testing.assert_close(values.mean(dim=1), head.value(states)[:, 0])
    advantage = head.advantage(states)
    torch.testing.assert_close(values - values[:, :1], advantage - advantage[:, :1])


def test_values_of_a_language_model_are_its_logits() -> None:
    env = sort_env("dqn")
    policy = playing_policy(env)
    agent = DQN(policy, DQNConfig())
    trajectories, _ = agent.collect(env, 0)
    agent.buffer.add(trajectories, bootstraps=True)
    batch, _ = agent.buffer.sample(np.arange(5))
    before, after = action_values(policy, batch)
    for row in range(5):
        length, action = int(batch.lengths[row]), int(batch.loss_mask[row].int().argmax())
        with torch.no_grad():
            logits = policy.model(batch.tokens[row : row + 1, :length]).logits[0]
        torch.testing.assert_close(before[row], logits[action - 1], rtol=1e-4, atol=1e-5)
        torch.testing.assert_close(after[row], logits[length - 1], rtol=1e-4, atol=1e-5)


def test_epsilon_greedy_draws_legal_tokens_as_often_as_it_says() -> None:
    """Over 20 000 rows, with 5 standard deviations of the counts."""
    count, epsilon = 20_000, 0.4
    policy = TorchPolicy(torch.nn.Embedding.from_pretrained(torch.tensor([[0.0, 3.0, 1.0, 9.0]])), torch.nn.Identity())
    acting = EpsilonGreedyPolicy(policy.at_temperature(0.0), V, epsilon)
    acting.begin(np.arange(count), np.random.default_rng(0).integers(2**63, size=count).astype(np.uint64))
    observation: Any = {"tokens": np.zeros((count, 3), np.int32), "length": np.ones((count, 1), np.int32)}
    mask = np.tile(np.array([1, 1, 1, 0], dtype=np.int8), (count, 1))
    action = acting.act(observation, action_mask=mask)
    again = acting.act(observation, action_mask=mask)
    np.testing.assert_array_equal(action.tokens, again.tokens)
    probabilities = np.array([epsilon / 3, epsilon / 3 + 1 - epsilon, epsilon / 3, 0])
    counts = np.bincount(action.tokens[:, 0], minlength=V)
    assert (np.abs(counts - count * probabilities) <= 5 * np.sqrt(count * probabilities * (1 - probabilities))).all()
    np.testing.assert_allclose(np.exp(action.logprobs[:, 0]), probabilities[action.tokens[:, 0]], rtol=1e-5)


def test_the_greedy_policy_is_the_best_one_in_a_maze_of_states() -> None:
    """The greedy return of every problem is the best one by dynamic programming."""
    env = make_any_vec("MazeState", 16, {"layout": corridor.LAYOUT, "step_reward": -0.1}, {})
    config = DQNConfig.for_control(
        learner=LearnerConfig(learning_rate=5e-3),
        learn_from=100,
        target_every=20,
        batch_size=32,
        tokens_per_update=4.0,
        epsilon_tokens=600,
        gamma=0.9,
    )
    agent = DQN(MLPPolicy.for_env(env, hidden=(32,)), config)
    agent.learn(env, steps=12)
    single = env.envs[0].unwrapped
    best = exact.optimal_values(exact.state_mdp(single), horizon=single.max_steps).state[-1]
    evaluation = agent.evaluate(env, problems=100)
    starts = [int(one.observations[0].argmax()) for one in evaluation.trajectories if one.observations is not None]
    assert [row.score for row in evaluation.rows] == pytest.approx(best[starts].tolist())


def test_a_resumed_agent_goes_on_as_if_never_stopped(tmp_path: Path) -> None:
    def make() -> DQN:
        config = DQNConfig.for_control(problems_per_step=8, learn_from=20, target_every=3, batch_size=8)
        return DQN(MLPPolicy.for_env(env), config)

    env = make_any_vec("MazeState", 4, {"layout": corridor.LAYOUT}, {})
    whole, first, second = make(), make(), make()
    whole.learn(env, steps=3)
    first.learn(env, steps=2)
    assert first.updates > 3
    first.save(tmp_path / "saved")
    second.load(tmp_path / "saved")
    second.learn(env, steps=3)
    for ours, theirs in ((whole.policy, second.policy), (whole.target, second.target)):
        assert all(map(torch.equal, ours.model.parameters(), theirs.model.parameters()))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"kl_coefficient": 0.1}, "kl_coefficient=0.1 would have no effect here.*no policy gradient"),
        ({"epochs": 2}, "no policy gradient.*epochs=2"),
        ({"lag": 1}, "lag must be 0"),
        ({"truncation": "mask"}, "truncation rules 'score' and 'bootstrap', got 'mask'"),
        ({"critic": CriticConfig()}, "dqn has no critic"),
        ({"buffer_size": 10}, "learn_from must be at most buffer_size=10, got 500"),
    ],
)
def test_settings_that_dqn_can_not_have(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        DQNConfig(**settings)


def test_what_dqn_does_not_have() -> None:
    env = sort_env("dqn")
    agent = DQN(playing_policy(env), DQNConfig())
    batch = make_batch([trajectory([0, 1])])
    for call, message in (
        (lambda: agent.advantages(batch), "no policy gradient"),
        (lambda: agent.loss(batch, batch.logprobs, batch.rewards), "no policy gradient"),
        (lambda: agent.evaluate(env, greedy=False), "evaluated greedily"),
    ):
        with pytest.raises(InvalidArgumentError, match=message):
            call()
