"""The agents for bandits against exact arithmetic, proven bounds and ridge regression."""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import gymnasium
import numpy as np
import pytest
from numpy.typing import NDArray

pytest.importorskip("torch")

from agents import TabularAgent, Transition, tabular_classes
from agents.tables.bandits import BanditAgent
from rlvr_envs import StateEnv, exact
from verifiers import InvalidArgumentError, UnknownNameError

BANDITS = ("epsilon-greedy", "gradient-bandit", "ucb1", "thompson", "linucb")
MEANS = (0.3, 0.55, 0.8)


def state_env(name: str = "Bandit", **options: Any) -> StateEnv:
    env = gymnasium.make(f"rlvr/{name}State-v0", **options).unwrapped
    assert isinstance(env, StateEnv)
    return env


def bandit(name: str, env: Any = None, **settings: Any) -> Any:
    """An agent, by default for arms of `MEANS`."""
    cls, config = tabular_classes(name)
    return cls(state_env(means=MEANS) if env is None else env, config(**settings))


def pulled(agent: TabularAgent, action: int, reward: float, state: int = 0) -> None:
    """Have an agent learn from one pull."""
    agent.observe(Transition(state, action, reward, agent.num_states - 1, terminated=True, truncated=False))


def play(agent: BanditAgent, means: Sequence[float], pulls: int, seed: int) -> NDArray[np.float64]:
    """The regret after each of some pulls of arms with rewards 0 and 1, f64[n]."""
    rng = np.random.default_rng(seed)
    luck = rng.random(pulls)
    arms = np.zeros(pulls, dtype=np.int64)
    for pull in range(pulls):
        arms[pull] = agent.choose(0, rng)
        pulled(agent, int(arms[pull]), float(luck[pull] < means[arms[pull]]))
    return np.cumsum(max(means) - np.asarray(means)[arms])


@pytest.mark.parametrize("name", BANDITS)
def test_incremental_means_are_batch_means(name: str) -> None:
    agent = bandit(name, state_env())
    rng = np.random.default_rng(1)
    pulls = [(int(rng.integers(5)), int(rng.integers(2))) for _ in range(300)]
    for arm, reward in pulls:
        pulled(agent, arm, reward)
    for arm in range(5):
        rewards = [reward for other, reward in pulls if other == arm]
        assert agent.counts[0, arm] == len(rewards)
        # Each of the n updates rounds three times.
        assert abs(agent.means[0, arm] - Fraction(sum(rewards), len(rewards))) <= 3 * len(rewards) * 2.0**-53


@pytest.mark.parametrize("baseline", [True, False])
def test_the_expected_update_of_the_gradient_bandit_is_the_exact_gradient(baseline: bool) -> None:
    """Summed over every arm and reward with their probabilities, whatever was learned before."""
    agent = bandit("gradient-bandit", step_size=0.25, baseline=baseline)
    rng = np.random.default_rng(0)
    for _ in range(40):
        pulled(agent, int(rng.integers(3)), float(rng.integers(2)))
    agent.preferences[0] = (0.4, -1.1, 0.2)
    policy = exact.softmax_policy(agent.preferences[0])
    expected = np.zeros(3)
    for arm, mean in enumerate(MEANS):
        for reward, chance in ((1.0, mean), (0.0, 1 - mean)):
            other = copy.deepcopy(agent)
            pulled(other, arm, reward)
            expected += policy[arm] * chance * (other.preferences[0] - agent.preferences[0])
    gradient = policy * (np.array(MEANS) - policy @ MEANS)
    np.testing.assert_allclose(expected / 0.25, gradient, atol=1e-14)
    assert np.abs(gradient).max() > 0.01


def test_the_first_reward_is_its_own_baseline() -> None:
    agent = bandit("gradient-bandit", state_env())
    pulled(agent, 2, 1.0)
    assert not agent.preferences.any()
    pulled(agent, 2, 0.0)
    assert agent.preferences[0, 2] == pytest.approx(-0.1 * 0.8, abs=1e-15)


def test_bounds_of_ucb1_by_hand() -> None:
    agent = bandit("ucb1")
    assert [agent.choose(0, np.random.default_rng(0)) for _ in range(2)] == [0, 0]
    for arm, reward in ((0, 1.0), (1, 0.0), (0, 0.0), (2, 1.0)):
        pulled(agent, arm, reward)
    bonus = [math.sqrt(2 * math.log(4) / count) for count in (2, 1, 1)]
    np.testing.assert_allclose(agent.bounds(0), [0.5 + bonus[0], bonus[1], 1 + bonus[2]], rtol=1e-15)


def test_bounds_of_the_regret_by_hand() -> None:
    expected = 8 * math.log(100) / 0.5 + (1 + math.pi**2 / 3) * 0.5
    assert exact.ucb1_bound((0.25, 0.75, 0.75), 100) == pytest.approx(expected, rel=1e-14)
    divergence = 0.25 * math.log(1 / 3) + 0.75 * math.log(3)
    assert exact.lai_robbins_slope((0.75, 0.25, 0.75)) == pytest.approx(0.5 / divergence, rel=1e-14)
    with pytest.raises(InvalidArgumentError, match="must be between 0 and 1"):
        exact.lai_robbins_slope((0.5, 1.5))


