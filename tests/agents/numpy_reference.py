"""Every advantage and every loss a second time, in NumPy, as literally as the sources state them.

Loops instead of vectors, enumerated subsets instead of sorted sums, the equation instead of a recursion: slow and
obvious, to hold the fast versions in `agents` against. Written from the papers, without sight of the torch code.

Rows are completions b, columns tokens t. `mask` marks the policy's own tokens, its decisions; `valid` the completions
whose verifier gave a verdict (the scores of the others are NaN). A loss returns a pair: the loss of every token, and its
derivative with respect to the log-probability (or value) of the same token, with whatever the method detaches held fixed.
"""

from __future__ import annotations

import math
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]


def mean(numbers: list[float]) -> float:
    return math.fsum(numbers) / len(numbers)


def standard_deviation(numbers: list[float]) -> float:
    """Unbiased: divided by n - 1 (Bessel)."""
    centre = mean(numbers)
    return math.sqrt(math.fsum((x - centre) ** 2 for x in numbers) / (len(numbers) - 1))


def verified(valid: Bools) -> list[int]:
    return [i for i in range(len(valid)) if valid[i]]


def peers(row: int, groups: Ints, valid: Bools) -> list[int]:
    """Rows of the same group whose verifier did not break, the row itself among them if its own did not."""
    return [j for j in range(len(groups)) if groups[j] == groups[row] and valid[j]]


def no_signal(scores: list[float]) -> bool:
    """A group of one, or of equal scores, says nothing about which completion was better."""
    return len(scores) < 2 or max(scores) - min(scores) == 0


# ---------------------------------------------------------------- decisions and returns


def decisions(mask: Bools) -> list[int]:
    """The positions of one row at which the policy chose a token."""
    return [t for t in range(len(mask)) if mask[t]]


def decision_rewards(rewards: Floats, mask: Bools) -> list[float]:
    """R_j: what was paid from decision j up to (not including) decision j + 1."""
    starts = decisions(mask)
    ends = [*starts[1:], len(mask)]
    return [math.fsum(rewards[start:end]) for start, end in zip(starts, ends, strict=False)]


def returns_to_go(rewards: Floats, mask: Bools, gamma: float = 1.0) -> Floats:
    """G_j = sum_{l >= 0} gamma^l R_{j+l}, time counted in decisions (Sutton and Barto, eq. 3.8)."""
    result = np.zeros_like(rewards)
    for row in range(len(rewards)):
        paid = decision_rewards(rewards[row], mask[row])
        for j, t in enumerate(decisions(mask[row])):
            result[row, t] = math.fsum(gamma**step * paid[j + step] for step in range(len(paid) - j))
    return result


def _state_values(values: Floats, mask: Bools, bootstrap: float) -> list[float]:
    """V of the state before each decision, and last of all of the state after the end."""
    return [float(values[t]) for t in decisions(mask)] + [bootstrap]


def gae(
    rewards: Floats,
    values: Floats,
    mask: Bools,
    *,
    gamma: float = 1.0,
    gae_lambda: float = 1.0,
    bootstrap: Floats | None = None,
) -> Floats:
    """A_j = sum_l (gamma lambda)^l delta_{j+l}, delta_j = R_j + gamma V_{j+1} - V_j (arXiv 1506.02438, eq. 16)."""
    result = np.zeros_like(rewards)
    for row in range(len(rewards)):
        paid = decision_rewards(rewards[row], mask[row])
        v = _state_values(values[row], mask[row], 0.0 if bootstrap is None else float(bootstrap[row]))
        delta = [paid[j] + gamma * v[j + 1] - v[j] for j in range(len(paid))]
        for j, t in enumerate(decisions(mask[row])):
            result[row, t] = math.fsum((gamma * gae_lambda) ** i * delta[j + i] for i in range(len(paid) - j))
    return result


