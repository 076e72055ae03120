"""Advantages: pure functions from rewards to the advantage of each token or completion.

Axes: b completions, t tokens, k components of the reward. Everything is computed in float64.

`mask` marks the policy's own tokens: it is False for the prompt, for tokens of the environment, for padding, and throughout
a completion whose verifier broke. `valid` is False for such a completion: its score (NaN) enters no baseline, and its
advantage is 0. `groups` labels the completions of one problem with any integers. In a group whose valid scores are all
equal, or that has one valid member, every advantage relative to the group is exactly 0: there is nothing to compare, and
dividing one rounding error by another would produce noise as large as a real signal.

A function of scores returns one number for each completion, which applies to all of its tokens; `losses.token_weights`
defines how tokens are averaged. A valid score that is NaN or infinite raises `InvalidArgumentError`. Results are constants:
no gradient flows through them, even if the given values require one.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

from agents.deferred import torch
from verifiers import InvalidArgumentError

if TYPE_CHECKING:
    from jaxtyping import Bool, Float, Int

# Baselines without groups


def returns_to_go(
    rewards: Float[torch.Tensor, "b t"],
    mask: Bool[torch.Tensor, "b t"],
    gamma: float = 1.0,
    bootstrap: Float[torch.Tensor, " b"] | None = None,
) -> Float[torch.Tensor, "b t"]:
    """The discounted sum of rewards from each of the policy's tokens onwards: G_t = r_t + gamma * G_(t+1).

    Williams 1992, with the causal form of the policy gradient theorem (Sutton et al. 2000). t + 1 is the policy's next own
    token: tokens outside the mask (prompt, environment, padding) are not decisions and take no time. A reward received
    there is added, undiscounted, to the reward of the preceding decision: it arrived between that decision and the next, as
    R_(t+1) does in Sutton & Barto 2018, equation 3.8. Rewards before the first decision are ignored.

    Args:
        rewards: f[b t].
        mask: bool[b t], the policy's own tokens.
        gamma: Discount factor from one own token to the next.
        bootstrap: f[b], the value of the state after the last token; see `gae`.

    Returns:
        f64; 0 outside the mask.
    """
    return gae(rewards, torch.zeros_like(rewards), mask, gamma=gamma, bootstrap=bootstrap)


def whole_returns(returns: Float[torch.Tensor, "b t"], mask: Bool[torch.Tensor, "b t"]) -> Float[torch.Tensor, "b t"]:
    """The return of the whole episode at each of its tokens: G_0, as in Williams 1992, in place of G_t.

    Args:
        returns: f64[b t], the result of `returns_to_go`.
        mask: bool[b t], the policy's own tokens.

    Returns:
        f64; 0 outside the mask.
    """
    first = mask.to(torch.int8).argmax(dim=1, keepdim=True)
    return torch.where(mask, returns.gather(1, first), 0.0)


def batch_mean_baseline(scores: Float[torch.Tensor, " b"], valid: Bool[torch.Tensor, " b"]) -> Float[torch.Tensor, ""]:
    """The mean score of the batch, over the valid completions; 0 if there are none."""
    _check_finite(scores, valid)
    counted = scores[valid].double()
    return counted.mean() if len(counted) else counted.sum()


def moving_average(
    baseline: float, scores: Float[torch.Tensor, " b"], valid: Bool[torch.Tensor, " b"], decay: float
) -> float:
    """The next baseline: b' = decay * b + (1 - decay) * mean(R), an exponential moving average of the batch means.

    The baseline of REINFORCE (Williams 1992; "reinforcement comparison", Sutton 1984). For each batch, use the baseline from
    before the batch's update: it does not depend on the batch, so the gradient stays unbiased. The mean is over the valid
    completions; if there are none, the baseline is unchanged.

    Raises:
        InvalidArgumentError: If `decay` is outside [0, 1].
    """
    if not 0 <= decay <= 1:
        raise InvalidArgumentError(f"decay, the weight of the old baseline, must be from 0 to 1; got {decay}")
    if not valid.any():
        return baseline
    return decay * baseline + (1 - decay) * float(batch_mean_baseline(scores, valid))


# Baselines and scales from the group


def group_mean(
    scores: Float[torch.Tensor, " b"], groups: Int[torch.Tensor, " b"], valid: Bool[torch.Tensor, " b"]
) -> Float[torch.Tensor, " b"]:
    """For each completion the mean score of its group, over the group's valid completions; 0 if there are none."""
    _check_finite(scores, valid)
    total = _group_sum(torch.where(valid, scores.double(), 0.0), groups)
    return total / _group_sum(valid.double(), groups).clamp(min=1)


