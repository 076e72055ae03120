"""Tabular control against exact values: the fixed points of its updates, what methods have in common, and biases."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

from agents import (
    SARSA,
    DoubleQLearning,
    DoubleQLearningConfig,
    ExpectedSARSA,
    ExpectedSARSAConfig,
    MonteCarlo,
    MonteCarloConfig,
    QLearning,
    QLearningConfig,
    SARSAConfig,
    Transition,
    tabular_classes,
)
from agents.tables.action_values import ActionValueAgent
from rlvr_envs import exact
from rlvr_envs.tasks.gridworld import GridWorldStateEnv
from rlvr_envs.tasks.maze import MazeStateEnv
from verifiers import InvalidArgumentError

METHODS = ("monte-carlo", "sarsa", "expected-sarsa", "q-learning", "double-q-learning")
CORRIDOR = """
+---+---+---+---+
| S   T     | G |
+   +---+   +   +
|               |
+---+---+---+---+
"""


class Chance(gymnasium.Env[np.int64, np.int64]):
    """Spaces of a random process of 4 states and 3 actions; tests go through its table and play no episode."""

    def __init__(self) -> None:
        self.observation_space: Any = spaces.Discrete(4)
        self.action_space: Any = spaces.Discrete(3)


def chance_mdp() -> exact.FiniteMDP:
    """An action goes on in one of the states or, with probability 0.2 at least, ends the episode; rewards are of both signs."""
    generator = np.random.default_rng(3)
    transition = generator.dirichlet(np.ones(5), size=(4, 3))[..., :4] * 0.8
    return exact.FiniteMDP(transition, generator.normal(size=(4, 3)), np.full(4, 0.25))


def sweep_to_the_end(agent: ActionValueAgent, mdp: exact.FiniteMDP, target: Callable[[Transition], float]) -> None:
    """Update every action in every state by its expected target, until nothing changes any more."""
    for _ in range(400):
        before = agent.values.copy()
        for state, action in np.ndindex(*mdp.reward.shape):
            reward = float(mdp.reward[state, action])
            onward = mdp.transition[state, action]
            expected = (1 - onward.sum()) * target(Transition(state, action, reward, 0, True, False))
            expected += sum(
                probability * target(Transition(state, action, reward, following, False, False))
                for following, probability in enumerate(onward.tolist())
            )
            agent.move_towards(state, action, float(expected))
        if np.abs(agent.values - before).max() < 1e-12:
            return
    raise AssertionError("the updates do not settle")


# Exact values


def test_the_expected_update_of_q_learning_settles_at_the_best_values() -> None:
    mdp = chance_mdp()
    agent = QLearning(Chance(), QLearningConfig(gamma=0.9, step_size=1.0))
    sweep_to_the_end(agent, mdp, agent.target)
    np.testing.assert_allclose(agent.values, exact.optimal_values(mdp, gamma=0.9).action, atol=1e-9)


@pytest.mark.parametrize("epsilon", [0.0, 0.3, 1.0])
def test_the_expected_update_of_expected_sarsa_settles_at_the_values_of_its_own_policy(epsilon: float) -> None:
    """At ε = 0 these are the best values."""
    mdp = chance_mdp()
    agent = ExpectedSARSA(Chance(), ExpectedSARSAConfig(gamma=0.9, step_size=1.0, epsilon=epsilon))
    sweep_to_the_end(agent, mdp, agent.target)
    policy = np.array([agent.probabilities(state, epsilon) for state in range(4)])
    truth = exact.policy_values(mdp, policy, gamma=0.9).action
    np.testing.assert_allclose(agent.values, truth, atol=1e-9)
    best = exact.optimal_values(mdp, gamma=0.9).action
    assert (np.abs(truth - best).max() < 1e-9) == (epsilon == 0)


@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize("env_class", [MazeStateEnv, GridWorldStateEnv])
def test_every_method_finds_the_best_policy(name: str, env_class: Any) -> None:
    """Its greedy return on every problem is the best one, by dynamic programming."""
    env = env_class(layout=CORRIDOR, step_reward=-0.1) if env_class is MazeStateEnv else env_class(n=2)
    cls, config = tabular_classes(name)
    agent = cls(env, config(gamma=0.9, step_size=0.5, epsilon=1.0, epsilon_end=0.05, epsilon_steps=30, seed=1))
    agent.learn(env, steps=60)
    best = exact.optimal_values(exact.state_mdp(env), horizon=env.max_steps).state[-1]
    for row in agent.evaluate(env, greedy=True).rows:
        assert row.score == pytest.approx(best[env.dataset.start(row.problem)])


# What methods have in common


def played(agent: ActionValueAgent, env: MazeStateEnv, steps: int) -> list[list[Transition]]:
    """Let an agent learn, and return the transitions of each episode."""
    episodes: list[list[Transition]] = []
    begin, observe = agent.begin_episode, agent.observe

    def begins(state: int) -> None:
        episodes.append([])
        begin(state)

    def observes(transition: Transition) -> None:
        episodes[-1].append(transition)
        observe(transition)

    agent.begin_episode, agent.observe = begins, observes  # type: ignore[method-assign]
    agent.learn(env, steps=steps)
    return episodes


def relearn(agent: ActionValueAgent, episodes: list[list[Transition]]) -> np.ndarray:
    """Show an agent given episodes, and return its values."""
    for episode in episodes:
        agent.begin_episode(episode[0].state)
        for transition in episode:
            agent.observe(transition)
        agent.end_episode(episode)
    return agent.values


@pytest.fixture
def env() -> MazeStateEnv:
    """A maze with a price of moves, where many episodes reach the time limit."""
    return MazeStateEnv(layout=CORRIDOR, step_reward=-0.25, max_steps=12)


def test_expected_sarsa_about_the_greedy_policy_is_q_learning(env: MazeStateEnv) -> None:
    q_learning = QLearning(env, QLearningConfig(epsilon=0.4, step_size=0.3))
    episodes = played(q_learning, env, steps=8)
    greedy = ExpectedSARSA(env, ExpectedSARSAConfig(epsilon=0.4, step_size=0.3, target_epsilon=0.0))
    np.testing.assert_allclose(relearn(greedy, episodes), q_learning.values, rtol=0, atol=1e-12)


@pytest.mark.parametrize("steps_ahead", [12, 50, None])
def test_sarsa_that_looks_past_the_end_is_monte_carlo(env: MazeStateEnv, steps_ahead: int | None) -> None:
    monte_carlo = MonteCarlo(env, MonteCarloConfig(epsilon=0.4, step_size=0.3))
    episodes = played(monte_carlo, env, steps=8)
    sarsa = SARSA(env, SARSAConfig(epsilon=0.4, step_size=0.3, steps_ahead=steps_ahead))
    np.testing.assert_array_equal(relearn(sarsa, episodes), monte_carlo.values)


def test_n_steps_by_hand(env: MazeStateEnv) -> None:
    """γ = 0.5, α = 1, values of 8 everywhere: two steps ahead, then what is left of an episode that ends, or is cut off."""
    settings: dict[str, Any] = {"gamma": 0.5, "step_size": 1.0, "initial_value": 8.0, "epsilon": 0.0}
    episode = [Transition(state, 0, 1.0, state + 1, False, False) for state in range(3)]
    ends = [*episode[:2], episode[2]._replace(terminated=True)]
    values = relearn(SARSA(env, SARSAConfig(steps_ahead=2, **settings)), [ends])
    assert values[:3, 0].tolist() == [1 + 0.5 + 0.25 * 8, 1 + 0.5, 1]
    cut = [*episode[:2], episode[2]._replace(truncated=True)]
    values = relearn(SARSA(env, SARSAConfig(steps_ahead=2, **settings)), [cut])
    assert values[:3, 0].tolist() == [1 + 0.5 + 0.25 * 8, 1 + 0.5 + 0.25 * 8, 1 + 0.5 * 8]
    assert values[3, 0] == 8


@pytest.mark.parametrize(("first_visit", "expected"), [(True, 7.0), (False, 4.0)])
def test_first_visits_by_hand(env: MazeStateEnv, first_visit: bool, expected: float) -> None:
    """One action, made at the start and again before a last reward: its mean return is (7 + 1) / 2, or that of the first."""
    agent = MonteCarlo(env, MonteCarloConfig(gamma=1.0, step_size=1.0, step_decay=1.0, first_visit=first_visit))
    episode = [Transition(0, 0, 6.0, 0, False, False), Transition(0, 0, 1.0, 1, True, False)]
    assert relearn(agent, [episode])[0, 0] == expected


# The bias of the maximum


def test_the_maximum_is_biased_and_two_tables_are_not() -> None:
    """The state of Sutton & Barto's example 6.7: ten actions, all with rewards of mean -0.1 and variance 1.

    After four rewards of each action in each table the best mean of n independent N(-0.1, 1/4) is expected at
    -0.1 + m_n / 2, with m_10 = 1.5388 the mean of the largest of ten standard normal numbers (Harter 1961). What one table says
    of the action that the other finds best has mean -0.1. Both within 5 standard errors over 500 repetitions.
    """
    generator = np.random.default_rng(0)
    env = Chance()
    env.action_space = spaces.Discrete(10)
    bias, double_bias = [], []
    for _ in range(500):
        settings: dict[str, Any] = {"gamma": 1.0, "step_size": 1.0, "step_decay": 1.0}
        single = QLearning(env, QLearningConfig(**settings))
        double = DoubleQLearning(env, DoubleQLearningConfig(**settings))
        for action, reward in zip(np.repeat(np.arange(10), 4), generator.normal(-0.1, 1, size=40), strict=True):
            single.observe(Transition(1, int(action), float(reward), 0, True, False))
        for table in (double.values, double.other_values):
            rewards = generator.normal(-0.1, 1, size=(10, 4))
            table[1] = rewards.mean(axis=1)
        enters = Transition(0, 0, 0.0, 1, False, False)
        bias.append(single.target(enters))
        double_bias.append(double.target(enters, double.values, double.other_values))
    for sample, mean in ((bias, -0.1 + 1.5388 / 2), (double_bias, -0.1)):
        assert abs(np.mean(sample) - mean) < 5 * np.std(sample) / np.sqrt(len(sample))
    assert np.mean(bias) > 0.4


def test_both_tables_learn_equally_often_and_each_alone() -> None:
    agent = DoubleQLearning(Chance(), DoubleQLearningConfig(step_size=1.0))
    learned = 0
    for _ in range(400):
        before = agent.values.copy()
        agent.observe(Transition(0, 0, float(agent.counts.sum() + 1), 0, True, False))
        learned += int((before != agent.values).any())
    assert 150 < learned < 250  # 200, with a standard deviation of 10


# Settings, checkpoints


@pytest.mark.parametrize("name", METHODS)
def test_a_resumed_agent_goes_on_as_if_never_stopped(name: str, env: MazeStateEnv, tmp_path: Path) -> None:
    cls, config = tabular_classes(name)
    whole, first, second = (cls(env, config(step_decay=0.5)) for _ in range(3))
    whole.learn(env, steps=6)
    first.learn(env, steps=3)
    first.save(tmp_path / "saved")
    second.load(tmp_path / "saved")
    second.learn(env, steps=6)
    for table, value in whole.tables().items():
        np.testing.assert_array_equal(second.tables()[table], value)


def test_exploration_falls_linearly(env: MazeStateEnv) -> None:
    agent = QLearning(env, QLearningConfig(epsilon=0.9, epsilon_end=0.1, epsilon_steps=4))
    seen = []
    for _ in range(6):
        seen.append(agent.epsilon())
        agent.steps += 1
    assert seen == pytest.approx([0.9, 0.7, 0.5, 0.3, 0.1, 0.1])


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"epsilon_steps": 10}, "epsilon_steps=10 has no effect, since epsilon stays as it is: set epsilon_end"),
        ({"epsilon": 0.001, "epsilon_end": 0.01}, "epsilon_end must be at most epsilon=0.001, .* got 0.01"),
    ],
)
def test_exploration_that_does_not_fall_is_refused_before_learning(settings: dict[str, Any], message: str) -> None:
    env = Chance()
    agent = QLearning(env, QLearningConfig(**settings))  # so that agents saved with them can be loaded
    with pytest.raises(InvalidArgumentError, match=message):
        agent.learn(env, steps=1)