def n_step(
    rewards: Floats, values: Floats, mask: Bools, n: int, *, gamma: float = 1.0, bootstrap: Floats | None = None
) -> Floats:
    """sum_{k < n} gamma^k R_{j+k} + gamma^n V_{j+n} - V_j, n cut where the row ends (Sutton and Barto, eq. 7.1)."""
    result = np.zeros_like(rewards)
    for row in range(len(rewards)):
        paid = decision_rewards(rewards[row], mask[row])
        v = _state_values(values[row], mask[row], 0.0 if bootstrap is None else float(bootstrap[row]))
        for j, t in enumerate(decisions(mask[row])):
            steps = min(n, len(paid) - j)
            ahead = math.fsum(gamma**k * paid[j + k] for k in range(steps))
            result[row, t] = ahead + gamma**steps * v[j + steps] - v[j]
    return result


def whiten(advantages: Floats, mask: Bools, *, center: bool = True) -> Floats:
    """(A - mean) / sqrt(var + 1e-8) over the decisions of the whole batch, var unbiased; 0 elsewhere.

    Without a spread there is nothing to divide by: A - mean = 0, or, not centred, A as it is.
    """
    chosen = [float(a) for a in advantages[mask]]
    result = np.zeros_like(advantages)
    scale = 1.0 if no_signal(chosen) else math.sqrt(standard_deviation(chosen) ** 2 + 1e-8)
    for row, t in np.argwhere(mask):
        result[row, t] = (advantages[row, t] - (mean(chosen) if center else 0.0)) / scale
    return result


# ---------------------------------------------------------------- baselines and groups


def batch_mean_baseline(scores: Floats, valid: Bools) -> Floats:
    return np.asarray(mean([float(s) for s in scores[valid]]))


def moving_average(baseline: float, scores: Floats, valid: Bools, decay: float) -> float:
    """b <- decay b + (1 - decay) mean(R)."""
    if not valid.any():
        return baseline
    return decay * baseline + (1 - decay) * mean([float(s) for s in scores[valid]])


def group_mean(scores: Floats, groups: Ints, valid: Bools) -> Floats:
    """Of the row's group; 0 for a row whose own verifier broke."""
    result = np.zeros_like(scores)
    for i in verified(valid):
        result[i] = mean([float(scores[j]) for j in peers(i, groups, valid)])
    return result


def group_centered(scores: Floats, groups: Ints, valid: Bools) -> Floats:
    """R_i - mean_G(R) (Dr. GRPO, arXiv 2503.20783)."""
    result = np.zeros_like(scores)
    for i in verified(valid):
        group = [float(scores[j]) for j in peers(i, groups, valid)]
        if not no_signal(group):
            result[i] = scores[i] - mean(group)
    return result


def group_z_score(scores: Floats, groups: Ints, valid: Bools, epsilon: float = 1e-4) -> Floats:
    """(R_i - mean_G(R)) / (std_G(R) + eps) (GRPO, arXiv 2402.03300)."""
    result = np.zeros_like(scores)
    for i in verified(valid):
        group = [float(scores[j]) for j in peers(i, groups, valid)]
        if not no_signal(group):
            result[i] = (scores[i] - mean(group)) / (standard_deviation(group) + epsilon)
    return result


def leave_one_out(scores: Floats, groups: Ints, valid: Bools) -> Floats:
    """R_i - mean of the others of the group (RLOO, arXiv 2402.14740)."""
    result = np.zeros_like(scores)
    for i in verified(valid):
        group = peers(i, groups, valid)
        others = [float(scores[j]) for j in group if j != i]
        if not no_signal([float(scores[j]) for j in group]):
            result[i] = scores[i] - mean(others)
    return result


def group_centered_batch_std(scores: Floats, groups: Ints, valid: Bools, epsilon: float = 1e-4) -> Floats:
    """(R_i - mean_G(R)) / (std of all valid scores of the batch + eps) (arXiv 2508.08221)."""
    result = np.zeros_like(scores)
    batch = [float(s) for s in scores[valid]]
    for i in verified(valid):
        group = [float(scores[j]) for j in peers(i, groups, valid)]
        if not no_signal(group):
            result[i] = (scores[i] - mean(group)) / (standard_deviation(batch) + epsilon)
    return result