def group_centered(
    scores: Float[torch.Tensor, " b"], groups: Int[torch.Tensor, " b"], valid: Bool[torch.Tensor, " b"]
) -> Float[torch.Tensor, " b"]:
    """A_i = R_i - mean(R of the group): Dr. GRPO (Liu et al. 2025, arXiv:2503.20783).

    The mean includes the completion itself, which scales the expected gradient by (n - 1) / n with n valid members.
    """
    centered = scores.double() - group_mean(scores, groups, valid)
    return torch.where(valid & _group_varies(scores, groups, valid), centered, 0.0)


def group_z_score(
    scores: Float[torch.Tensor, " b"],
    groups: Int[torch.Tensor, " b"],
    valid: Bool[torch.Tensor, " b"],
    epsilon: float = 1e-4,
) -> Float[torch.Tensor, " b"]:
    """A_i = (R_i - mean) / (std + epsilon) within the group: GRPO (Shao et al. 2024, arXiv:2402.03300, section 4.1.2).

    The standard deviation is the unbiased one (n - 1). In a group whose scores are all equal, or that has one valid
    completion, every advantage is exactly 0: rounding would otherwise leave a tiny non-zero standard deviation, and noise
    would be divided by it.
    """
    centered = group_centered(scores, groups, valid)
    others = (_group_sum(valid.double(), groups) - 1).clamp(min=1)
    std = (_group_sum(centered**2, groups) / others).sqrt()
    return torch.where(std > 0, centered / (std + epsilon), 0.0)


def leave_one_out(
    scores: Float[torch.Tensor, " b"], groups: Int[torch.Tensor, " b"], valid: Bool[torch.Tensor, " b"]
) -> Float[torch.Tensor, " b"]:
    """A_i = R_i - mean(R of the others in the group): RLOO (Kool et al. 2019; Ahmadian et al. 2024, arXiv:2402.14740).

    Equal to n / (n - 1) * `group_centered` with n valid members. The baseline excludes the completion's own score, so the
    gradient is unbiased for every n of at least 2; a single valid member gets 0.
    """
    count = _group_sum(valid.double(), groups)
    return group_centered(scores, groups, valid) * (count / (count - 1).clamp(min=1))


def group_centered_batch_std(
    scores: Float[torch.Tensor, " b"],
    groups: Int[torch.Tensor, " b"],
    valid: Bool[torch.Tensor, " b"],
    epsilon: float = 1e-4,
) -> Float[torch.Tensor, " b"]:
    """A_i = (R_i - mean of the group) / (std of the batch + epsilon): Lite PPO (Liu et al. 2025, arXiv:2508.08221).

    The unbiased standard deviation is taken over the raw scores of all valid completions, not over the centred ones, so it
    includes the spread between problems.
    """
    centered = group_centered(scores, groups, valid)
    return torch.where(centered != 0, centered / (_std(scores.double()[valid]) + epsilon), 0.0)


def length_weighted(
    scores: Float[torch.Tensor, " b"],
    lengths: Int[torch.Tensor, " b"],
    groups: Int[torch.Tensor, " b"],
    valid: Bool[torch.Tensor, " b"],
) -> Float[torch.Tensor, " b"]:
    """A_i = R_i - sum_j T_j R_j / sum_j T_j over the group: OPO (Hao et al. 2025, arXiv:2505.23585).

    The constant baseline of least variance is E[|g|^2 R] / E[|g|^2] with g the completion's score function; if the gradients of
    tokens are orthogonal and of equal norm, |g|^2 is proportional to the length T. In a group whose valid lengths are all 0
    every advantage is 0.

    Args:
        scores: f[b].
        lengths: i[b], the number of the policy's own tokens.
        groups: i[b].
        valid: bool[b].

    Raises:
        InvalidArgumentError: If a length is negative.
    """
    if (lengths < 0).any():
        raise InvalidArgumentError(f"lengths are numbers of tokens and must not be negative; got {int(lengths.min())}")
    # Relative to the mean, which cancels: scores far from 0 lose no digits.
    centered = group_centered(scores, groups, valid)
    tokens = torch.where(valid, lengths.double(), 0.0)
    total = _group_sum(tokens, groups)
    baseline = _group_sum(tokens * centered, groups) / total.clamp(min=1)
    return torch.where(valid & (total > 0), centered - baseline, 0.0)


