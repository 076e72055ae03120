"""What an episode counts whose budget ran out before it ended by itself."""

from __future__ import annotations

import dataclasses
import enum

import torch

from agents.advantages import soft_overlong_penalty
from agents.batch import Batch
from verifiers import InvalidArgumentError


class Truncation(enum.StrEnum):
    """What a truncated episode counts. The reward is the one that the environment paid, unless said otherwise."""

    SCORE = "score"
    """What it scored; nothing is worth anything after the budget, which is part of the task."""
    MASK = "mask"
    """It is compared with, and not learned from: its tokens leave the loss, its score stays in baselines and it stays in
    the number of completions (overlong filtering; Yu et al. 2025, arXiv:2503.14476, section 3.4)."""
    BOOTSTRAP = "bootstrap"
    """What it scored and the critic's value of the state it was cut off in: for budgets that are no part of the task
    (Pardo et al. 2018, arXiv:1712.00378). Needs a critic."""
    FIXED_REWARD = "fixed-reward"
    """`truncation_reward` in place of all that it was paid."""
    SOFT_OVERLONG = "soft-overlong"
    """Every completion, truncated or not, loses up to 1 for length over its last `overlong_margin` tokens before
    `max_tokens` (Yu et al. 2025, equation 13)."""


def apply_truncation(
    batch: Batch, truncation: Truncation, *, reward: float, max_tokens: int | None, margin: int | None
) -> Batch:
    """Change masks and rewards of a batch as a rule says.

    Args:
        batch: What was sampled.
        truncation: The rule; `BOOTSTRAP` changes nothing here.
        reward: That of `FIXED_REWARD`.
        max_tokens: For `SOFT_OVERLONG`, the longest completion.
        margin: For `SOFT_OVERLONG`, the tokens before `max_tokens` over which the penalty grows.
    """
    cut = batch.truncated & batch.valid
    match truncation:
        case Truncation.MASK:
            return dataclasses.replace(batch, loss_mask=batch.loss_mask & ~cut[:, None])
        case Truncation.FIXED_REWARD:
            rewards = torch.where(cut[:, None], 0.0, batch.rewards)
            return batch.with_rewards(_pay_at_the_end(batch, rewards, torch.where(cut, reward, 0.0)))
        case Truncation.SOFT_OVERLONG:
            if max_tokens is None or margin is None:
                raise InvalidArgumentError("truncation 'soft-overlong' needs max_tokens and overlong_margin")
            penalty = soft_overlong_penalty(batch.loss_mask.sum(dim=1), max_tokens, margin)
            return batch.with_rewards(_pay_at_the_end(batch, batch.rewards, torch.where(batch.valid, penalty, 0.0)))
        case Truncation.SCORE | Truncation.BOOTSTRAP:
            return batch


def _pay_at_the_end(batch: Batch, rewards: torch.Tensor, amounts: torch.Tensor) -> torch.Tensor:
    last = (batch.lengths - 1)[:, None].to(rewards.device)
    return rewards.scatter_add(1, last, amounts[:, None].to(rewards.dtype))