def length_weighted(scores: Floats, lengths: Ints, groups: Ints, valid: Bools) -> Floats:
    """R_i - sum_j T_j R_j / sum_j T_j (OPO, arXiv 2505.23585)."""
    result = np.zeros_like(scores)
    for i in verified(valid):
        group = peers(i, groups, valid)
        if not no_signal([float(scores[j]) for j in group]):
            weighted = math.fsum(float(lengths[j]) * float(scores[j]) for j in group)
            result[i] = scores[i] - weighted / math.fsum(float(lengths[j]) for j in group)
    return result


def multi_reward(components: Floats, weights: Floats, groups: Ints, valid: Bools, epsilon: float = 1e-4) -> Floats:
    """Each reward's group z-score, their weighted sum, then a z-score over the batch (GDPO, arXiv 2601.05242)."""
    summed = np.zeros(len(components))
    for k in range(components.shape[1]):
        summed += weights[k] * group_z_score(components[:, k], groups, valid, epsilon)
    result = np.zeros(len(components))
    batch = [float(s) for s in summed[valid]]
    if no_signal(batch):
        return result
    for i in verified(valid):
        result[i] = (summed[i] - mean(batch)) / (standard_deviation(batch) + epsilon)
    return result


def maximum_likelihood(scores: Floats, groups: Ints, valid: Bools) -> Floats:
    """(R_i - mean_G(R)) / mean_G(R), 0 where no completion scored (MaxRL, arXiv 2602.02710)."""
    result = np.zeros_like(scores)
    for i in verified(valid):
        group = [float(scores[j]) for j in peers(i, groups, valid)]
        if not no_signal(group) and mean(group) > 0:
            result[i] = (scores[i] - mean(group)) / mean(group)
    return result


def pass_at_k(scores: Floats, groups: Ints, valid: Bools, k: int) -> Floats:
    """k (f_i - b_i): the mean best of k with completion i among them, less the mean best of k of the others.

    With M the mean over the size-k subsets of a group of the best score in the subset, M = (k/G) f_i + what completion i
    has no part in, so sum_i (k/G) f_i grad lp_i estimates grad E[M] without bias. b_i does not depend on completion i.
    Times G, as a loss takes the mean over the group. 0 where broken verifiers left a completion fewer than k others.
    """
    result = np.zeros_like(scores)
    for i in verified(valid):
        others = [float(scores[j]) for j in peers(i, groups, valid) if j != i]
        if len(others) < k:
            continue
        with_i = [max([float(scores[i]), *subset]) for subset in combinations(others, k - 1)]
        without_i = [max(subset) for subset in combinations(others, k)]
        result[i] = k * (mean(with_i) - mean(without_i))
    return result


def soft_overlong_penalty(lengths: Ints, max_tokens: int, margin: int) -> Floats:
    """DAPO (arXiv 2503.14476), eq. 13."""
    result = np.zeros(len(lengths))
    for i, length in enumerate(lengths):
        if length <= max_tokens - margin:
            result[i] = 0.0
        elif length <= max_tokens:
            result[i] = ((max_tokens - margin) - length) / margin
        else:
            result[i] = -1.0
    return result


# ---------------------------------------------------------------- losses: (loss, derivative)


def policy_gradient(logprobs: Floats, advantages: Floats) -> tuple[Floats, Floats]:
    """-A lp."""
    return -advantages * logprobs, -advantages


def _ratio(logprob: float, old_logprob: float) -> float:
    """exp(lp - old), infinite where that overflows."""
    try:
        return math.exp(logprob - old_logprob)
    except OverflowError:
        return math.inf


def _clipped_objective(ratio: float, advantage: float, low: float, high: float) -> tuple[float, float]:
    """min(rho A, clip(rho, low, high) A), and its derivative by lp, where d rho / d lp = rho."""
    if advantage == 0:
        return 0.0, 0.0
    unclipped = ratio * advantage
    clipped = min(max(ratio, low), high) * advantage
    return (unclipped, unclipped) if unclipped <= clipped else (clipped, 0.0)


