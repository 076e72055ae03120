"""Exact values against numbers worked out by hand, the real environments, and properties that must hold."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from rlvr_envs import exact
from rlvr_envs.tasks import GridWorld, Maze
from rlvr_envs.worlds import World
from verifiers import InvalidArgumentError

LEFT, DOWN, RIGHT, UP = range(4)
MAZE = exact.world_mdp(Maze().world)
"""States in order: (0, 0), (0, 1), (1, 0) the start, (1, 1)."""

SQUARE = exact.world_mdp(World(2, 2, (0, 0), ((1, 1),), step_reward=-0.01))
"""States in order: (0, 0) the start, (0, 1), (1, 0)."""


def random_mdp(rng: np.random.Generator, states: int = 4, actions: int = 3) -> exact.FiniteMDP:
    transition = rng.dirichlet(np.ones(states + 1), size=(states, actions))[:, :, :-1]  # the last outcome is the end
    return exact.FiniteMDP(transition, rng.normal(size=(states, actions)), rng.dirichlet(np.ones(states)))


def test_optimal_values_of_the_maze_by_hand() -> None:
    values = exact.optimal_values(MAZE, gamma=0.9)
    np.testing.assert_allclose(values.state, [0.9**3 * 10, 10.0, 0.9**2 * 10, 0.9 * 10], rtol=1e-14)
    # In (1, 1): left to the start, nowhere, into the trap, up.
    np.testing.assert_allclose(values.action[3], [0.9**3 * 10, 0.9**2 * 10, -10.0, 9.0], rtol=1e-14)
    np.testing.assert_array_equal(exact.greedy_policy(values)[[2, 3, 1]].argmax(axis=1), [RIGHT, UP, RIGHT])
    np.testing.assert_array_equal(exact.optimal_values(MAZE).state, [10.0] * 4)


def test_values_of_random_moves_in_the_square_by_hand() -> None:
    """v = -0.01 + v/2 + w/2 and w = -0.01 + w/2 + v/4 + 1/4 give v = 0.92 and w = 0.94."""
    values = exact.policy_values(SQUARE, exact.uniform_policy(SQUARE))
    np.testing.assert_allclose(values.state, [0.92, 0.94, 0.94], rtol=1e-13)
    np.testing.assert_allclose(values.action[1], [0.91, 0.99, 0.93, 0.93], rtol=1e-13)


@pytest.mark.parametrize("n", [2, 4, 6])
def test_the_optimal_return_of_the_grid_is_one_less_the_steps_it_takes(n: int) -> None:
    env = gymnasium.make("rlvr/GridWorld-v0", n=n, split="test")
    lengths = [len(str(GridWorld("test", n)[at].metadata["gold_completion"])) for at in range(env.num_problems)]
    np.testing.assert_allclose(exact.optimal_returns(env), 1 - 0.01 * np.array(lengths), rtol=1e-12)
    discounted = [0.9 ** (d - 1) - 0.01 * (1 - 0.9**d) / (1 - 0.9) for d in lengths]
    np.testing.assert_allclose(exact.optimal_returns(env, gamma=0.9), discounted, rtol=1e-12)


@settings(max_examples=50)
@given(seed=st.integers(0, 2**32), gamma=st.sampled_from([0.0, 0.5, 0.97, 1.0]), horizon=st.sampled_from([None, 1, 5]))
def test_bellmans_equations_hold(seed: int, gamma: float, horizon: int | None) -> None:
    rng = np.random.default_rng(seed)
    mdp = random_mdp(rng)
    policy = rng.dirichlet(np.ones(3), size=4)
    values = exact.policy_values(mdp, policy, gamma=gamma, horizon=horizon)
    optimal = exact.optimal_values(mdp, gamma=gamma, horizon=horizon)
    for result, state_of in ((values, lambda q: (policy * q).sum(axis=-1)), (optimal, lambda q: q.max(axis=-1))):
        assert horizon is None or not result.state[0].any()
        np.testing.assert_allclose(result.state, state_of(result.action), atol=1e-9)
        following = result.state if horizon is None else result.state[:-1]
        action = result.action if horizon is None else result.action[1:]
        expected = mdp.reward + gamma * np.einsum("sat,...t->...sa", mdp.transition, following)
        np.testing.assert_allclose(action, expected, atol=1e-9)
    assert (optimal.state >= values.state - 1e-9).all()
    assert np.abs((policy * values.advantage).sum(axis=-1)).max() < 1e-9
    # The greedy policy attains the optimum.
    greedy = exact.policy_values(mdp, exact.greedy_policy(optimal), gamma=gamma, horizon=horizon)
    np.testing.assert_allclose(greedy.state, optimal.state, atol=1e-8)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: exact.policy_values(MAZE, np.ones((4, 4))), "sum to 1"),
        (lambda: exact.policy_values(MAZE, np.ones((4, 3)) / 3), r"of shape \(4, 4\) \(states, actions\); got shape"),
        (lambda: exact.policy_values(MAZE, np.full((2, 4, 4), 0.25), horizon=3), r"or \(3, 4, 4\), for 1 to 3 steps"),
        (lambda: exact.policy_values(MAZE, np.eye(4)), "never ends the episode"),
        (lambda: exact.optimal_values(MAZE, gamma=1.1), r"a discount must be in \[0, 1\], got 1.1"),
        (lambda: exact.optimal_values(MAZE, horizon=0), "horizon must be a whole number at least 1, got 0"),
        (lambda: exact.FiniteMDP(np.zeros((2, 1, 2)), np.zeros((2, 1)), np.ones(3)), r"start \(s,\); got"),
        (lambda: exact.FiniteMDP(np.full((2, 1, 2), 0.6), np.zeros((2, 1)), np.ones(2) / 2), "sum to at most 1"),
        (lambda: exact.FiniteMDP(np.zeros((1, 1, 1)), np.full((1, 1), np.nan), np.ones(1)), "finite numbers"),
    ],
)
def test_what_does_not_fit_is_named(call: Any, message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        call()


def test_a_return_without_bound_is_named_and_a_discount_or_horizon_bounds_it() -> None:
    world = World(1, 2, (0, 0), ((0, 1),), step_reward=0.5, goal_reward=0.0)
    mdp = exact.world_mdp(world)
    with pytest.raises(InvalidArgumentError, match=r"value iteration has not settled .* give a horizon or a discount"):
        exact.optimal_values(mdp)
    assert exact.optimal_values(mdp, gamma=0.5).state == pytest.approx([1.0])
    assert exact.optimal_values(mdp, horizon=7).state[-1] == pytest.approx([3.5])
