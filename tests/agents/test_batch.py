"""Trajectories become padded tensors without losing or inventing anything."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch

from agents import Trajectory, make_batch
from tests.agents.trajectories import random_trajectory, scored, trajectory
from verifiers import InvalidArgumentError, Outcome, Verdict

PER_TOKEN = ("tokens", "loss_mask", "logprobs", "rewards")


def played() -> list[Trajectory]:
    return [
        trajectory([0, 1, 1], tokens=[5, 6, 7], rewards=[0, 0.5, 1], logprobs=[0, -0.5, -1], group=3),
        trajectory(
            [0, 0, 1, 0, 1], tokens=[1, 2, 3, 4, 5], rewards=[0, 0, 0, 0, 2], logprobs=[0, 0, -2, 0, -3], group=1
        ),
    ]


def test_padding_by_hand() -> None:
    batch = make_batch(played())
    expected = {
        "tokens": (torch.int64, [[5, 6, 7, 0, 0], [1, 2, 3, 4, 5]]),
        "lengths": (torch.int64, [3, 5]),
        "loss_mask": (torch.bool, [[False, True, True, False, False], [False, False, True, False, True]]),
        "logprobs": (torch.float32, [[0, -0.5, -1, 0, 0], [0, 0, -2, 0, -3]]),
        "rewards": (torch.float64, [[0, 0.5, 1, 0, 0], [0, 0, 0, 0, 2]]),
        "scores": (torch.float64, [1.5, 2]),
        "groups": (torch.int64, [3, 1]),
        "valid": (torch.bool, [True, True]),
    }
    for name, (dtype, values) in expected.items():
        assert (getattr(batch, name).dtype, getattr(batch, name).tolist()) == (dtype, values), name
    assert (batch.legal, len(batch)) == (None, 2)


def test_a_broken_verifier_leaves_nothing_to_learn_from() -> None:
    batch = make_batch([scored(1.0), scored(math.nan, length=5), scored(0.0)])
    assert batch.valid.tolist() == [True, False, True]
    assert not batch.loss_mask[1].any()
    assert not batch.rewards[1].any()
    assert torch.isnan(batch.scores).tolist() == [False, True, False]
    rewards = [0.0, 3.0, math.inf, math.nan]  # those before it broke are hidden, too
    errored = trajectory([0, 1, 1, 1], rewards=rewards, verdict=Verdict(math.nan, Outcome.VERIFIER_ERROR))
    assert make_batch([errored]).rewards.tolist() == [[0, 0, 0, 0]]


@pytest.mark.parametrize("reward", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize(
    ("verdict", "said"), [(None, "no verdict"), (Verdict(1.0, Outcome.CORRECT), "the verdict correct")]
)
def test_a_reward_that_is_no_number_needs_a_verifier_that_broke(
    reward: float, verdict: Verdict | None, said: str
) -> None:
    message = rf"the reward of token 1 is {reward} in an episode of problem 'p' with {said}: .*VERIFIER_ERROR"
    with pytest.raises(InvalidArgumentError, match=message):
        trajectory([0, 1, 1], rewards=[0.0, reward, 1.0], verdict=verdict)


def test_rows_are_taken_in_order_and_cut_to_the_longest() -> None:
    generator = np.random.default_rng(0)
    trajectories = [random_trajectory(generator, score=index) for index in range(6)]
    batch = make_batch(trajectories)
    for indices in ([2], [5, 0, 3], [1, 1]):
        selected, expected = batch.rows(torch.tensor(indices)), make_batch([trajectories[index] for index in indices])
        for name in (*PER_TOKEN, "lengths", "scores", "valid", "groups"):
            assert torch.equal(getattr(selected, name), getattr(expected, name)), name


def test_first_is_where_learning_begins() -> None:
    assert make_batch(played()).first == 1
    assert make_batch(played()[1:]).first == 2
    assert make_batch([trajectory([1, 1])]).first == 1
    assert make_batch([scored(math.nan)]).first == 1


def packed(legal: np.ndarray) -> np.ndarray:
    return np.packbits(legal.astype(bool), axis=-1)


@pytest.mark.parametrize("vocab_size", [3, 8, 13, 17])
def test_masks_of_legal_tokens_are_unpacked(vocab_size: int) -> None:
    generator = np.random.default_rng(vocab_size)
    legal = [generator.random((length, vocab_size)) < 0.5 for length in (3, 5)]
    trajectories = [
        trajectory([0, 1, 1], action_masks=packed(legal[0])),
        trajectory([0, 1, 0, 1, 1], action_masks=packed(legal[1])),
    ]
    results: Any = make_batch(trajectories).legal_tokens(1, vocab_size)
    assert results.shape == (2, 4, vocab_size)
    for row, (masks, own) in enumerate(zip(legal, trajectories, strict=True)):
        for t in range(1, 5):
            decided = t < len(own.tokens) and own.policy_mask[t]
            assert results[row, t - 1].tolist() == (masks[t].tolist() if decided else [True] * vocab_size)


@pytest.mark.parametrize("order", [[2, 0], [0, 1], [1, 0]])
def test_masks_of_legal_tokens_follow_their_rows(order: list[int]) -> None:
    """And in a trajectory without masks, the one in the middle, every token was legal."""
    legal = np.array([[1, 0, 0, 0], [1, 1, 1, 1], [0, 0, 1, 0]], dtype=bool)
    masks = [packed(legal[[row] * 4]) if row != 1 else None for row in range(3)]
    batch = make_batch([trajectory([0, 1, 1, 1], action_masks=mask) for mask in masks])
    result: Any = batch.rows(torch.tensor(order)).legal_tokens(2, 4)
    assert result.tolist() == [[legal[row].tolist()] * 2 for row in order]


def test_no_trajectories() -> None:
    with pytest.raises(InvalidArgumentError, match="at least one trajectory"):
        make_batch([])
