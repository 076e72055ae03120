"""VinePPO: its steps, its values against exact ones, and its gradient by enumeration."""

from __future__ import annotations

import dataclasses
import math
from collections import defaultdict
from typing import Any

import numpy as np
import pytest
import torch

from agents import Aggregation, VinePPO, VinePPOConfig, make_batch
from agents.advantages import step_advantages
from agents.algorithms.vineppo import step_starts
from agents.commands.gradient_lab import small_lab
from rlvr_envs import ByteTokenizer, decode
from tests.agents import corridor
from tests.agents.agent_cases import make_agent, playing_policy, sort_env
from tests.agents.rounding import FLOAT64, assert_equal
from tests.agents.trajectories import scored, trajectory
from verifiers import InvalidArgumentError

NAN = math.nan


@pytest.mark.parametrize(
    ("text", "separator", "most", "starts"),
    [
        ("ab\ncd\n\ne", "\n", None, [1, 4, 7, 8]),
        ("ab\n\ncd\n\n", "\n\n", None, [1, 5]),
        ("ab\n\n\ncd", "\n\n", None, [1, 5]),
        ("abcde", "\n", 2, [1, 3, 5]),
        ("a\nbcd", "\n", 2, [1, 3, 5]),
        ("abcde", "", 3, [1, 4]),
        ("abcde", "", None, [1]),
    ],
)
def test_a_step_ends_with_the_separator_or_after_some_tokens(
    text: str, separator: str, most: int | None, starts: list[int]
) -> None:
    one = trajectory([0] + [1] * len(text), tokens=[0, *text.encode()])
    assert step_starts(one, ByteTokenizer(), separator, most) == starts
    turns = trajectory([0, 1, 1, 0, 1, 1, 1], tokens=[0, *b"ab", 0, *b"\ncd"])  # a separator does not span them
    assert step_starts(turns, ByteTokenizer(), "b\n", None) == [1, 4]
    # What is written later moves no step.
    cut = trajectory([0] + [1] * (len(text) - 2), tokens=[0, *text.encode()[:-2]])
    assert step_starts(cut, ByteTokenizer(), separator, most) == [at for at in starts if at < len(text) - 1]


def test_advantages_of_steps_by_hand() -> None:
    rewards = torch.tensor([[9.0, 0, 1, 0.5, 0, 2], [9.0, 0, 0, 3, 0, 0]]).double()
    values = torch.tensor([[NAN, 0.5, NAN, NAN, 0.25, NAN], [7.0, 0.5, NAN, NAN, NAN, 0.0]]).double()
    mask = torch.tensor([[0, 1, 1, 0, 1, 1], [0, 1, 1, 1, 0, 0]]).bool()
    expected = [[0, 1.25, 1.25, 0, 1.75, 1.75], [0, 2.5, 2.5, 2.5, 0, 0]]
    assert step_advantages(rewards, values, mask).tolist() == expected


@FLOAT64
@pytest.mark.parametrize("size", [1, 2])
def test_the_agents_expected_gradient_is_that_of_the_expected_return(size: int) -> None:
    """Over all completions of a transformer, in steps of some tokens with exact values."""
    lab = small_lab()
    for row, one in enumerate(lab.completions):
        begins = one.policy_mask & ((np.arange(len(one.tokens)) - one.prompt_length) % size == 0)
        exact = np.where(begins, lab.values[row, : len(one.tokens)].numpy(), NAN)
        lab.completions[row] = dataclasses.replace(one, step_values=exact)
    config = VinePPOConfig(
        problems_per_step=1, group_size=1, minibatches=1, whiten=False, aggregation=Aggregation.SEQUENCE_MEAN_TOKEN_SUM
    )
    agent = VinePPO(lab.policy, config)
    estimates = torch.stack([lab.estimate(agent, [row]) for row in range(len(lab.completions))])
    assert_equal(lab.probabilities.detach() @ estimates, lab.gradient)


def returns_of_prefixes(env: Any, policy: Any) -> dict[str, tuple[float, float]]:
    """The exact mean and standard deviation of the return from each walk onwards."""
    sums: defaultdict[str, np.ndarray] = defaultdict(lambda: np.zeros(3))
    for walk, probability, rewards in corridor.every_walk(env, policy):
        for made in range(len(walk)):
            earned = sum(rewards[made:])
            sums[walk[:made]] += probability * np.array([1, earned, earned**2])
    return {moves: (e / p, math.sqrt(max(e2 / p - (e / p) ** 2, 0.0))) for moves, (p, e, e2) in sums.items()}