def multi_reward(
    components: Float[torch.Tensor, "b k"],
    weights: Float[torch.Tensor, " k"],
    groups: Int[torch.Tensor, " b"],
    valid: Bool[torch.Tensor, " b"],
    epsilon: float = 1e-4,
) -> Float[torch.Tensor, " b"]:
    """A_i = (S_i - mean(S)) / (std(S) + epsilon) over the batch, S_i = sum_k w_k z_ik: GDPO (arXiv:2601.05242).

    z_ik is the `group_z_score` of component k alone, so a component with a wide range does not drown the others, and
    completions with the same sum from different components stay distinct. Both standard deviations are unbiased. A is
    exactly 0 where the sums of the valid completions have no spread, and in a group in which no component varies.
    """
    columns = [group_z_score(component, groups, valid, epsilon) for component in components.unbind(1)]
    sums = torch.stack(columns, dim=1) @ weights.double()
    counted = sums[valid]
    if not _varies(counted):
        return torch.zeros_like(sums)
    informative = torch.stack([_group_varies(c, groups, valid) for c in components.unbind(1)]).any(0)
    return torch.where(valid & informative, (sums - counted.mean()) / (_std(counted) + epsilon), 0.0)


def maximum_likelihood(
    scores: Float[torch.Tensor, " b"], groups: Int[torch.Tensor, " b"], valid: Bool[torch.Tensor, " b"]
) -> Float[torch.Tensor, " b"]:
    """A_i = (R_i - mean) / mean within the group, 0 where the mean is 0: MaxRL (arXiv:2602.02710).

    For binary scores with success probability p: log p = -sum_j (1 - p)^j / j, so grad log p = sum_j (1 - p)^(j-1) grad p,
    of which the plain policy gradient is the first term. The mean of A_i grad log pi(y_i) over a group of n is unbiased for
    the first n - 1 terms. (The paper's estimator without the baseline reaches n terms; the difference is that a group
    without any success gets 0 here.)

    Raises:
        InvalidArgumentError: If a valid score is negative; dividing by a mean near or below 0 is meaningless.
    """
    if (scores[valid] < 0).any():
        lowest = float(scores[valid].min())
        raise InvalidArgumentError(
            f"maximum_likelihood needs scores of at least 0 (1 for a success, 0 for a failure); got {lowest}. "
            "Shift the scores or choose another advantage."
        )
    mean = group_mean(scores, groups, valid)
    return torch.where(mean > 0, group_centered(scores, groups, valid) / mean, 0.0)


# Best-of-k objectives


def pass_at_k(
    scores: Float[torch.Tensor, " b"], groups: Int[torch.Tensor, " b"], valid: Bool[torch.Tensor, " b"], k: int
) -> Float[torch.Tensor, " b"]:
    """A_i = k (f_i - b_i), which maximises E[max of k scores]: pass@k for binary scores.

    f_i is the mean of the maximum score over all subsets of k valid members of the group that contain i. Its leave-one-out
    baseline b_i is the same mean over the subsets without i (Walder & Karkhanis 2025, arXiv:2505.15201; the paper gives the
    weights of a sum, k / n times f_i - b_i). The mean of A_i grad log pi(y_i) over the group is an unbiased gradient; k = 1
    gives `leave_one_out`. The result is exact and takes O(n log n) for each group.

    A group with fewer than k + 1 valid members, because verifiers broke, gets 0.

    Raises:
        InvalidArgumentError: If k is not positive, or a group has fewer than k + 1 completions, valid or not.
    """
    if k < 1:
        raise InvalidArgumentError(
            f"k, the number of completions of which the best counts, must be at least 1; got {k}"
        )
    labels, sizes = groups.unique(return_counts=True)
    if len(sizes) and int(sizes.min()) <= k:
        smallest = int(sizes.argmin())
        raise InvalidArgumentError(
            f"pass@{k} compares subsets with and without each completion, so it needs groups of at least {k + 1}; "
            f"group {int(labels[smallest])} has {int(sizes[smallest])}. Lower k or generate more completions."
        )
    centered = group_centered(scores, groups, valid)  # a shift of all scores cancels in f_i - b_i
    advantages = torch.zeros_like(centered)
    for members in _members_by_size(groups, valid):
        if members.shape[1] > k:
            advantages[members] = _pass_at_k(centered[members], k)
    return advantages


