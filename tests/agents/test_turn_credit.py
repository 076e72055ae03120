"""Advantages by turns: numbers by hand, the limit of one turn, and the exact gradient on two worlds of several turns."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from agents import make_batch
from agents.advantages import group_centered, group_z_score, leave_one_out
from agents.turns import Relative, turn_group_relative, turn_numbers, turn_rewards
from tests.agents.agent_cases import make_agent
from tests.agents.trajectories import trajectory
from verifiers import UnknownNameError

# Prompt, two own tokens, an answer of two, one own token, an answer, two own tokens, padding.
MASK = torch.tensor([[0, 1, 1, 0, 0, 1, 0, 1, 1, 0], [0, 1, 0, 0, 0, 0, 0, 0, 0, 0]]).bool()
REWARDS = torch.tensor([[9.0, 1, 2, 4, 0, 8, 0, 16, 32, 0], [9.0, 5, 0, 0, 0, 0, 0, 0, 0, 0]])


def test_turns_are_runs_of_the_policys_tokens() -> None:
    assert turn_numbers(MASK).tolist() == [[-1, 0, 0, 0, 0, 1, 1, 2, 2, 2], [-1] + [0] * 9]
    assert turn_rewards(REWARDS, MASK).tolist() == [[7.0, 8.0, 48.0], [5.0, 0.0, 0.0]]


def test_groups_are_compared_turn_by_turn_among_those_that_have_the_turn() -> None:
    mask = torch.tensor([[1, 0, 1], [1, 0, 1], [1, 0, 0], [1, 0, 0]]).bool()
    rewards = torch.tensor([[0.0, 0, 3], [0, 0, 1], [1, 0, 0], [float("nan"), 0, 0]]).nan_to_num()
    groups, valid = torch.zeros(4, dtype=torch.long), torch.tensor([True, True, True, False])
    got = turn_group_relative(rewards, mask, groups, valid, relative=leave_one_out)
    assert got.tolist() == [[3 - 1.0, 0, 2.0], [1 - 2.0, 0, -2.0], [1 - 2.0, 0, 0], [0, 0, 0]]


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


# A world of two turns of two tokens of {0, 1}; the first is answered with its sum modulo 2, which the second sees.

MASK2 = torch.tensor([0, 1, 1, 0, 1, 1]).bool()


def episode(choices: tuple[int, ...]) -> tuple[list[int], list[float]]:
    """Tokens and rewards of an episode of two turns."""
    a, b, c, d = choices
    told = (a + b) % 2
    return [0, a, b, told, c, d], [0.0, 0.0, 1.0 * a * b, 0.25, 0.0, 2.0 * (c == told) + 1.0 * d]


EPISODES = [episode(choices) for choices in itertools.product((0, 1), repeat=4)]


def log_probability(theta: Tensor, tokens: list[int]) -> Tensor:
    """Log-probabilities [t] of a table by position and all tokens before it."""
    seen = [int("".join(map(str, tokens[:at])) or "0", 2) for at in range(6)]
    return torch.stack([theta[at, seen[at]].log_softmax(0)[tokens[at]] for at in range(6)])


def exact_gradient(theta: Tensor) -> Tensor:
    value = torch.zeros((), dtype=torch.float64)
    for tokens, rewards in EPISODES:
        value = value + log_probability(theta, tokens)[MASK2].sum().exp() * sum(rewards)
    (gradient,) = torch.autograd.grad(value, theta)
    return gradient


def expected_gradient(theta: Tensor, advantages: Callable[[Tensor], Tensor], size: int) -> Tensor:
    """The expected mean over a group of sum of A grad log pi, by enumeration of all groups of a size."""
    total = torch.zeros((), dtype=torch.float64)
    logprobs = [log_probability(theta, tokens) for tokens, _ in EPISODES]
    for group in itertools.product(range(len(EPISODES)), repeat=size):
        rows = torch.stack([logprobs[index] for index in group])
        probability = rows.detach()[:, MASK2].sum().exp()
        weights = advantages(torch.tensor([EPISODES[index][1] for index in group], dtype=torch.float64))
        total = total + probability * (rows * weights).sum() / size
    (gradient,) = torch.autograd.grad(total, theta)
    return gradient


def masks(count: int) -> Tensor:
    return MASK2.expand(count, -1)


def test_the_expected_gradient_is_the_exact_one() -> None:
    generator = torch.Generator().manual_seed(1)
    theta = torch.randn(6, 32, 2, generator=generator, dtype=torch.float64).requires_grad_()

    def advantages(rewards: Tensor) -> Tensor:
        groups, valid = torch.zeros(len(rewards), dtype=torch.long), torch.ones(len(rewards), dtype=torch.bool)
        return turn_group_relative(rewards, masks(len(rewards)), groups, valid, relative=leave_one_out)

    torch.testing.assert_close(expected_gradient(theta, advantages, 2), exact_gradient(theta), atol=1e-12, rtol=1e-10)


def test_it_is_a_setting_of_agents_that_compare_scores() -> None:
    """On episodes of different numbers of turns; by completions all tokens get the same."""
    rows = [
        trajectory([0, *own], rewards=[0.0, *paid])
        for own, paid in (
            ([True, False, True], [1.0, 0.0, 3.0]),
            ([True], [2.0]),
            ([True, False, True], [0.0, 0.0, 1.0]),
        )
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


# A world of up to three turns of one token: 0 goes on, 1 and 2 end the episode, and any third turn is the last. What a turn
# earns depends on all tokens so far.


def turns_played(tokens: tuple[int, ...]) -> tuple[list[int], list[float], list[bool]]:
    """Tokens, rewards and mask of an episode, each own token behind one of the environment's."""
    stream, rewards, mask = [0] * 6, [0.0] * 6, [False] * 6
    for turn, token in enumerate(tokens):
        at = 2 * turn + 1
        stream[at], mask[at] = token, True
        rewards[at] = (
            0.5 + 0.7 * token - 0.4 * turn + (1.3 * (token == 2), -0.8 * (token == 1), 0.9 * (token == 1))[turn]
        )
    return stream, rewards, mask