def test_values_are_unbiased_in_every_state() -> None:
    """z-scores of all states, with the exact mean and deviation; beyond 5 there would be one seed in a million."""
    env, count = corridor.corridor(128), 128
    policy = corridor.tiny_policy(env)
    config = VinePPOConfig(problems_per_step=8, group_size=4, episodes_per_state=count, max_step_tokens=1)
    trajectories, rounds = VinePPO(policy, config).collect(env, 0)
    exact = returns_of_prefixes(corridor.corridor(1), policy)
    scores = {}
    for one in trajectories:
        assert one.step_values is not None
        assert (~np.isnan(one.step_values) == one.policy_mask).all()
        for position in np.flatnonzero(one.policy_mask):
            moves = decode(corridor.TOKENIZER, one.tokens[one.prompt_length : position])
            mean, deviation = exact[moves]
            scores[moves] = (one.step_values[position] - mean) / (deviation / math.sqrt(count))
        assert one.baseline == one.step_values[one.prompt_length]
    assert rounds == 1
    assert len(scores) > 6
    assert max(map(abs, scores.values())) < 5
    assert abs(sum(scores.values())) / math.sqrt(len(scores)) < 5


def test_states_that_completions_share_are_estimated_once_and_tokens_are_counted() -> None:
    env = sort_env("vineppo")
    agent = make_agent("vineppo", playing_policy(env), problems_per_step=2, max_step_tokens=1)
    metrics: list[Any] = []
    agent.learn(env, steps=1, callbacks=[lambda _, given: metrics.append(given)])
    trajectories, _ = make_agent("vineppo", playing_policy(env), problems_per_step=2, max_step_tokens=1).collect(env, 0)
    by_state: defaultdict[bytes, set[float]] = defaultdict(set)
    for one in trajectories:
        assert one.step_values is not None
        for position in np.flatnonzero(one.policy_mask):
            by_state[one.tokens[:position].tobytes()].add(float(one.step_values[position]))
    assert all(len(values) == 1 for values in by_state.values())
    assert agent.tokens >= len(by_state) * 2 + sum(int(one.policy_mask.sum()) for one in trajectories)
    assert metrics[0]["baseline_errors"] == 0


def test_a_rule_for_truncated_completions_applies_to_further_ones_with_their_whole_length() -> None:
    env = sort_env("vineppo")
    settings = {"truncation": "soft-overlong", "max_tokens": 4, "overlong_margin": 4, "max_step_tokens": 1}
    agent = make_agent("vineppo", playing_policy(env), **settings)
    plain = make_agent("vineppo", playing_policy(env), max_step_tokens=1)
    seen = 0
    for one, other in zip(agent.collect(env, 0)[0], plain.collect(env, 0)[0], strict=True):
        assert one.step_values is not None
        assert other.step_values is not None
        if int(one.policy_mask.sum()) == 4:  # the last state is worth one more token: the fourth, whose penalty is 1
            assert one.step_values[-1] == pytest.approx(other.step_values[-1] - 1)
            seen += 1
    assert seen


def test_completions_through_a_state_whose_verifier_always_breaks_are_left_out() -> None:
    def verdict(completion: str, problem: Any) -> float:
        if completion.startswith("L"):
            raise RuntimeError("broken")
        return 1.0

    env = corridor.corridor(8, verifier=verdict)
    settings: dict[str, Any] = {"problems_per_step": 8, "group_size": 2, "episodes_per_state": 2}
    config = VinePPOConfig(max_step_tokens=1, max_error_share=1, **settings)
    agent = VinePPO(corridor.tiny_policy(env), config)
    with pytest.warns(UserWarning, match="the verifier broke"):
        trajectories, _ = agent.collect(env, 0)
    left = [decode(corridor.TOKENIZER, one.tokens[one.prompt_length :])[0] == "L" for one in trajectories]
    assert 0 < sum(left) < len(left)
    for one, breaks in zip(trajectories, left, strict=True):
        assert one.baseline is not None
        assert math.isnan(one.baseline) or not breaks
    kept = agent.prepare(make_batch(trajectories)).valid.tolist()
    assert kept == [not math.isnan(one.baseline or 0.0) for one in trajectories]


def test_trajectories_without_values_and_a_penalty_in_the_reward_are_refused() -> None:
    with pytest.raises(InvalidArgumentError, match=r"use VinePPO.collect or VinePPO.with_values"):
        make_agent("vineppo").update([scored(1.0, group=index) for index in range(4)])
    with pytest.raises(InvalidArgumentError, match="set kl_placement='loss'"):
        VinePPOConfig(kl_coefficient=0.1, kl_placement="reward")
