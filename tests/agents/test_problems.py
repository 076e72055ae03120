"""Which problems a step works on: all of them once in each epoch, as a pure function of seed and step."""

from __future__ import annotations

import itertools
from typing import Any

import gymnasium as gym
from hypothesis import given, settings, strategies as st

from agents.rollouts.problem_order import episodes_of_step, problems_of_step
from agents.rollouts.vector_adapter import num_problems
from agents.seeding import episode_seeds
from tests.agents.test_sampling import WORD, splitmix
from tests.envs.helpers import PROBLEMS, vector_env

SIZES = st.integers(1, 30)


@settings(max_examples=60)
@given(SIZES, st.integers(1, 12), st.integers(-(2**63), 2**64))
def test_every_problem_comes_once_in_each_epoch(size: int, per_step: int, seed: int) -> None:
    steps = -(-3 * size // per_step)
    drawn = [problem for step in range(steps) for problem in problems_of_step(size, step, per_step, seed)]
    for epoch in range(3):
        assert sorted(drawn[epoch * size : (epoch + 1) * size]) == list(range(size))


@settings(max_examples=40)
@given(SIZES, st.integers(1, 12), st.randoms(use_true_random=False))
def test_a_step_does_not_depend_on_what_was_asked_before(size: int, per_step: int, random: Any) -> None:
    steps = list(range(10))
    in_order = {step: problems_of_step(size, step, per_step, 5) for step in steps}
    random.shuffle(steps)
    for step in steps:
        problems_of_step(size + 1, step, per_step, 5)
        problems_of_step(size, step, per_step, 6)
        assert problems_of_step(size, step, per_step, 5) == in_order[step]


def test_the_size_of_steps_does_not_change_the_order() -> None:
    def drawn(per_step: int) -> list[int]:
        steps = range(24 // per_step)
        return list(itertools.chain.from_iterable(problems_of_step(10, step, per_step, 1) for step in steps))

    assert drawn(1) == drawn(3) == drawn(8) == drawn(24)


def test_epochs_and_seeds_have_orders_of_their_own() -> None:
    epochs = [tuple(problems_of_step(20, step, 20, seed)) for seed in range(10) for step in range(10)]
    assert len(set(epochs)) == 100


def test_a_long_seed_does_not_run_into_the_epoch() -> None:
    """A seed of more than 32 bits is two words to NumPy, and the epoch is another."""
    assert problems_of_step(20, 0, 20, 2**32) != problems_of_step(20, 1, 20, 0)
    assert problems_of_step(20, 0, 20, 7 + 3 * 2**32) != problems_of_step(20, 3, 20, 7)


# Seeds


@settings(max_examples=50)
@given(st.integers(-(2**63), 2**64), st.integers(0, 2**63 + 5))
def test_episode_seeds_equal_integer_arithmetic(seed: int, stream: int) -> None:
    base = splitmix(splitmix(seed % WORD) ^ (stream % WORD))
    expected = [splitmix(base ^ splitmix(index)) for index in range(4)]
    assert episode_seeds(seed, stream, 4).tolist() == expected


# Episodes


def test_episodes_of_a_step_are_whole_groups() -> None:
    env = vector_env(2)
    for step in range(4):
        episodes = episodes_of_step(env, step, 3, 4, 9)
        assert [episode.group for episode in episodes] == [0] * 4 + [1] * 4 + [2] * 4
        problems = problems_of_step(len(PROBLEMS), step, 3, 9)
        assert [episode.problem for episode in episodes] == [problem for problem in problems for _ in range(4)]
        assert [episode.seed for episode in episodes] == episode_seeds(9, step, 12).tolist()


class Endless(gym.vector.VectorEnv[Any, Any, Any]):
    """An environment that does not say how many problems it has."""


def test_an_environment_that_does_not_say_its_size_draws_by_itself() -> None:
    episodes = episodes_of_step(Endless(), 0, 6, 1, 0)
    assert [episode.problem for episode in episodes] == [-1] * 6
    assert [episode.group for episode in episodes] == list(range(6))
    assert len({episode.seed for episode in episodes}) == 6


def test_members_of_a_group_share_the_seed_of_an_environment_that_draws() -> None:
    seeds = [[episode.env_seed for episode in episodes_of_step(Endless(), step, 2, 3, 0)] for step in range(50)]
    for one in seeds:
        assert one == [one[0]] * 3 + [one[3]] * 3
    assert len({seed for one in seeds for seed in one}) == 100
    assert seeds[7] == [episode.env_seed for episode in episodes_of_step(Endless(), 7, 2, 3, 0)]
    assert seeds[7] != [episode.env_seed for episode in episodes_of_step(Endless(), 7, 2, 3, 1)]
    assert {episode.env_seed for episode in episodes_of_step(vector_env(1), 0, 2, 3, 0)} == {None}


def test_num_problems_looks_through_wrappers() -> None:
    assert num_problems(vector_env(1)) == len(PROBLEMS)
    assert num_problems(gym.wrappers.vector.RecordEpisodeStatistics(vector_env(1))) == len(PROBLEMS)
    assert num_problems(Endless()) is None
