"""The metrics of a training step. Names are those of TRL if it has the same metric.

| name | meaning |
|---|---|
| `reward`, `reward_std` | mean and standard deviation of the scores, excluding episodes whose verifier broke |
| `rewards/NAME/mean`, `.../std` | mean and standard deviation of each part of a composed score |
| `frac_reward_zero_std` | share of the groups with several scores whose scores are all equal; absent without such groups |
| `frac_all_correct`, `frac_all_wrong` | of those groups, the share in which every completion is right, and in which none is |
| `completions/mean_length`, `max_length`, `clipped_ratio` | the policy's tokens; share of truncated episodes |
| `outcomes/NAME`, `outcome_counts/NAME` | share and number of episodes with that outcome |
| `applied/NAME` | with a `hybrid` or `first` verifier: of the decided episodes, the share that the part NAME decided |
| `gold_reward`, `gold_errors` | of `with_gold`: mean gold score; number of episodes on which the gold verifier broke |
| `gold_correlation` | correlation of the gold score with the score that is trained on; absent if one of them does not vary |
| `rewards/chosen`, `rejected`, `margins` | DPO: mean implicit rewards of pairs, and their difference |
| `rewards/accuracies` | DPO: share of pairs whose difference is above 0 |
| `pairs` | DPO: number of pairs |
| `kept` | RFT: share of the completions that are learned from |
| `noise/false_positives`, `noise/false_negatives` | with a card: expected number among the verdicts; `/low`, `/high` too |
| `noise/groups_by_error` | with a card: share of the groups with different verdicts whose difference is likely an error |
| `verifier_errors` | number of episodes whose verifier broke; a run's `verifier_errors.jsonl` says why |
| `unsupported` | number of episodes scored 0 because their tests use objects in a way the sandbox does not support |
| `contracts/together/reward`, `separate/reward` | mean score if tests run together with the program, and if separately |
| `baseline_errors` | number of other episodes excluded because the verifier broke on their baseline (ReMax, VinePPO) |
| `loss`, `loss/TERM` | loss of the optimiser step, and its terms if there are several |
| `entropy` | entropy of the policy at the trained tokens, in nats; absent, like the ratios, if no token had a gradient |
| `kl` | k3 estimate of KL(policy || reference) per token |
| `ratio/min`, `mean`, `max` | probability ratio to the policy before the update, before clipping |
| `clip_ratio/low_mean`, `high_mean`, `region_mean` | share of tokens clipped or capped from below, from above, and in total |
| `sampling/importance_sampling_ratio/min`, `mean`, `max` | importance weights of off-policy samples, after truncation |
| `sampling/effective_sample_size` | effective share of those samples, (sum w)^2 / (n sum w^2) |
| `sampling/sampling_logp_difference/mean`, `max` | log-probability difference of sampler and learner, before the update |
| `sampling/kl` | k3 estimate of KL(sampler || learner) per token |
| `sampling/probe_difference` | mean log-probability difference on a few tokens after a transfer, largest of all engines |
| `sync_s` | seconds of the transfer |
| `sampling/engine_restarts` | number of times so far that an engine was started again after it died |
| `sampling/age` | with a lag: number of updates between the newest weights that sampled and those that learn from the batch |
| `sampling/hidden`, `wait_s` | with a lag: share of `rollout_s` during which learning went on; seconds that it waited |
| `sampling/carried_share` | with carried groups: share of tokens sampled with older weights than the step's |
| `sampling/carried_steps` | with carried groups: largest number of steps over which a group was carried |
| `problems/new`, `hard`, `middling`, `easy` | shares of groups by the problem's earlier score: none, below 0.2, to 0.8, above |
| `problems/level` | of a task at several levels: index of the hardest one that problems are drawn from |
| `parts/NAME/reward`, `groups`, `tokens` | of each part of a mixture: mean score; shares of all groups and tokens |
| `parts/NAME/frac_reward_zero_std`, `verifier_errors`, `clipped_ratio` | of each part: as for all episodes |
| `shared_prefix` | share of the trained micro-batches in which prompts were computed once per group |
| `advantages/mean`, `std`, `abs_max` | over the trained tokens |
| `explained_variance` | 1 - Var(target - value) / Var(target), before the update |
| `grad_norm`, `grad_norm/critic` | gradient norm before clipping, of the policy's weights and of the critic's own |
| `learning_rate`, `learning_rate/critic` | of the last optimiser step; the latter if the critic is fitted separately |
| `skipped` | number of optimiser steps that changed no weight, because of a non-finite gradient or of no trained tokens |
| `nonfinite_gradients` | number of optimiser steps, of policy or critic, skipped because a gradient was not finite |
| `num_tokens`, `tokens_per_s` | total number of tokens, speed |
| `step_s`, `rollout_s`, `update_s` | seconds of the step and of each phase |
| `verify_s` | seconds spent on verification, within `rollout_s`; in the background if verification is deferred |

Metrics of sampler and learner are over all tokens if the learner computed log-probabilities before the update, as it does for
off-policy samples, and in half precision if a batch has several optimiser steps; otherwise over the trained tokens.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from agents.batch import Batch
from agents.deferred import torch
from agents.distributed.ranks import active_ranks
from agents.importance import effective_share
from agents.policies.trainable import TokenOutputs
from agents.rollouts.problem_parts import ProblemParts
from agents.runs.verdicts import applied_part, is_unsupported, ran_together
from agents.types import Trajectory
from verifiers import Outcome

if TYPE_CHECKING:
    from torch import Tensor


_LOSSES = ("loss", "loss/")
_COUNTS = ("skipped", "nonfinite_gradients")
_LAST = ("learning_rate", "learning_rate/critic")
_SHARED = "shared_prefix"
_SQUARES = "sampling/importance_sampling_ratio/square"


def summarize(trajectories: Sequence[Trajectory]) -> dict[str, float]:
    """Metrics of a batch of episodes."""
    valid = [trajectory for trajectory in trajectories if not trajectory.errored]
    scores = np.array([trajectory.score for trajectory in valid])
    lengths = np.array([int(trajectory.policy_mask.sum()) for trajectory in trajectories])
    return {
        "reward": float(scores.mean()) if len(valid) else math.nan,
        "reward_std": float(scores.std(ddof=1)) if len(valid) > 1 else 0.0,
        **_part_means(valid),
        **_share_without_spread(valid),
        **_shares_of_one_mind(valid),
        "completions/mean_length": float(lengths.mean()),
        "completions/max_length": float(lengths.max()),
        "completions/clipped_ratio": float(np.mean([trajectory.truncated for trajectory in trajectories])),
        **_outcomes(trajectories),
        **_applied(trajectories),
        **_gold(valid),
        **_contract_means(valid),
        "verifier_errors": float(len(trajectories) - len(valid)),
        "unsupported": float(
            sum(trajectory.verdict is not None and is_unsupported(trajectory.verdict) for trajectory in trajectories)
        ),
        **_baseline_errors(valid),
    }


def summarize_parts(trajectories: Sequence[Trajectory], parts: ProblemParts) -> dict[str, float]:
    """Metrics of the episodes of each part of a mixture; empty if there is only one part."""
    if len(parts.ranges) == 1:
        return {}
    groups, tokens = len({one.group for one in trajectories}), sum(int(one.policy_mask.sum()) for one in trajectories)
    metrics: dict[str, float] = {}
    for name, problems in zip(parts.names, parts.ranges, strict=True):
        mine = [one for one in trajectories if one.problem in problems]
        own = {
            "groups": len({one.group for one in mine}) / groups,
            "tokens": sum(int(one.policy_mask.sum()) for one in mine) / max(tokens, 1),
        }
        if mine:
            all_of = summarize(mine)
            own |= {key: all_of[key] for key in ("reward", "verifier_errors")}
            own["clipped_ratio"] = all_of["completions/clipped_ratio"]
            own |= {key: all_of[key] for key in ("frac_reward_zero_std",) if key in all_of}
        metrics |= {f"parts/{name}/{key}": value for key, value in own.items()}
    return metrics


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


def _contract_means(valid: Sequence[Trajectory]) -> dict[str, float]:
    """Mean scores by contract of the tests; empty if no program could have forged its verdict."""
    scores: dict[str, list[float]] = {"together": [], "separate": []}
    for trajectory in valid:
        together = trajectory.verdict is not None and ran_together(trajectory.verdict)
        scores["together" if together else "separate"].append(trajectory.score)
    shown = {name: own for name, own in scores.items() if own} if scores["together"] else {}
    return {f"contracts/{name}/reward": float(np.mean(own)) for name, own in shown.items()}


def _shares_of_one_mind(valid: Sequence[Trajectory]) -> dict[str, float]:
    """Among groups with several valid completions, the share in which all are right and the share in which all are wrong."""
    groups: dict[int, list[bool]] = {}
    for trajectory in valid:
        if trajectory.verdict is not None and trajectory.verdict.outcome is not Outcome.SCORED:
            groups.setdefault(trajectory.group, []).append(trajectory.verdict.outcome is Outcome.CORRECT)
    several = [rights for rights in groups.values() if len(rights) > 1]
    if not several:
        return {}
    return {
        "frac_all_correct": float(np.mean([all(rights) for rights in several])),
        "frac_all_wrong": float(np.mean([not any(rights) for rights in several])),
    }


def _share_without_spread(valid: Sequence[Trajectory]) -> dict[str, float]:
    """Among groups with several scores, the share in which all scores are equal."""
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


def _applied(trajectories: Sequence[Trajectory]) -> dict[str, float]:
    parts = Counter(part for trajectory in trajectories if (part := applied_part(trajectory.verdict)) is not None)
    return {f"applied/{part}": count / parts.total() for part, count in sorted(parts.items())}


def _gold(valid: Sequence[Trajectory]) -> dict[str, float]:
    """Metrics of the gold verifier of `verifiers.with_gold`, beside the scores that are trained on."""
    reports = [None if one.verdict is None else one.verdict.detail.get("gold") for one in valid]
    scores = [
        (trajectory.score, report["score"])
        for trajectory, report in zip(valid, reports, strict=True)
        if isinstance(report, Mapping) and "score" in report
    ]
    if not scores:
        return {}
    known: NDArray[np.float64] = np.array([pair for pair in scores if pair[1] is not None], dtype=np.float64)
    metrics = {"gold_errors": float(len(scores) - len(known))}
    metrics["gold_reward"] = float(known[:, 1].mean()) if len(known) else math.nan
    if len(known) and np.ptp(known, axis=0).all():
        metrics["gold_correlation"] = float(np.corrcoef(known[:, 0], known[:, 1])[0, 1])
    return metrics


def pass_sums(
    tail: Batch, outputs: TokenOutputs, clipped: tuple[Tensor, Tensor] | None, sampled: Batch | None = None
) -> dict[str, float]:
    """Sums over the tokens of one micro-batch, from which `pass_metrics` makes means.

    Args:
        tail: The micro-batch, with the log-probabilities to which ratios are relative.
        outputs: The policy's outputs at its tokens.
        clipped: Where the loss is clipped from below and above, if it is.
        sampled: The micro-batch as it was sampled, if `tail` has other log-probabilities.
    """
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
    if (tail if sampled is None else sampled).old_logprobs is None:  # otherwise `sampling_metrics` covers all tokens
        sums |= _drift_sums(outputs.logprobs[mask], tail.logprobs[mask])
    if tail.reference_logprobs is not None:
        gap = (tail.reference_logprobs - outputs.logprobs).double()[mask]
        sums["kl"] = float((gap.expm1() - gap).sum())
    if clipped is not None:
        low, high = (float(where[mask].sum()) for where in clipped)
        sums |= {"clip_ratio/low_mean": low, "clip_ratio/high_mean": high, "clip_ratio/region_mean": low + high}
    return sums


def _drift_sums(learner: Tensor, sampler: Tensor) -> dict[str, float]:
    """Sums and the maximum of differences between log-probabilities f32[n] of the learner and of the sampler."""
    drift = (learner - sampler).double()
    return {
        "sampling/kl": float((drift.expm1() - drift).sum()),
        "sampling/sampling_logp_difference/mean": float(drift.abs().sum()),
        "sampling/sampling_logp_difference/max": float(drift.abs().max()),
    }


def pass_metrics(sums: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """The metrics of an optimiser step from the sums of its micro-batches: losses are summed, and all others are token means.

    `shared_prefix` is a mean over micro-batches.
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
    """The metrics of a training step from those of its optimiser steps: means, except for extremes and counts.

    Metrics of sampler and learner are those of the first step, before any update; learning rates are those of the last.
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
    """Mean, standard deviation and largest absolute value of the advantages of trained tokens."""
    values = advantages[batch.loss_mask]
    if not len(values):
        return {}
    return {
        "advantages/mean": float(values.mean()),
        "advantages/std": float(values.std()) if len(values) > 1 else 0.0,
        "advantages/abs_max": float(values.abs().max()),
    }


def batch_metrics(batch: Batch, advantages: Tensor) -> dict[str, float]:
    """Metrics of a batch before its update: its advantages, its sampler and its critic."""
    metrics = advantage_metrics(batch, advantages) | sampling_metrics(batch)
    if batch.values is not None and batch.value_targets is not None:
        metrics["explained_variance"] = explained_variance(batch.values, batch.value_targets, batch.loss_mask)
    return metrics


def sampling_metrics(batch: Batch) -> dict[str, float]:
    """Differences between sampler and learner, and importance weights, if a batch has both log-probabilities.

    The metrics cover all tokens on the loss mask, including those without a gradient.
    """
    mask = batch.mask_here
    if batch.old_logprobs is None or not batch.loss_mask.any():
        return {}
    sums: dict[str, float] = {}
    if mask.any():
        drift = _drift_sums(batch.old_logprobs[mask], batch.logprobs[mask])
        sums = {"_tokens": float(mask.sum()), **drift, **_importance_sums(batch)}
    if batch.here is None:
        return _sampling_means([sums])
    return _sampling_means([part for part in active_ranks().gather(sums) if part])


def _importance_sums(batch: Batch) -> dict[str, float]:
    if batch.importance is None:
        return {}
    weights = batch.importance[batch.mask_here]
    return {
        "sampling/importance_sampling_ratio/min": float(weights.min()),
        "sampling/importance_sampling_ratio/mean": float(weights.sum()),
        "sampling/importance_sampling_ratio/max": float(weights.max()),
        _SQUARES: float(weights.square().sum()),
    }


def _sampling_means(sums: Sequence[Mapping[str, float]]) -> dict[str, float]:
    metrics = pass_metrics(sums)
    square = metrics.pop(_SQUARES, None)
    if square is not None:
        mean = metrics["sampling/importance_sampling_ratio/mean"]
        metrics["sampling/effective_sample_size"] = effective_share(mean, square)
    return metrics


def explained_variance(values: Tensor, targets: Tensor, mask: Tensor) -> float:
    """The share of the targets' variance explained by values: 1 - Var(target - value) / Var(target); NaN without variance."""
    if not mask.any():
        return math.nan
    variance = torch.var(targets[mask], correction=0)
    left = torch.var((targets - values)[mask], correction=0)
    return float(1 - left / variance) if float(variance) > 0 else math.nan
