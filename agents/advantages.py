"""Advantages: pure functions from rewards to the weight of each token or completion.

Axes: b completions, t tokens. `valid` is False where the verifier broke: such completions take no part in any baseline
and get advantage 0. Everything is computed in float64.
"""

from __future__ import annotations

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor


def returns_to_go(
    rewards: Float[Tensor, "b t"], mask: Bool[Tensor, "b t"], discount: float = 1.0
) -> Float[Tensor, "b t"]:
    """The discounted sum of the rewards from each of the policy's tokens on: G_t = r_t + discount * G_(t+1).

    Williams 1992, with the causal form of the policy gradient theorem (Sutton et al. 2000). Tokens off the mask (prompt,
    environment, padding) are no decisions: they carry the sum on without discounting it. A reward that was paid there is
    counted for the decisions before it.

    Returns:
        f64; 0 off the mask.
    """
    total = torch.zeros(len(rewards), dtype=torch.float64, device=rewards.device)
    returns = torch.zeros_like(rewards, dtype=torch.float64)
    for t in range(rewards.shape[1] - 1, -1, -1):
        decided = mask[:, t]
        total = rewards[:, t] + torch.where(decided, discount * total, total)
        returns[:, t] = torch.where(decided, total, 0.0)
    return returns


def batch_mean_baseline(scores: Float[Tensor, " b"], valid: Bool[Tensor, " b"]) -> Float[Tensor, ""]:
    """The mean score of the batch, over the valid completions; 0 if there are none."""
    counted = scores[valid].double()
    return counted.mean() if len(counted) else counted.sum()


def group_mean(
    scores: Float[Tensor, " b"], groups: Int[Tensor, " b"], valid: Bool[Tensor, " b"]
) -> Float[Tensor, " b"]:
    """For each completion the mean score of its group, over the group's valid completions; 0 if there are none."""
    _, index = groups.unique(return_inverse=True)
    counts = _group_sum(valid.double(), index)
    return (_group_sum(torch.where(valid, scores.double(), 0.0), index) / counts.clamp(min=1))[index]


def group_centered(
    scores: Float[Tensor, " b"], groups: Int[Tensor, " b"], valid: Bool[Tensor, " b"]
) -> Float[Tensor, " b"]:
    """A_i = R_i - mean(R of the group): Dr. GRPO (Liu et al. 2025, arXiv:2503.20783)."""
    centered = scores.double() - group_mean(scores, groups, valid)
    return torch.where(valid & _group_varies(scores, groups, valid), centered, 0.0)


def group_z_score(
    scores: Float[Tensor, " b"], groups: Int[Tensor, " b"], valid: Bool[Tensor, " b"], epsilon: float = 1e-4
) -> Float[Tensor, " b"]:
    """A_i = (R_i - mean) / (std + epsilon) within the group: GRPO (Shao et al. 2024, arXiv:2402.03300, section 4.1.2).

    The standard deviation is the unbiased one (n - 1). In a group whose scores are all equal, or that has one valid
    completion, every advantage is exactly 0: rounding would otherwise leave a standard deviation that is small and not
    zero, and divide noise by it.
    """
    _, index = groups.unique(return_inverse=True)
    centered = group_centered(scores, groups, valid)
    others = (_group_sum(valid.double(), index) - 1).clamp(min=1)
    std = (_group_sum(centered**2, index) / others).sqrt()[index]
    return torch.where(std > 0, centered / (std + epsilon), 0.0)


def _group_sum(values: Tensor, index: Tensor) -> Tensor:
    sums = torch.zeros(int(index.max()) + 1, dtype=torch.float64, device=values.device)
    return sums.index_add(0, index, values)


def _group_varies(scores: Tensor, groups: Tensor, valid: Tensor) -> Tensor:
    """For each completion whether its group has two valid scores that differ."""
    _, index = groups.unique(return_inverse=True)
    count = int(index.max()) + 1
    highest = torch.full((count,), -torch.inf, dtype=torch.float64, device=scores.device)
    lowest = -highest
    kept = index[valid]
    values = scores.double()[valid]
    highest = highest.scatter_reduce(0, kept, values, "amax")
    lowest = lowest.scatter_reduce(0, kept, values, "amin")
    return (highest > lowest)[index]
