"""Trajectories, batches and a tiny policy made by hand, for tests of what learns from them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from agents import CausalLMPolicy, PolicyConfig, Trajectory, tiny_model
from verifiers import Outcome, Verdict

VOCAB = 16


def trajectory(
    mask: Sequence[int],
    *,
    tokens: Sequence[int] | None = None,
    rewards: Sequence[float] | None = None,
    logprobs: Sequence[float] | None = None,
    verdict: Verdict | None = None,
    **fields: Any,
) -> Trajectory:
    """A trajectory as long as its mask; everything that is not given is 0 or false."""
    length = len(mask)
    defaults: dict[str, Any] = {
        "problem_id": "p",
        "group": 0,
        "prompt_length": int(np.argmax(mask)),
        "terminated": True,
        "truncated": False,
        "completion": "",
        "policy_version": np.zeros(length, dtype=np.int32),
    }
    return Trajectory(
        tokens=np.array(tokens if tokens is not None else [0] * length, dtype=np.int32),
        policy_mask=np.array(mask, dtype=bool),
        rewards=np.array(rewards if rewards is not None else [0.0] * length, dtype=np.float64),
        logprobs=np.array(logprobs if logprobs is not None else [0.0] * length, dtype=np.float32),
        verdict=verdict,
        **{**defaults, **fields},
    )


def scored(score: float, length: int = 3, **fields: Any) -> Trajectory:
    """One prompt token, then the policy's; the score comes with the last token. NaN means the verifier broke."""
    outcome = Outcome.VERIFIER_ERROR if np.isnan(score) else Outcome.SCORED
    rewards = [0.0] * (length - 1) + [score]
    return trajectory([0] + [1] * (length - 1), rewards=rewards, verdict=Verdict(score, outcome), **fields)


def random_trajectory(generator: np.random.Generator, *, score: float, group: int = 0, **fields: Any) -> Trajectory:
    """Random tokens and log-probabilities, a prompt, and in most cases tokens of the environment in between."""
    length = int(generator.integers(5, 14))
    prompt = int(generator.integers(1, 4))
    mask = generator.random(length) < 0.75
    mask[:prompt], mask[prompt] = False, True
    logprobs = np.where(mask, np.log(generator.uniform(0.03, 0.15, length)), 0.0)
    rewards = np.where(mask, generator.normal(size=length), 0.0)
    rewards[-1] += score - rewards.sum()
    return trajectory(
        mask.tolist(),
        tokens=generator.integers(0, VOCAB, length).tolist(),
        rewards=rewards.tolist() if np.isfinite(score) else [0.0] * (length - 1) + [score],
        logprobs=logprobs.tolist(),
        verdict=Verdict(score, Outcome.VERIFIER_ERROR if np.isnan(score) else Outcome.SCORED),
        group=group,
        **fields,
    )


def tiny_policy(temperature: float = 1.0) -> CausalLMPolicy:
    """A model of some 3000 weights, made larger so that its distributions are far from uniform."""
    model = tiny_model(VOCAB, layers=1, hidden_size=16, heads=2, intermediate_size=32)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(3.0)
    return CausalLMPolicy(model, PolicyConfig(temperature=temperature))


def gradients(policy: CausalLMPolicy) -> list[Tensor]:
    """Copies of the gradients that the last optimiser step left."""
    results = [parameter.grad for parameter in policy.parameters()]
    assert all(gradient is not None for gradient in results)
    return [gradient.clone() for gradient in results if gradient is not None]


def weights(policy: CausalLMPolicy) -> list[Tensor]:
    """Copies of the weights."""
    return [parameter.detach().clone() for parameter in policy.parameters()]


def largest_difference(left: Sequence[Tensor], right: Sequence[Tensor]) -> float:
    """The largest absolute difference of any entry."""
    return max(float((one - other).abs().max()) for one, other in zip(left, right, strict=True))


def on_policy_logprobs(policy: CausalLMPolicy, played: Trajectory) -> np.ndarray:
    """Log-probabilities of a trajectory's tokens from a plain forward pass; 0 off the mask."""
    ids = torch.from_numpy(played.tokens.astype(np.int64))[None]
    with torch.no_grad():
        logits = policy.model(input_ids=ids).logits[0, :-1].float() / policy.temperature
    chosen = logits.log_softmax(-1).gather(-1, ids[0, 1:, None])[:, 0].numpy()
    return np.where(played.policy_mask, np.concatenate([[0.0], chosen]), 0.0).astype(np.float32)
