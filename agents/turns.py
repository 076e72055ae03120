"""Credit by turns: one advantage for all tokens of a turn, in episodes of several turns.

Axes: b episodes, t tokens, u turns. A turn is a run of the policy's own tokens; the environment's tokens between two turns
belong to neither turn, and a reward received between them belongs to the earlier turn. From one turn to the next is one step of
time: a discount factor counts turns, not tokens.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from agents.advantages import group_z_score, returns_to_go
from agents.deferred import torch

if TYPE_CHECKING:
    from jaxtyping import Bool, Float, Int
    from torch import Tensor


def turn_numbers(mask: Bool[Tensor, "b t"]) -> Int[Tensor, "b t"]:
    """Number the turns from 0.

    Args:
        mask: bool[b t], the policy's own tokens.

    Returns:
        i64[b t], the number of each token's turn. A token between two turns has the number of the preceding turn; a token
        before the first turn has -1.
    """
    before = torch.nn.functional.pad(mask, (1, 0))[:, :-1]
    return (mask & ~before).long().cumsum(1) - 1


def turn_rewards(rewards: Float[Tensor, "b t"], mask: Bool[Tensor, "b t"]) -> Float[Tensor, "b u"]:
    """The sum of the rewards of each turn, f64[b u]; 0 for turns that an episode does not have.

    Args:
        rewards: f[b t]; rewards before the first turn are ignored.
        mask: bool[b t], the policy's own tokens.
    """
    numbers = turn_numbers(mask)
    paid = torch.where(numbers >= 0, rewards.double(), 0.0)
    return torch.zeros(_shape(numbers), dtype=torch.float64, device=rewards.device).scatter_add(
        1, numbers.clamp(min=0), paid
    )


Relative = Callable[["Tensor", "Tensor", "Tensor"], "Tensor"]
"""Functions such as `agents.advantages.leave_one_out`: from scores f[b], groups i[b] and valid bool[b] to advantages."""


def turn_group_relative(
    rewards: Float[Tensor, "b t"],
    mask: Bool[Tensor, "b t"],
    groups: Int[Tensor, " b"],
    valid: Bool[Tensor, " b"],
    *,
    gamma: float = 1.0,
    relative: Relative = group_z_score,
) -> Float[Tensor, "b t"]:
    """Compare the rewards from each turn onwards with those of the group's other episodes from the same turn onwards.

    Only episodes that have the turn are compared. If a single valid episode of the group has the turn, the other episodes are
    compared by their rewards from their own last turn onwards: an advantage of 0 would leave such turns out of the gradient.
    A group's only valid episode gets 0, since there is no other episode to compare.

    With `relative=leave_one_out` the mean over a group of sum_t A_t grad log pi(y_t) is an unbiased gradient of the expected
    sum of rewards, for gamma = 1 and at least two valid episodes in the group: the baseline of a turn depends on the other
    episodes alone, and whether an episode has the turn depends on its own earlier turns alone. `group_centered` and
    `group_z_score` are biased, in direction too: with m episodes compared, the former scales a turn's gradient by (m - 1) / m,
    which differs from turn to turn, and the latter divides by a standard deviation that also differs.

    Returns:
        f64[b t]; 0 outside the mask.
    """
    has_turn = _turn_mask(mask)
    earned = returns_to_go(turn_rewards(rewards, mask), has_turn, gamma)
    last = earned.gather(1, (has_turn.sum(1, keepdim=True) - 1).clamp(min=0))[:, 0]
    same_group = groups.unique(return_inverse=True)[1]
    columns = []
    for turn in range(earned.shape[1]):
        has = valid & has_turn[:, turn]
        unshared = same_group.bincount(has)[same_group] == 1  # whether one episode of the group has the turn
        compared = relative(torch.where(has, earned[:, turn], last), groups, has | (valid & unshared))
        columns.append(torch.where(has, compared, 0.0))
    return _at_tokens(torch.stack(columns, dim=1), mask)


def _shape(numbers: Tensor) -> tuple[int, int]:
    """The number b of episodes, and the largest number of turns of any episode, at least 1."""
    return len(numbers), max(int(numbers.max()) + 1 if numbers.numel() else 0, 1)


def _turn_mask(mask: Tensor) -> Tensor:
    """The turns that each episode has, bool[b u]."""
    numbers = turn_numbers(mask)
    return torch.arange(_shape(numbers)[1], device=mask.device) <= numbers.max(dim=1, keepdim=True).values


def _at_tokens(of_turns: Tensor, mask: Tensor) -> Tensor:
    """Assign the value f64[b u] of each turn to its tokens, f64[b t]."""
    return torch.where(mask, of_turns.gather(1, turn_numbers(mask).clamp(min=0)), 0.0)