# Per-token advantages from a value function


def gae(
    rewards: Float[torch.Tensor, "b t"],
    values: Float[torch.Tensor, "b t"],
    mask: Bool[torch.Tensor, "b t"],
    *,
    gamma: float = 1.0,
    gae_lambda: float = 1.0,
    bootstrap: Float[torch.Tensor, " b"] | None = None,
) -> Float[torch.Tensor, "b t"]:
    """Generalised advantage estimation: A_t = d_t + gamma * gae_lambda * A_(t+1), d_t = r_t + gamma * V_(t+1) - V_t.

    Schulman et al. 2016, arXiv:1506.02438, equation 16; `gae_lambda` is the paper's lambda. With `gae_lambda` 1, A_t is
    `returns_to_go` - V (unbiased for any V); with 0, it is the TD error. t + 1 is the policy's next own token: values and
    advantages pass unchanged over tokens outside the mask, and rewards there are added to the preceding decision, as in
    `returns_to_go`.

    Args:
        rewards: f[b t].
        values: f[b t], V of the state before each token; ignored outside the mask.
        mask: bool[b t], the policy's own tokens.
        gamma: Discount factor from one token to the next.
        gae_lambda: Decay of the weights of later TD errors.
        bootstrap: f[b], V of the state after the last token: 0 if the episode terminated, a value if it was truncated and is
            treated as continuing. None means 0 for all.

    Returns:
        f64; 0 outside the mask. The target of the value function is A + V, before `whiten`.
    """
    paid, states, alive = _decisions(rewards, values, mask, bootstrap)
    errors = paid + gamma * states[:, 1:] - states[:, :-1]
    advantages = torch.zeros_like(errors)
    later = torch.zeros(len(errors), dtype=torch.float64, device=errors.device)
    for t in range(errors.shape[1] - 1, -1, -1):
        later = torch.where(alive[:, t], errors[:, t] + gamma * gae_lambda * later, 0.0)
        advantages[:, t] = later
    return _at_tokens(advantages, mask)


def n_step(
    rewards: Float[torch.Tensor, "b t"],
    values: Float[torch.Tensor, "b t"],
    mask: Bool[torch.Tensor, "b t"],
    n: int,
    *,
    gamma: float = 1.0,
    bootstrap: Float[torch.Tensor, " b"] | None = None,
) -> Float[torch.Tensor, "b t"]:
    """A_t = sum over k < n of gamma^k r_(t+k) + gamma^n V_(t+n) - V_t: n-step TD, as in A3C and A2C.

    Sutton & Barto 2018, equation 7.1; Mnih et al. 2016, arXiv:1602.01783, section 4. Steps are the policy's own tokens; if
    fewer than n are left, the sum ends with `bootstrap`. n = 1 equals `gae` with `gae_lambda=0`; any n not less than the length
    equals `gae` with `gae_lambda=1`. Arguments, rewards outside the mask and the result are as for `gae`.

    Raises:
        InvalidArgumentError: If n is not positive.
    """
    if n < 1:
        raise InvalidArgumentError(
            f"n, the number of rewards before the value function takes over, must be at least 1; got {n}"
        )
    paid, states, alive = _decisions(rewards, values, mask, bootstrap)
    targets = states
    for _ in range(min(n, paid.shape[1])):  # each pass is one Bellman backup of all tokens at once
        backup = torch.where(alive, paid + gamma * targets[:, 1:], states[:, :-1])
        targets = torch.cat([backup, states[:, -1:]], dim=1)
    return _at_tokens((targets - states)[:, :-1], mask)