@pytest.mark.long
def test_the_regret_of_thompson_sampling_grows_with_the_slope_of_lai_and_robbins() -> None:
    """From 1 000 to 10 000 pulls: the interval of 4 standard errors over seeds, and 25 % for what is not yet infinity."""
    agents = [bandit("thompson") for _ in range(60)]
    runs = np.array([play(agent, MEANS, 10_000, seed) for seed, agent in enumerate(agents)])
    slopes = (runs[:, 9_999] - runs[:, 999]) / math.log(10)
    error = 4 * slopes.std(ddof=1) / math.sqrt(len(slopes))
    slope = exact.lai_robbins_slope(MEANS)
    assert slopes.mean() - error < 1.25 * slope
    assert slopes.mean() + error > 0.75 * slope
    assert error < slope


def assert_chosen(agent: BanditAgent, arm: int, chance: float) -> None:
    """An arm is chosen with this probability, within 6 standard errors."""
    rng = np.random.default_rng(0)
    share = np.mean([agent.choose(0, rng) == arm for _ in range(2000)])
    assert abs(share - chance) < 6 * math.sqrt(chance * (1 - chance) / 2000)


def test_draws_of_thompson_sampling_are_those_of_the_posterior() -> None:
    """Two arms, Beta(3, 2) and Beta(1, 1): the first is drawn higher with probability E[θ] = 3/5.

    Prior N(0, 4), noise 3, rewards 5 and 1: 1/v = 1/4 + 2/9, m = v 6/9; against an arm known to lie at 0.
    """
    agent = bandit("thompson", state_env(means=(0.5, 0.5)))
    for reward in (1.0, 1.0, 0.0):
        pulled(agent, 0, reward)
    assert_chosen(agent, 0, 0.6)
    env = state_env(means=(0.0, 0.0), rewards="normal")
    agent = bandit("thompson", env, rewards="normal", noise=3.0, prior_std=2.0)
    for reward in (5.0, 1.0):
        pulled(agent, 0, reward)
    agent.counts[0, 1] = 10**12
    variance = 1 / (1 / 4 + 2 / 9)
    assert_chosen(agent, 0, 0.5 * (1 + math.erf(variance * 6 / 9 / math.sqrt(2 * variance))))


def test_epsilon_greedy_explores_as_often_as_it_says() -> None:
    """With ε = 0.4 and 3 arms the best is chosen with probability 0.6 + 0.4 / 3; ties are broken at random."""
    agent = bandit("epsilon-greedy", epsilon=0.4)
    pulled(agent, 1, 1.0)
    assert_chosen(agent, 1, 0.6 + 0.4 / 3)
    undecided = bandit("epsilon-greedy", epsilon=0.0)
    for arm in range(3):
        assert_chosen(undecided, arm, 1 / 3)


def test_estimates_of_linucb_are_ridge_regression() -> None:
    """Against the normal equations of the whole data, solved by QR of the data with the penalty as further rows."""
    env = state_env("ContextualBandit", rewards="normal")
    agent = bandit("linucb", env, ridge=0.7, alpha=1.3)
    rng = np.random.default_rng(0)
    choices = [(int(rng.integers(16)), int(rng.integers(4)), float(rng.normal())) for _ in range(200)]
    for state, arm, reward in choices:
        pulled(agent, arm, reward, state)
    x = agent.features[6]
    for arm in range(4):
        mine = [(state, reward) for state, other, reward in choices if other == arm]
        data = np.concatenate([agent.features[[state for state, _ in mine]], math.sqrt(0.7) * np.eye(5)])
        rewards = np.array([reward for _, reward in mine] + [0.0] * 5)
        theta = np.linalg.lstsq(data, rewards, rcond=None)[0]
        np.testing.assert_allclose(agent.coefficients()[arm], theta, atol=1e-10)
        width = math.sqrt(x @ np.linalg.inv(data.T @ data) @ x)
        assert agent.bounds(6)[arm] == pytest.approx(theta @ x + 1.3 * width, abs=1e-10)


def test_epsilon_decays_with_the_choices_of_its_own_state() -> None:
    agent = bandit("epsilon-greedy", state_env("ContextualBandit"), epsilon=1.0, decay=3.0)
    assert agent.epsilon(0) == 1.0
    for _ in range(5):
        pulled(agent, 0, 1.0, state=2)
    assert (agent.epsilon(0), agent.epsilon(2)) == (1.0, 0.5)


@pytest.mark.parametrize("name", BANDITS)
def test_they_refuse_what_they_can_not_play(name: str) -> None:
    with pytest.raises(InvalidArgumentError, match="an episode of Maze goes on after it: use a bandit"):
        bandit(name, state_env("Maze"))
    with pytest.raises(InvalidArgumentError, match=r"needs numbered observations and actions.*BanditEnv has tokens"):
        bandit(name, gymnasium.make("rlvr/Bandit-v0"))
    with pytest.raises(InvalidArgumentError, match="CartPoleEnv shows vectors of 4 numbers: use an agent that trains"):
        bandit(name, gymnasium.make("CartPole-v1"))
    lake = gymnasium.make("FrozenLake-v1")
    with pytest.raises(InvalidArgumentError, match="this episode goes on after it"):
        bandit(name, lake).learn(lake, steps=3)


def test_kinds_of_rewards_that_are_wrong_or_unknown_are_named() -> None:
    env = state_env(rewards="normal")
    with pytest.raises(InvalidArgumentError, match=r"expects rewards of 0 and 1, got .*--rewards normal"):
        bandit("thompson", env).learn(env, steps=1)
    with pytest.raises(UnknownNameError, match="bernoulli, normal"):
        bandit("thompson", env, rewards="beta")