def clipped_surrogate(
    logprobs: Floats,
    old_logprobs: Floats,
    advantages: Floats,
    clip_low: float = 0.2,
    clip_high: float = 0.2,
    dual_clip: float | None = None,
) -> tuple[Floats, Floats]:
    """PPO (arXiv 1707.06347, eq. 7), each side with its own bound (DAPO, eq. 10); dual clip (arXiv 1912.09729).

    The dual clip maximises max(the clipped objective, c A) where A < 0.
    """
    loss, slope = np.zeros_like(logprobs), np.zeros_like(logprobs)
    for at in np.ndindex(*logprobs.shape):
        advantage = float(advantages[at])
        ratio = _ratio(float(logprobs[at]), float(old_logprobs[at]))
        objective, derivative = _clipped_objective(ratio, advantage, 1 - clip_low, 1 + clip_high)
        if dual_clip is not None and advantage < 0 and objective < dual_clip * advantage:
            objective, derivative = dual_clip * advantage, 0.0
        loss[at], slope[at] = -objective, -derivative
    return loss, slope


def sequence_clipped_surrogate(
    logprobs: Floats,
    old_logprobs: Floats,
    advantages: Floats,
    mask: Bools,
    clip_low: float = 3e-4,
    clip_high: float = 4e-4,
) -> tuple[Floats, Floats]:
    """GSPO-token (arXiv 2507.18071, eq. 13 and 14): s_{i,t} = sg[s_i] pi / sg[pi] in place of the token's own ratio.

    s_i = (pi(y) / pi_old(y))^(1/|y|) over the policy's own tokens; the derivative of s_{i,t} by lp_{i,t} is s_i. 0 elsewhere.
    """
    loss, slope = np.zeros_like(logprobs), np.zeros_like(logprobs)
    for row in range(len(logprobs)):
        own = decisions(mask[row])
        if not own:
            continue
        ratio = _ratio(mean([float(logprobs[row, t]) - float(old_logprobs[row, t]) for t in own]), 0.0)
        for t in own:
            objective, derivative = _clipped_objective(ratio, float(advantages[row, t]), 1 - clip_low, 1 + clip_high)
            loss[row, t], slope[row, t] = -objective, -derivative
    return loss, slope


def cispo(logprobs: Floats, old_logprobs: Floats, advantages: Floats, is_cap: float) -> tuple[Floats, Floats]:
    """-sg[min(rho, cap)] A lp (arXiv 2506.13585, eq. 4 and 5, without the lower bound)."""
    loss, slope = np.zeros_like(logprobs), np.zeros_like(logprobs)
    for at in np.ndindex(*logprobs.shape):
        weight = min(_ratio(float(logprobs[at]), float(old_logprobs[at])), is_cap)
        slope[at] = -weight * advantages[at]
        loss[at] = slope[at] * logprobs[at]
    return loss, slope


def squared_value_error(
    values: Floats, targets: Floats, old_values: Floats | None = None, clip: float | None = None
) -> tuple[Floats, Floats]:
    """0.5 (V - ret)^2, or 0.5 max of that and the same with V kept within V_old +- clip. Derivative by V."""
    loss, slope = np.zeros_like(values), np.zeros_like(values)
    for at in np.ndindex(*values.shape):
        error = float(values[at] - targets[at])
        loss[at], slope[at] = 0.5 * error**2, error
        if old_values is not None and clip is not None:
            moved = float(values[at] - old_values[at])
            kept = float(old_values[at]) + min(max(moved, -clip), clip) - float(targets[at])
            if abs(moved) > clip and 0.5 * kept**2 > loss[at]:
                loss[at], slope[at] = 0.5 * kept**2, 0.0
    return loss, slope


def token_weights(mask: Bools, aggregation: str, *, num_completions: int, max_tokens: int | None = None) -> Floats:
    """w with loss = sum of w l: what each aggregation divides by, of all completions of the optimiser step.

    token-mean: N, the number of own tokens. The others: B, the number of completions, times T_i, 1 or the constant max_tokens.
    """
    result = np.zeros(mask.shape)
    for row in range(len(mask)):
        for t in decisions(mask[row]):
            if aggregation == "token-mean":
                divisor = sum(len(decisions(other)) for other in mask)
            elif aggregation == "sequence-mean-token-mean":
                divisor = num_completions * len(decisions(mask[row]))
            elif aggregation == "sequence-mean-token-sum":
                divisor = num_completions
            else:
                assert max_tokens is not None
                divisor = num_completions * max_tokens
            result[row, t] = 1 / divisor
    return result