UNEVEN = [
    turns_played((*goes_on, last))
    for turns in (1, 2, 3)
    for goes_on in ((0,) * (turns - 1),)
    for last in ((1, 2) if turns < 3 else (0, 1, 2))
]


def uneven_table(go_on: float) -> Tensor:
    """Logits of a random policy that goes on with about the odds exp(go_on)."""
    generator = torch.Generator().manual_seed(2)
    theta = torch.randn(6, 3, generator=generator, dtype=torch.float64)
    theta[:, 0] += go_on
    return theta.requires_grad_()


def uneven_gradients(go_on: float, size: int, relative: Relative, valid: tuple[bool, ...]) -> tuple[Tensor, Tensor]:
    """The exact gradient, and the expected mean over the valid episodes of a group of sum of A grad log pi.

    There is one distribution for each turn, since the tokens before it are all 0.
    """
    theta = uneven_table(go_on)
    tokens, masks = (torch.tensor([played[column] for played in UNEVEN]) for column in (0, 2))
    rewards = torch.tensor([played[1] for played in UNEVEN], dtype=torch.float64)
    logprobs = theta.log_softmax(1)[torch.arange(6), tokens] * masks
    chances = logprobs.sum(1).exp()
    assert float(chances.detach().sum()) == pytest.approx(1)
    (exact,) = torch.autograd.grad((chances * (rewards * masks).sum(1)).sum(), theta, retain_graph=True)
    drawn = torch.cartesian_prod(*[torch.arange(len(UNEVEN))] * size)
    weights = chances.detach()[drawn].prod(1).repeat_interleave(size) / sum(valid)
    rows, groups = drawn.flatten(), torch.arange(len(drawn)).repeat_interleave(size)
    counted = torch.tensor(valid).repeat(len(drawn))
    advantages = turn_group_relative(rewards[rows], masks[rows], groups, counted, relative=relative)
    (expected,) = torch.autograd.grad((weights[:, None] * logprobs[rows] * advantages).sum(), theta)
    return exact, expected


@pytest.mark.parametrize("go_on", [-1.5, 0.0, 1.5])
@pytest.mark.parametrize("valid", [(True, True), (True, True, True), (True, False, True)], ids=["2", "3", "2 of 3"])
def test_leave_one_out_is_exact_where_episodes_differ_in_their_number_of_turns(
    go_on: float, valid: tuple[bool, ...]
) -> None:
    exact, expected = uneven_gradients(go_on, len(valid), leave_one_out, valid)
    torch.testing.assert_close(expected, exact, atol=1e-12, rtol=1e-10)


def test_other_baselines_scale_turns_by_how_many_episodes_have_them() -> None:
    exact, expected = uneven_gradients(0.0, 2, group_centered, (True, True))
    torch.testing.assert_close(expected, exact / 2, atol=1e-12, rtol=1e-10)  # two are always compared
    exact, expected = uneven_gradients(0.0, 3, group_centered, (True, True, True))
    scales = [float((expected[turn] @ exact[turn]) / (exact[turn] @ exact[turn])) for turn in (1, 3, 5)]
    assert scales[0] == pytest.approx(2 / 3)  # all have a first turn
    assert all(1 / 2 < scale < 2 / 3 for scale in scales[1:])
    exact, expected = uneven_gradients(0.0, 3, group_z_score, (True, True, True))
    assert 0.9 < float(torch.cosine_similarity(expected.flatten(), exact.flatten(), dim=0)) < 0.99


def test_a_group_with_one_valid_episode_adds_nothing_to_the_gradient() -> None:
    assert uneven_gradients(0.0, 2, leave_one_out, (True, False))[1].eq(0).all()
