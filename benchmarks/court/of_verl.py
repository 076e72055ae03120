"""verl's advantages and losses before the court: `verl.trainer.ppo.core_algos`, whose functions take tensors.

verl has no verdict that a verifier broke, so that the case about it is left out. It pays on tokens of the policy, to which
rewards that come with the environment's answer are moved here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from verl.trainer.config import AlgoConfig
from verl.trainer.ppo import core_algos
from verl.workers.config import ActorConfig

from agents.experiments.court import Estimator, Record

_NO_ERRORS = {"excluded": "verl has no verdict that a verifier broke"}


def rewards_at_own_tokens(record: Record) -> Tensor:
    """The rewards f64[b t] without the prompt, each at the policy's token that it comes with or after."""
    paid = torch.zeros_like(record.rewards)
    last = torch.zeros(len(paid), dtype=torch.long)
    for at in range(paid.shape[1]):
        last = torch.where(record.mask[:, at], at, last)
        paid[torch.arange(len(paid)), last] += record.rewards[:, at]
    return paid[:, 1:]


def padded(advantages: Tensor) -> Tensor:
    """Advantages with the prompt's column."""
    return torch.nn.functional.pad(advantages, (1, 0))


def advantages_of(name: str, **settings: Any) -> Callable[[Record], Tensor]:
    """The registered advantage estimator of a name."""
    without_std = name == "grpo_without_std"
    function: Any = core_algos.get_adv_estimator_fn("grpo" if without_std else name)
    needs = {
        "gae": lambda record: {"values": record.values[:, 1:], "gamma": 1.0, "lam": 1.0},
        "remax": lambda record: {"reward_baselines": record.baselines},
    }

    def advantages(record: Record) -> Tensor:
        arguments = {"config": AlgoConfig(gamma=1.0, **settings), "index": record.groups.numpy()}
        if without_std:
            arguments["norm_adv_by_std_in_grpo"] = False
        if name in needs:
            arguments = needs[name](record)
        given, _ = function(
            token_level_rewards=rewards_at_own_tokens(record), response_mask=record.mask[:, 1:].double(), **arguments
        )
        return padded(given)

    return advantages


def loss_of(name: str = "vanilla", aggregation: str = "token-mean", **kl: Any) -> Callable[[Record], Tensor]:
    """The registered policy loss of a name, with the sizes of the whole step, as verl's actor gives them for micro-batches."""
    function: Any = core_algos.get_policy_loss_fn(name)

    def loss(record: Record) -> Tensor:
        assert record.advantages is not None
        config = ActorConfig(strategy="fsdp", rollout_n=2, ppo_micro_batch_size_per_gpu=1, loss_agg_mode=aggregation)
        config.global_batch_info.update(
            dp_size=1,
            batch_num_tokens=record.step_tokens,
            global_batch_size=record.step_completions,
            loss_scale_factor=record.max_tokens,
        )
        mask = record.mask[:, 1:].double()
        total, _ = function(
            old_log_prob=record.old_logprobs[:, 1:],
            log_prob=record.logprobs[:, 1:],
            advantages=record.advantages[:, 1:],
            response_mask=mask,
            loss_agg_mode=aggregation,
            config=config,
        )
        if kl and record.kl_coefficient:
            term = core_algos.kl_penalty(record.logprobs[:, 1:], record.reference_logprobs[:, 1:], kl["kl"])
            total = total + record.kl_coefficient * core_algos.agg_loss(
                term, mask, aggregation, **config.global_batch_info
            )
        return total

    return loss


def estimator(
    title: str, advantages: str, loss: Callable[[Record], Tensor] | None = None, **settings: Any
) -> Estimator:
    """Advantages by their name, with verl's loss, or with the plain policy gradient."""
    return Estimator(
        title, advantages=advantages_of(advantages, **settings), loss=loss, reduction="sum", skipped=_NO_ERRORS
    )


ESTIMATORS = [
    estimator("rloo, plain policy gradient", "rloo"),
    estimator("grpo without std, plain policy gradient", "grpo_without_std"),
    estimator("opo, plain policy gradient", "opo"),
    estimator("remax, plain policy gradient", "remax"),
    estimator("gpg, plain policy gradient", "gpg"),
    estimator("rloo, vanilla, token-mean, KL k3", "rloo", loss_of(kl="k3")),
    estimator("rloo, vanilla, seq-mean-token-sum, KL k3+", "rloo", loss_of(aggregation="seq-mean-token-sum", kl="k3+")),
    estimator("rloo, vanilla, seq-mean-token-mean, KL k2", "rloo", loss_of(aggregation="seq-mean-token-mean", kl="k2")),
    estimator("grpo, vanilla, token-mean, KL k3", "grpo", loss_of(kl="k3")),
    estimator("grpo, gspo, seq-mean-token-mean", "grpo", loss_of("gspo", "seq-mean-token-mean")),
    estimator("gae with lambda 1, vanilla, token-mean", "gae", loss_of()),
    estimator("reinforce_plus_plus, vanilla, token-mean", "reinforce_plus_plus", loss_of()),
]
