"""How truncated episodes, whose token budget ran out before they ended, are treated in training."""

from __future__ import annotations

import dataclasses

from agents.advantages import soft_overlong_penalty
from agents.batch import Batch
from agents.deferred import torch
from agents.settings.choices import Truncation as Truncation
from verifiers import InvalidArgumentError


def apply_truncation(
    batch: Batch, truncation: Truncation, *, reward: float, max_tokens: int | None, margin: int | None
) -> Batch:
    """Apply a truncation rule to the masks and rewards of a batch.

    Args:
        batch: The sampled batch.
        truncation: The rule; `SCORE` and `BOOTSTRAP` leave the batch unchanged.
        reward: Reward of `FIXED_REWARD`.
        max_tokens: Length of the longest completion, for `SOFT_OVERLONG`.
        margin: Number of tokens before `max_tokens` over which the penalty of `SOFT_OVERLONG` grows.
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
