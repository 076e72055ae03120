"""Advantages by turns: numbers by hand and the limit of one turn; the court of estimators has their exact gradients."""

from __future__ import annotations

import dataclasses

import pytest
import torch

from agents import make_batch
from agents.advantages import group_centered, group_z_score, leave_one_out
from agents.turns import turn_group_relative, turn_numbers, turn_rewards
from tests.agents.agent_cases import make_agent
from tests.agents.trajectories import trajectory
from verifiers import UnknownNameError

# Prompt, two own tokens, an answer of two, one own token, an answer, two own tokens, padding.
MASK = torch.tensor([[0, 1, 1, 0, 0, 1, 0, 1, 1, 0], [0, 1, 0, 0, 0, 0, 0, 0, 0, 0]]).bool()
REWARDS = torch.tensor([[9.0, 1, 2, 4, 0, 8, 0, 16, 32, 0], [9.0, 5, 0, 0, 0, 0, 0, 0, 0, 0]])


def test_turns_are_runs_of_the_policys_tokens() -> None:
    assert turn_numbers(MASK).tolist() == [[-1, 0, 0, 0, 0, 1, 1, 2, 2, 2], [-1] + [0] * 9]
    assert turn_rewards(REWARDS, MASK).tolist() == [[7.0, 8.0, 48.0], [5.0, 0.0, 0.0]]


def test_a_turn_that_no_other_has_is_compared_with_the_last_turns_of_the_others() -> None:
    mask = torch.tensor([[1, 0, 1, 0, 1], [1, 0, 1, 0, 0], [1, 0, 0, 0, 0], [1, 0, 1, 0, 0], [0, 0, 0, 0, 0]]).bool()
    rewards = torch.tensor([[0.0, 1, 0, 2, 7], [1, 0, 3, 0, 0], [2, 0, 0, 0, 0], [9, 9, 9, 9, 9], [0, 0, 0, 0, 0]])
    groups, valid = torch.zeros(5, dtype=torch.long), torch.tensor([True, True, True, False, True])
    got = turn_group_relative(rewards, mask, groups, valid, relative=leave_one_out)
    first = [10 - 6 / 2, 4 - 12 / 2, 2 - 14 / 2]  # the last episode has no turn at all
    assert got[0].tolist() == pytest.approx([first[0], 0, 9 - 3, 0, 7 - (3 + 2 + 0) / 3])
    assert got[1].tolist() == pytest.approx([first[1], 0, 3 - 9, 0, 0])
    assert got[2:].tolist() == [pytest.approx([first[2], 0, 0, 0, 0]), [0] * 5, [0] * 5]
    scores = torch.tensor([7.0, 3, 2, 9, 0])
    for relative in (group_centered, group_z_score):
        got = turn_group_relative(rewards, mask, groups, valid, relative=relative)
        assert got[0, 4] == relative(scores, groups, valid)[0]


def test_the_only_valid_episode_of_a_group_is_compared_with_nothing() -> None:
    mask, groups = torch.tensor([[1, 0, 1], [1, 0, 0], [1, 0, 1]]).bool(), torch.tensor([0, 0, 1])
    rewards = torch.tensor([[1.0, 0, 3], [float("nan"), 0, 0], [2, 0, 5]])
    got = turn_group_relative(rewards, mask, groups, torch.tensor([True, False, True]), relative=leave_one_out)
    assert got.eq(0).all()


@pytest.mark.parametrize("length", [1, 4])
def test_one_turn_is_one_step(length: int) -> None:
    generator = torch.Generator().manual_seed(0)
    rewards = torch.randn(6, length + 1, generator=generator).double()
    mask = torch.ones(6, length + 1, dtype=torch.bool)
    mask[:, 0] = False
    scores = rewards[:, 1:].sum(1)
    groups, valid = torch.arange(6) // 3, torch.ones(6, dtype=torch.bool)
    ours = turn_group_relative(rewards, mask, groups, valid)
    torch.testing.assert_close(ours[:, 1], group_z_score(scores, groups, valid))


def test_it_is_a_setting_of_agents_that_compare_scores() -> None:
    """On episodes of different numbers of turns; by completions all tokens get the same."""
    rows = [
        trajectory([0, *own], rewards=[0.0, *paid])
        for own, paid in (([1, 0, 1], [1.0, 0.0, 3.0]), ([1], [2.0]), ([1, 0, 1], [0.0, 0.0, 1.0]))
    ]
    batch = make_batch([dataclasses.replace(row, group=0) for row in rows])
    for name, relative in (("rloo", leave_one_out), ("grpo", group_z_score), ("cispo", group_z_score)):
        by_turns = make_agent(name, credit="turn").advantages(batch)
        expected = turn_group_relative(batch.rewards, batch.loss_mask, batch.groups, batch.valid, relative=relative)
        assert torch.equal(by_turns, expected)
        whole = make_agent(name).advantages(batch)
        assert (whole == whole[:, :1]).all()
    with pytest.raises(UnknownNameError, match="turn"):
        make_agent("grpo", credit="turns")