def whiten(
    advantages: Float[torch.Tensor, "b t"], mask: Bool[torch.Tensor, "b t"], *, center: bool = True
) -> Float[torch.Tensor, "b t"]:
    """(A - mean) / sqrt(var + 1e-8) over all masked tokens of the batch: REINFORCE++ (Hu et al. 2025, arXiv:2501.03262), PPO.

    The variance is unbiased. Every token has the same weight, so long completions dominate the mean. With `center=False` the
    mean is not subtracted and only the scale changes. Without any spread the result is exactly 0 if centred, and unchanged
    otherwise.

    Returns:
        f64; 0 outside the mask.
    """
    exact = advantages.double()
    counted = exact[mask]
    if not _varies(counted):
        return torch.zeros_like(exact) if center else torch.where(mask, exact, 0.0)
    shifted = exact - counted.mean() if center else exact
    return torch.where(mask, shifted / (counted.var() + 1e-8).sqrt(), 0.0)


# Rewards that depend on the length


def soft_overlong_penalty(lengths: Int[torch.Tensor, " b"], max_tokens: int, margin: int) -> Float[torch.Tensor, " b"]:
    """0 up to max_tokens - margin, then falling linearly to -1 at max_tokens and beyond: DAPO (arXiv:2503.14476, equation 13).

    Add it to the score to discourage completions that are close to being truncated.

    Args:
        lengths: i[b], the number of the policy's own tokens.
        max_tokens: The budget of a completion (the paper's L_max).
        margin: The number of tokens over which the penalty grows (the paper's L_cache).

    Raises:
        InvalidArgumentError: If the margin is not between 1 and max_tokens.
    """
    if not 1 <= margin <= max_tokens:
        raise InvalidArgumentError(f"margin must be from 1 to max_tokens = {max_tokens} tokens; got {margin}")
    return ((max_tokens - margin - lengths).double() / margin).clamp(-1, 0)


# Groups


def _check_finite(scores: torch.Tensor, valid: torch.Tensor) -> None:
    nonfinite = (valid & ~scores.isfinite()).nonzero()[:, 0]
    if len(nonfinite):
        row = int(nonfinite[0])
        raise InvalidArgumentError(
            f"the score of completion {row} is {float(scores[row])} although its verdict is valid; a verifier must return "
            "finite scores, or report VERIFIER_ERROR so that its completion is marked as not valid"
        )


def _group_sum(values: torch.Tensor, groups: torch.Tensor) -> torch.Tensor:
    """For each completion, the sum of the values of its group."""
    _, index = groups.unique(return_inverse=True)
    return torch.zeros_like(values).index_add(0, index, values)[index]


def _group_varies(scores: torch.Tensor, groups: torch.Tensor, valid: torch.Tensor) -> torch.Tensor:
    """For each completion, whether its group has two valid scores that differ."""
    _, index = groups.unique(return_inverse=True)
    highest = torch.full_like(scores, -torch.inf, dtype=torch.float64)
    lowest = -highest
    kept = index[valid]
    values = scores.double()[valid]
    highest = highest.scatter_reduce(0, kept, values, "amax")
    lowest = lowest.scatter_reduce(0, kept, values, "amin")
    return (highest > lowest)[index]


def _members_by_size(groups: torch.Tensor, valid: torch.Tensor) -> Iterator[torch.Tensor]:
    """For each occurring number n of valid members, the rows i64[m n] of the m groups of that size."""
    rows = valid.nonzero()[:, 0]
    rows = rows[groups[rows].argsort(stable=True)]
    _, index, counts = groups[rows].unique(return_inverse=True, return_counts=True)
    sizes = counts[index]
    for size in sizes.unique().tolist():
        yield rows[sizes == size].reshape(-1, size)


def _varies(values: torch.Tensor) -> bool:
    return len(values) > 1 and bool(values.max() > values.min())


def _std(values: torch.Tensor) -> torch.Tensor:
    """The unbiased standard deviation; 0 for fewer than two values."""
    return values.std() if len(values) > 1 else torch.zeros_like(values.sum())


