"""OpenRLHF's losses before the court: `PolicyLoss`, `aggregate_loss` and `compute_approx_kl`, with leave-one-out advantages.

Its advantages are part of a trainer of several processes, and not tried. DeepSpeed, which the losses don't use, need not be
installed. `PolicyLoss` has no verdict that a verifier broke, so that the case about it is left out.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

from loaded import module_of
from torch import Tensor

from agents.advantages import leave_one_out
from agents.experiments.court import Estimator, Record

sys.modules.setdefault("deepspeed", ModuleType("deepspeed"))
losses = module_of("openrlhf.models.loss")
utils = module_of("openrlhf.models.utils")
_NO_ERRORS = {"excluded": "PolicyLoss has no verdict that a verifier broke"}


def advantages(record: Record) -> Tensor:
    return leave_one_out(record.scores, record.groups, record.valid)


def loss_of(kl: dict[str, Any] | None = None, **settings: Any) -> Callable[[Record], Tensor]:
    """PolicyLoss and the divergence in the loss, with the sizes of the whole step, as its actor gives them."""
    policy_loss = losses.PolicyLoss(**settings)

    def loss(record: Record) -> Tensor:
        assert record.advantages is not None
        mask = record.mask[:, 1:].double()
        now, old, reference, sampler = (
            one[:, 1:]
            for one in (record.logprobs, record.old_logprobs, record.reference_logprobs, record.sampler_logprobs)
        )
        sizes = {"batch_num_tokens": record.step_tokens, "global_batch_size": record.step_completions}
        given = record.advantages[:, 1:]
        total, *_ = policy_loss(now, old, given, action_mask=mask, rollout_log_probs=sampler, **sizes)
        if kl is not None and record.kl_coefficient:
            term = utils.compute_approx_kl(now, reference, log_probs_old=old, **kl)
            whole = losses.aggregate_loss(term, mask, policy_loss.token_level_loss, **sizes)
            total = total + record.kl_coefficient * whole
        return total

    return loss


def estimator(title: str, **settings: Any) -> Estimator:
    return Estimator(title, advantages=advantages, loss=loss_of(**settings), reduction="sum", skipped=_NO_ERRORS)


ESTIMATORS = [
    estimator("PolicyLoss, KL k2", kl={"kl_estimator": "k2"}),
    estimator("PolicyLoss, KL k3", kl={"kl_estimator": "k3"}),
    estimator(
        "PolicyLoss, token_level_loss=False, KL k3 with unbiased_gradient",
        token_level_loss=False,
        kl={"kl_estimator": "k3", "unbiased_gradient": True},
    ),
    estimator(
        "PolicyLoss, is_correction_level='token', is_correction_mode='clip'",
        is_correction_level="token",
        is_correction_mode="clip",
    ),
    estimator("PolicyLoss, policy_loss_type='gspo'", policy_loss_type="gspo"),
]