# ---------------------------------------------------------------- KL divergence: (estimate, derivative)


def kl_estimate(
    estimator: str, logprobs: Floats, ref_logprobs: Floats, old_logprobs: Floats | None = None
) -> tuple[Floats, Floats]:
    """Schulman's estimators of KL(pi || ref) (joschu.net/blog/kl-approx.html), x = log ref - log pi.

    k1 = -x; k2 = x^2 / 2; k3 = e^x - 1 - x; k3-ratio = pi / pi_old k3 (DeepSeek-V3.2), the ratio differentiated too:
    d(rho k3) = rho k3 + rho (1 - e^x) = -rho x.
    """
    value, slope = np.zeros_like(logprobs), np.zeros_like(logprobs)
    for at in np.ndindex(*logprobs.shape):
        x = float(ref_logprobs[at] - logprobs[at])
        if estimator == "k1":
            value[at], slope[at] = -x, 1.0
        elif estimator == "k2":
            value[at], slope[at] = 0.5 * x**2, -x
        elif estimator == "k3":
            value[at], slope[at] = math.expm1(x) - x, -math.expm1(x)
        else:
            assert old_logprobs is not None
            ratio = _ratio(float(logprobs[at]), float(old_logprobs[at]))
            value[at], slope[at] = ratio * (math.expm1(x) - x), -ratio * x
    return value, slope


def adaptive_kl_coefficient(coefficient: float, kl: float, n: int, target: float, horizon: int) -> float:
    """error = clip(KL / target - 1, -0.2, 0.2), beta <- beta (1 + error n / horizon) (arXiv 1909.08593, sec. 2.2)."""
    error = min(max(kl / target - 1, -0.2), 0.2)
    return coefficient * (1 + error * n / horizon)


# ---------------------------------------------------------------- importance weights


def importance_weights(
    old_logprobs: Floats,
    behaviour_logprobs: Floats,
    mask: Bools,
    correction: str,
    *,
    cap: float = 2.0,
    floor: float = 0.0,
) -> Floats:
    """w = pi_old / pi_behaviour of a token, of the whole row (sequence), or its geometric mean; 0 off the mask.

    truncate: w brought into [floor, cap] (Ionides 2008, who has no floor). mask: w if floor <= w <= cap, else 0.
    geometric-mask: the geometric mean decides which rows stay, and their tokens are truncated. A token of unknown behaviour
    log-probability (NaN) counts as ratio 1.
    """
    result = np.zeros_like(old_logprobs)
    for row in range(len(old_logprobs)):
        own = decisions(mask[row])
        if not own:
            continue
        gaps = {t: float(old_logprobs[row, t] - behaviour_logprobs[row, t]) for t in own}
        gaps = {t: 0.0 if math.isnan(gap) else gap for t, gap in gaps.items()}
        whole = _ratio(math.fsum(gaps.values()), 0.0)
        geometric = _ratio(math.fsum(gaps.values()) / len(gaps), 0.0)
        for t in own:
            token = _ratio(gaps[t], 0.0)
            result[row, t] = {
                "none": 1.0,
                "token-truncate": min(max(token, floor), cap),
                "token-mask": token if floor <= token <= cap else 0.0,
                "sequence-truncate": min(max(whole, floor), cap),
                "sequence-mask": whole if floor <= whole <= cap else 0.0,
                "geometric-mask": min(max(token, floor), cap) if floor <= geometric <= cap else 0.0,
            }[correction]
    return result


def effective_sample_size(weights: Floats, mask: Bools) -> float:
    """(sum w)^2 / (n sum w^2): the share of the n tokens that equal weights would need for the same variance (Kish)."""
    chosen = [float(w) for w in weights[mask]]
    return math.fsum(chosen) ** 2 / (len(chosen) * math.fsum(w**2 for w in chosen))