def _pass_at_k(scores: torch.Tensor, k: int) -> torch.Tensor:
    """`pass_at_k` for m groups with n > k valid scores each, f64[m n].

    In ascending order, the member of rank j (from 0) is the best of comb(j, k - 1) subsets of size k: the subsets whose other
    members rank below it. In the subsets that contain some i < j, one of the ranks below j is fixed; in the subsets without i,
    one of them is unavailable.
    """
    size = scores.shape[1]
    ordered, order = scores.sort(dim=1)
    with_i, without_i = math.comb(size - 1, k - 1), math.comb(size - 1, k)

    def weighted(counts: list[int], total: int) -> torch.Tensor:
        # Python divides integers of any size with one rounding, whereas binomials of large groups overflow float64.
        return ordered * ordered.new_tensor([count / total for count in counts])

    ranks = range(size)
    own = weighted([math.comb(j, k - 1) for j in ranks], with_i)
    above = weighted([_choose(j - 1, k - 2) for j in ranks], with_i)
    lower = weighted([math.comb(j, k - 1) for j in ranks], without_i)
    upper = weighted([_choose(j - 1, k - 1) for j in ranks], without_i)
    best_with = own + _sum_after(above)
    best_without = _sum_before(lower) + _sum_after(upper)
    return torch.empty_like(ordered).scatter(1, order, k * (best_with - best_without))


def _choose(n: int, k: int) -> int:
    return math.comb(n, k) if n >= 0 and k >= 0 else 0


def _sum_before(values: torch.Tensor) -> torch.Tensor:
    return torch.nn.functional.pad(values.cumsum(1)[:, :-1], (1, 0))


def _sum_after(values: torch.Tensor) -> torch.Tensor:
    return _sum_before(values.flip(1)).flip(1)


# Decisions: a completion's own tokens packed together, so that decision d + 1 follows d whatever lies between


def _decision_index(mask: torch.Tensor) -> torch.Tensor:
    """i64[b t]: the number of decisions made up to and including each token."""
    return mask.long().cumsum(1)


def _decisions(
    rewards: torch.Tensor, values: torch.Tensor, mask: torch.Tensor, bootstrap: torch.Tensor | None
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return each decision's reward f64[b t], the value before it f64[b t+1], and whether the row has this decision bool[b t].

    The value after the last decision is the bootstrap. Rewards outside the mask are added to the reward of the preceding
    decision.
    """
    index = _decision_index(mask)
    counts = mask.sum(1, keepdim=True)
    room = torch.zeros(len(mask), mask.shape[1] + 1, dtype=torch.float64, device=rewards.device)
    paid = room.scatter_add(1, index, rewards.double())[:, 1:]
    before = room.scatter_add(1, index, torch.where(mask, values.detach().double(), 0.0))[:, 1:]
    after = torch.zeros_like(counts, dtype=torch.float64) if bootstrap is None else bootstrap.detach().double()[:, None]
    states = torch.cat([before, room[:, :1]], dim=1).scatter(1, counts, after)
    alive = torch.arange(mask.shape[1], device=mask.device) < counts
    return paid, states, alive


def _at_tokens(decisions: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """Put the number f64[b t] of each decision at the decision's token; 0 at all other tokens."""
    return torch.where(mask, decisions.gather(1, (_decision_index(mask) - 1).clamp(min=0)), 0.0)


# Values estimated at the steps of a completion


def step_advantages(
    rewards: Float[torch.Tensor, "b t"], step_values: Float[torch.Tensor, "b t"], mask: Bool[torch.Tensor, "b t"]
) -> Float[torch.Tensor, "b t"]:
    """A = r + V(s') - V(s) for every token of a step from s to s': VinePPO (Kazemnejad et al. 2024, arXiv:2410.01679).

    A step begins at each of the policy's own tokens for which a value is given, and r is the sum of the rewards up to the next
    step. After the last step V is 0. With exact values the gradient is that of the expected return. With estimates this also
    holds if the estimates are unbiased and independent of the completion, and if the end of a step depends only on the tokens
    up to this end.

    Args:
        rewards: f[b t].
        step_values: f[b t], the value of the state before each token that begins a step; NaN for all others.
        mask: bool[b t], the policy's own tokens.

    Returns:
        f64[b t]; 0 outside the mask and before the first step.
    """
    starts = mask & ~step_values.isnan()
    number = starts.long().cumsum(1)  # 0 before the first step
    shape = (len(number), int(number.max()) + 2 if number.numel() else 2)
    paid, values = (
        torch.zeros(shape, dtype=torch.float64, device=rewards.device).scatter_add(1, number, amounts)
        for amounts in (rewards.double(), torch.where(starts, step_values.double(), 0.0))
    )
    advantages = paid[:, :-1] + values[:, 1:] - values[:, :-1]
    return torch.where(mask & (number > 0), advantages.gather(1, number), 0.0)
