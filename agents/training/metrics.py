"""The numbers that a training step reports. Names follow TRL's where it has one.

| name | meaning |
|---|---|
| `reward`, `reward_std` | mean and standard deviation of the scores, broken verifiers left out |
| `rewards/NAME/mean`, `.../std` | of each part of a composed score |
| `frac_reward_zero_std` | share of the groups with several scores whose scores are all equal; absent where there are none |
| `completions/mean_length`, `max_length`, `clipped_ratio` | the policy's tokens; share of truncated episodes |
| `outcomes/NAME`, `outcome_counts/NAME` | share and number of episodes with that outcome |
| `verifier_errors` | number of episodes whose verifier broke; a run's `verifier_errors.jsonl` says why |
| `unsupported` | number of episodes scored 0 as their tests ask of the program's objects what the sandbox does not do |
| `baseline_errors` | number of other episodes left out, since it broke on what they are compared with (ReMax) |
| `loss`, `loss/TERM` | of the optimiser step, and its parts where there are several |
| `entropy` | of the policy at the tokens learned from, in nats; it and the ratios are absent where no token had a gradient |
| `kl` | k3 estimate of KL(policy || reference) per token |
| `ratio/min`, `mean`, `max` | policy over the policy before the update, before clipping |
| `clip_ratio/low_mean`, `high_mean`, `region_mean` | share of tokens that the loss clips or caps, and both |
| `sampling/importance_sampling_ratio/min`, `mean`, `max` | weights of samples from elsewhere, after truncation |
| `sampling/effective_sample_size` | share of those samples that counts, (sum w)^2 / (n sum w^2) |
| `sampling/sampling_logp_difference/mean`, `max` | between sampler and learner, before the update |
| `sampling/kl` | k3 estimate of KL(sampler || learner) per token |
| `sampling/probe_difference`, `sync_s` | mean of that on a few tokens after an engine got new weights; seconds of both |
| `shared_prefix` | share of the micro-batches learned from in which prompts were read once for each group |
| `advantages/mean`, `std`, `abs_max` | over the tokens learned from |
| `explained_variance` | 1 - Var(target - value) / Var(target), before the update |
| `grad_norm`, `grad_norm/critic` | before clipping, of the policy's weights and of the critic's own |
| `learning_rate`, `learning_rate/critic` | of the last optimiser step; the latter where the critic is fitted by itself |
| `skipped` | optimiser steps that changed no weight, for whatever reason: nothing to learn from, or as follows |
| `nonfinite_gradients` | optimiser steps, of the policy or of a critic by itself, left out since a gradient was not finite |
| `num_tokens`, `tokens_per_s`, `rollout_s`, `update_s` | tokens so far, speed, seconds of each phase |
| `verify_s` | seconds spent on verdicts, within `rollout_s`; in the background where they are deferred |

What is said of sampler and learner is of all tokens where the learner read them before the update, as it does for samples from
elsewhere and in half precision; else of the tokens learned from.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
import torch
from torch import Tensor

from agents.batch import Batch
from agents.importance import effective_sample_size
from agents.policies.trainable import TokenOutputs
from agents.training.verifier_errors import is_unsupported
from agents.types import Trajectory
from verifiers import Outcome

_LOSSES = ("loss", "loss/")
_COUNTS = ("skipped", "nonfinite_gradients")
_LAST = ("learning_rate", "learning_rate/critic")
_SHARED = "shared_prefix"


def summarize(trajectories: Sequence[Trajectory]) -> dict[str, float]:
    """What a batch of episodes looks like."""
    valid = [trajectory for trajectory in trajectories if not trajectory.errored]
    scores = np.array([trajectory.score for trajectory in valid])
    lengths = np.array([int(trajectory.policy_mask.sum()) for trajectory in trajectories])
    return {
        "reward": float(scores.mean()) if len(valid) else math.nan,
        "reward_std": float(scores.std(ddof=1)) if len(valid) > 1 else 0.0,
        **_part_means(valid),
        **_share_without_spread(valid),
        "completions/mean_length": float(lengths.mean()),
        "completions/max_length": float(lengths.max()),
        "completions/clipped_ratio": float(np.mean([trajectory.truncated for trajectory in trajectories])),
        **_outcomes(trajectories),
        "verifier_errors": float(len(trajectories) - len(valid)),
        "unsupported": float(
            sum(trajectory.verdict is not None and is_unsupported(trajectory.verdict) for trajectory in trajectories)
        ),
        **_baseline_errors(valid),
    }


def _baseline_errors(valid: Sequence[Trajectory]) -> dict[str, float]:
    given = [trajectory.baseline for trajectory in valid if trajectory.baseline is not None]
    return {"baseline_errors": float(sum(map(math.isnan, given)))} if given else {}


def _part_means(valid: Sequence[Trajectory]) -> dict[str, float]:
    by_name: dict[str, list[float]] = {}
    for trajectory in valid:
        for name, (score, _) in trajectory.reward_parts.items():
            by_name.setdefault(name, []).append(score)
    means = {f"rewards/{name}/mean": float(np.mean(scores)) for name, scores in by_name.items()}
    return means | {
        f"rewards/{name}/std": float(np.std(scores, ddof=1)) if len(scores) > 1 else 0.0
        for name, scores in by_name.items()
    }


def _share_without_spread(valid: Sequence[Trajectory]) -> dict[str, float]:
    """Of the groups with several scores: a score alone has no spread, whatever the agent does with it."""
    groups: dict[int, list[float]] = {}
    for trajectory in valid:
        groups.setdefault(trajectory.group, []).append(trajectory.score)
    flat = [max(group) == min(group) for group in groups.values() if len(group) > 1]
    return {"frac_reward_zero_std": float(np.mean(flat))} if flat else {}


def _outcomes(trajectories: Sequence[Trajectory]) -> dict[str, float]:
    outcomes = [trajectory.verdict.outcome for trajectory in trajectories if trajectory.verdict is not None]
    counts = {outcome: float(outcomes.count(outcome)) for outcome in Outcome if outcomes}
    return {f"outcomes/{outcome}": count / len(trajectories) for outcome, count in counts.items()} | {
        f"outcome_counts/{outcome}": count for outcome, count in counts.items()
    }


def pass_sums(tail: Batch, outputs: TokenOutputs, clipped: tuple[Tensor, Tensor] | None) -> dict[str, float]:
    """Sums over the tokens of one micro-batch, from which `pass_metrics` makes means."""
    mask = tail.loss_mask
    log_ratio = (outputs.logprobs - tail.old).double()[mask]
    ratio = log_ratio.exp()
    sums = {
        "_tokens": float(mask.sum()),
        _SHARED: float(outputs.shared),
        "entropy": float(outputs.entropy.double()[mask].sum()),
        "ratio/mean": float(ratio.sum()),
        "ratio/min": float(ratio.min()),
        "ratio/max": float(ratio.max()),
    }
    if tail.old_logprobs is None:  # else `sampling_metrics` tells, of all tokens
        sums |= _drift_sums(outputs.logprobs[mask], tail.logprobs[mask])
    if tail.reference_logprobs is not None:
        gap = (tail.reference_logprobs - outputs.logprobs).double()[mask]
        sums["kl"] = float((gap.expm1() - gap).sum())
    if clipped is not None:
        low, high = (float(where[mask].sum()) for where in clipped)
        sums |= {"clip_ratio/low_mean": low, "clip_ratio/high_mean": high, "clip_ratio/region_mean": low + high}
    return sums


def _drift_sums(learner: Tensor, sampler: Tensor) -> dict[str, float]:
    """How far log-probabilities f32[n] of the learner are from those that the sampler stored, in sums and the largest."""
    drift = (learner - sampler).double()
    return {
        "sampling/kl": float((drift.expm1() - drift).sum()),
        "sampling/sampling_logp_difference/mean": float(drift.abs().sum()),
        "sampling/sampling_logp_difference/max": float(drift.abs().max()),
    }


def pass_metrics(sums: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """One optimiser step's metrics from its micro-batches' sums: losses are summed, the rest averaged over tokens.

    How a micro-batch was read is averaged over micro-batches.
    """
    if not sums:
        return {"loss": 0.0}
    tokens = sum(micro_batch["_tokens"] for micro_batch in sums)
    metrics: dict[str, float] = {}
    for name in sums[0].keys() - {"_tokens"}:
        values = [micro_batch[name] for micro_batch in sums]
        count = len(values) if name == _SHARED else tokens
        metrics[name] = _combine(name, values, 1.0 if name.startswith(_LOSSES) else count)
    return metrics


def merge(steps: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """One training step's metrics from its optimiser steps': means, except for extremes and counts.

    What is said of sampler and learner is that of the first, before any update; learning rates are those of the last.
    """
    names = {name: None for step in steps for name in step}
    metrics: dict[str, float] = {}
    for name in names:
        values = [step[name] for step in steps if name in step]
        if name.startswith("sampling/"):
            metrics[name] = values[0]
        elif name in _LAST:
            metrics[name] = values[-1]
        elif name in _COUNTS:
            metrics[name] = sum(values)
        else:
            metrics[name] = _combine(name, values, len(values))
    return metrics


def _combine(name: str, values: Sequence[float], count: float) -> float:
    if any(math.isnan(value) for value in values):
        return math.nan
    if name.endswith("/max"):
        return max(values)
    return min(values) if name.endswith("/min") else sum(values) / count


def advantage_metrics(batch: Batch, advantages: Tensor) -> dict[str, float]:
    """Mean, standard deviation and largest size of the advantages that are learned from."""
    values = advantages[batch.loss_mask]
    if not len(values):
        return {}
    return {
        "advantages/mean": float(values.mean()),
        "advantages/std": float(values.std()) if len(values) > 1 else 0.0,
        "advantages/abs_max": float(values.abs().max()),
    }


def sampling_metrics(batch: Batch) -> dict[str, float]:
    """How far the sampler of a whole batch is from the learner, as far as the batch has both: differences and weights.

    Of all tokens on the loss mask, those included that no gradient comes from.
    """
    mask = batch.loss_mask
    if batch.old_logprobs is None or not mask.any():
        return {}
    drift = {"_tokens": float(mask.sum()), **_drift_sums(batch.old_logprobs[mask], batch.logprobs[mask])}
    return pass_metrics([drift]) | _importance_metrics(batch)


def _importance_metrics(batch: Batch) -> dict[str, float]:
    if batch.importance is None:
        return {}
    weights = batch.importance[batch.loss_mask]
    return {
        "sampling/importance_sampling_ratio/min": float(weights.min()),
        "sampling/importance_sampling_ratio/mean": float(weights.mean()),
        "sampling/importance_sampling_ratio/max": float(weights.max()),
        "sampling/effective_sample_size": effective_sample_size(batch.importance, batch.loss_mask),
    }


def explained_variance(values: Tensor, targets: Tensor, mask: Tensor) -> float:
    """The share of the targets' variance that values explain: 1 - Var(target - value) / Var(target); NaN if that is 0."""
    if not mask.any():
        return math.nan
    variance = torch.var(targets[mask], correction=0)
    left = torch.var((targets - values)[mask], correction=0)
    return float(1 - left / variance) if float(variance) > 0 else math.nan
