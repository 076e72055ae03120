"""The plain environments with numbered states play exactly what the token environments play."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.error import ResetNeeded
from gymnasium.utils.env_checker import check_env

import rlvr_envs
from rlvr_envs import exact
from rlvr_envs.worlds import Branch, Process, Walk, move_tokens, world_of
from verifiers import InvalidArgumentError, UnknownArgumentError

WALKS = [
    ("GridWorld", {}),
    ("GridWorld", {"n": 3, "split": "test", "step_reward": -0.5}),
    ("Maze", {"step_reward": -0.3}),
]


def state_env(name: str, **options: Any) -> rlvr_envs.StateEnv:
    env = gymnasium.make(f"rlvr/{name}State-v0", **options).unwrapped
    assert isinstance(env, rlvr_envs.StateEnv)
    return env


@pytest.mark.parametrize("env_id", rlvr_envs.STATE_ENVIRONMENTS)
def test_gymnasiums_checker_accepts_it(env_id: str) -> None:
    check_env(gymnasium.make(env_id, render_mode="ansi").unwrapped, skip_render_check=False)


@pytest.mark.parametrize(("name", "options"), WALKS)
def test_walks_are_those_of_the_token_environment(name: str, options: dict[str, Any]) -> None:
    """Same seed, same problem, and after each move the same cell, reward and flags."""
    plain, tokens = state_env(name, **options), gymnasium.make(f"rlvr/{name}-v0", **options).unwrapped
    assert isinstance(tokens, rlvr_envs.TaskEnv)
    moves, walk = move_tokens(tokens.tokenizer), Walk(tokens.tokenizer)
    actions = np.random.default_rng(0)
    ends = set()
    for seed in range(30):
        state, info = plain.reset(seed=seed)
        observation, told = tokens.reset(seed=seed)
        assert info == {name: told[name] for name in info}
        prompt, over = int(observation["length"][0]), False
        problem = tokens.streams.dataset[info["problem_index"]]
        while not over:
            cell = walk.cell(observation["tokens"][: observation["length"][0]], prompt, problem)
            assert plain.process.states[state].startswith(f"{cell[0]}{cell[1]}")
            move = int(actions.integers(4))
            state, reward, *flags, _ = plain.step(move)
            observation, paid, *ended, _ = tokens.step(moves[move])
            assert (reward, flags) == (paid, ended)
            over = any(flags)
        ends.add(tuple(flags))
    assert ends == {(True, False), (False, True)}


@pytest.mark.parametrize(("name", "options"), WALKS)
def test_values_are_those_of_the_worlds(name: str, options: dict[str, Any]) -> None:
    """The values of a world's process, in the states of the whole."""
    env = state_env(name, **options)
    whole = exact.optimal_values(exact.state_mdp(env), gamma=0.9)
    for index in range(min(env.num_problems, 20)):
        world = world_of(env.dataset[index])
        mdp = exact.world_mdp(world)
        alone = exact.expected_return(mdp, exact.optimal_values(mdp, gamma=0.9))
        np.testing.assert_allclose(whole.state[env.dataset.start(index)], alone, rtol=1e-12)


@pytest.mark.parametrize(
    ("name", "options"), [("GridWorld", {"n": 3}), ("Maze", {}), ("FrozenLake", {}), ("CliffWalk", {})]
)
@pytest.mark.parametrize("gamma", [0.0, 0.95])
def test_policy_iteration_finds_the_values_of_value_iteration(name: str, options: dict[str, Any], gamma: float) -> None:
    mdp = exact.state_mdp(state_env(name, **options))
    policy, values = exact.policy_iteration(mdp, gamma=gamma)
    optimal = exact.optimal_values(mdp, gamma=gamma)
    np.testing.assert_allclose(values.action, optimal.action, atol=1e-9)
    assert ((policy == 0) | (policy == 1)).all()
    assert (exact.greedy_policy(optimal)[policy == 1] > 0).all()


def test_policy_iteration_refuses_what_may_not_end() -> None:
    with pytest.raises(InvalidArgumentError, match=r"discount in \[0, 1\), got 1.0"):
        exact.policy_iteration(exact.state_mdp(state_env("Maze")), gamma=1.0)


def test_bad_input_is_named() -> None:
    env = state_env("Maze")
    with pytest.raises(ResetNeeded):
        env.step(0)
    env.reset(seed=0)
    with pytest.raises(InvalidArgumentError, match="an integer from 0 to 3, got 4"):
        env.step(4)
    with pytest.raises(InvalidArgumentError, match="problem 1 does not exist"):
        env.reset(options={"problem": 1})
    with pytest.raises(UnknownArgumentError, match="max_step"):
        state_env("Maze", max_step=3)
    with pytest.raises(InvalidArgumentError, match="max_steps"):
        state_env("Maze", max_steps=0)


def test_an_action_against_the_odds_is_refused() -> None:
    with pytest.raises(InvalidArgumentError, match="action 'R' in state 'a' must sum to 1"):
        Process(("a", "b"), "R", (((Branch(0.5, 1),),), ()))


def test_draws_have_the_probabilities_of_the_branches() -> None:
    """Within six standard errors, whatever the luck: 20 000 draws that are the same on every machine."""
    chances = (0.1, 0.6, 0.3)
    branches = tuple(Branch(chance, state) for state, chance in enumerate(chances))
    process = Process(("a", "b", "c"), "R", ((branches,), (), ()))
    drawn = [process.draw(0, 0, luck=3, step=step)[0] for step in range(20_000)]
    shares = np.bincount(drawn, minlength=3) / len(drawn)
    errors = np.sqrt(np.multiply(chances, np.subtract(1, chances)) / len(drawn))
    assert (np.abs(shares - chances) < 6 * errors).all()


def test_noise_is_normal() -> None:
    process = Process(("a", "b"), "R", (((Branch(1.0, 1, reward=2.0, noise=3.0),),), ()))
    rewards = np.array([process.draw(0, 0, luck=luck, step=0)[1] for luck in range(20_000)])
    error = 3 / np.sqrt(len(rewards))
    assert abs(rewards.mean() - 2) < 6 * error
    assert abs(rewards.std() - 3) < 6 * error
    assert abs((rewards < 5).mean() - 0.8413) < 6 * 0.5 / np.sqrt(len(rewards))
