r"""Exact values of finite Markov decision processes by dynamic programming, in float64.

The notation and the equations follow Sutton & Barto 2018, chapters 3, 4 and 13. If `transition[s, a]` sums to less than 1, the
rest is the probability that the episode ends after this action, and an episode that has ended is worth 0. With r(s, a) the
expected reward, p(s' | s, a) the probability of going on in s', and discount γ:

    v_π(s)    = Σ_a π(a|s) q_π(s, a)                               (exercise 3.18)
    q_π(s, a) = r(s, a) + γ Σ_s' p(s'|s, a) v_π(s')                (exercise 3.19; Bellman equation, 3.14)
    v_*(s)    = max_a q_*(s, a)                                    (Bellman optimality equation, 3.19)
    q_*(s, a) = r(s, a) + γ Σ_s' p(s'|s, a) v_*(s')                (3.20)

With `horizon=h` the episode is cut after h steps, as an environment's budget does, and later rewards do not count. Values then
depend on the number k of steps left, and arrays get a first axis of h + 1 entries, k = 0 first:

    q_k(s, a) = r(s, a) + γ Σ_s' p(s'|s, a) v_{k-1}(s'),  v_0 = 0

Without a horizon the episode goes on until it ends by itself.

Axes: s state, a action, k steps left, t steps made. This computes the values of a problem of `rlvr/GridWorld-v0` or
`rlvr/Maze-v0`:

    world = worlds.world_of(env.streams.dataset[problem])
    mdp, horizon = exact.world_mdp(world), env.streams.rules.max_new_tokens
    values = exact.policy_values(mdp, policy, gamma=0.99, horizon=horizon)
    cell = worlds.Walk(env.tokenizer).cell(tokens, prompt_length, problem)     # the cell after these tokens
    values.state[steps_left, world.states.index(cell)]
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rlvr_envs.envs.state_env import StateEnv
from rlvr_envs.procedural.base import require_whole
from rlvr_envs.token_env import TokenEnv
from rlvr_envs.vector_env import TokenVectorEnv
from rlvr_envs.worlds import MOVES, Process, World, world_of
from rlvr_envs.worlds.process_data import ProcessDataset
from verifiers import InvalidArgumentError

Array = NDArray[np.float64]

_TOLERANCE = 1e-12
"""Tolerance relative to the largest value. Action values that differ by less count as equal; value iteration stops at smaller
changes."""
_MAX_SWEEPS = 100_000


@dataclass(frozen=True, eq=False)
class FiniteMDP:
    """A Markov decision process with finitely many states and actions.

    Raises:
        InvalidArgumentError: If shapes do not fit, a probability is negative, or probabilities sum to more than 1.
    """

    transition: Array
    """f64[s a s], the probability of continuing in each state; a row sums to 1 minus the probability that the episode ends."""
    reward: Array
    """f64[s a], the expected reward of an action."""
    start: Array
    """f64[s], the probability of starting in each state; sums to 1."""

    def __post_init__(self) -> None:
        states, actions = self.reward.shape
        if self.transition.shape != (states, actions, states) or self.start.shape != (states,):
            raise InvalidArgumentError(
                f"expected transition (s, a, s), reward (s, a) and start (s,); got {self.transition.shape}, "
                f"{self.reward.shape} and {self.start.shape}"
            )
        if not np.isfinite(self.reward).all():
            raise InvalidArgumentError("rewards must be finite numbers")
        if (self.transition < 0).any() or (self.transition.sum(axis=2) > 1 + _TOLERANCE).any():
            raise InvalidArgumentError("transition[s, a] must hold probabilities that sum to at most 1")
        if (self.start < 0).any() or not np.isclose(self.start.sum(), 1, rtol=0, atol=1e-9):
            raise InvalidArgumentError(f"start must hold probabilities that sum to 1; got {self.start.tolist()}")


@dataclass(frozen=True, eq=False)
class Values:
    """Values of states, f64[s], and of actions, f64[s a]; with a horizon, f64[k s] and f64[k s a]."""

    state: Array
    action: Array

    @property
    def advantage(self) -> Array:
        """q(s, a) - v(s), in the shape of `action`."""
        return self.action - self.state[..., None]


def world_mdp(world: World) -> FiniteMDP:
    """The decision process of a world, with the states `world.states`, in this order, and the actions `MOVES`."""
    index = {cell: number for number, cell in enumerate(world.states)}
    transition = np.zeros((len(index), len(MOVES), len(index)))
    reward = np.full((len(index), len(MOVES)), float(world.step_reward))
    for cell, state in index.items():
        for move in range(len(MOVES)):
            target = world.after(cell, move)
            reward[state, move] += world.end_reward(target)
            if target in index:
                transition[state, move, index[target]] = 1.0
    start = np.zeros(len(index))
    start[index[world.start]] = 1.0
    return FiniteMDP(transition, reward, start)


def state_mdp(env: StateEnv | TokenEnv | TokenVectorEnv) -> FiniteMDP:
    """The decision process of an environment with numbered states, or of a token environment with such a process.

    States and actions are numbered as in the spaces of the plain environment. States in which the episode is over are worth 0.
    `start` is the distribution for a problem drawn uniformly. The episode goes on until it ends by itself; for values within a
    budget, pass the budget as `horizon`.

    Raises:
        InvalidArgumentError: If the environment has no finite decision process.
    """
    inner = getattr(env, "unwrapped", env)
    dataset = (
        inner.dataset if isinstance(inner, StateEnv) else getattr(getattr(inner, "streams", None), "dataset", inner)
    )
    process, starts = getattr(dataset, "process", None), getattr(dataset, "starts", None)
    if not isinstance(process, Process) or starts is None:
        raise InvalidArgumentError(
            f"{type(dataset).__name__} is not a finite decision process: expected an environment with numbered states, such as "
            "rlvr/FrozenLake-v0"
        )
    states, actions = len(process.states), len(process.actions)
    transition, reward, start = np.zeros((states, actions, states)), np.zeros((states, actions)), np.zeros(states)
    for state, row in enumerate(process.branches):
        for action, branches in enumerate(row):
            reward[state, action] = process.mean(state, action)
            for branch in branches:
                if not process.ends_at(branch.state):
                    transition[state, action, branch.state] += branch.probability
    start[list(starts)] = list(starts.values())
    return FiniteMDP(transition, reward, start)


def policy_values(mdp: FiniteMDP, policy: ArrayLike, *, gamma: float = 1.0, horizon: int | None = None) -> Values:
    """v_π and q_π of a given policy: backward induction with a horizon, else the solution of v = r_π + γ P_π v.

    Args:
        mdp: The process.
        policy: π(a|s) as f64[s a]. With a horizon it may depend on the number of steps left, as f64[k s a] with k from 1 to h
            (the first entry is for one step left).
        gamma: γ, in [0, 1].
        horizon: h, at least 1; None to go on until the episode ends.

    Raises:
        InvalidArgumentError: If the policy is invalid, or if the episode may never end and there is neither a horizon nor a
            discount. There may be no value then.
    """
    _check_gamma(gamma)
    table = _policy_table(mdp, policy, horizon)
    if horizon is not None:
        return _backward(mdp, gamma, horizon, lambda k, action: (table[k - 1] * action).sum(axis=1))
    stays = np.einsum("sa,sat->st", table[0], mdp.transition)
    _check_ends(stays, gamma)
    state = np.linalg.solve(np.eye(len(stays)) - gamma * stays, (table[0] * mdp.reward).sum(axis=1))
    return Values(state, _look_ahead(mdp, gamma, state))


def optimal_values(mdp: FiniteMDP, *, gamma: float = 1.0, horizon: int | None = None) -> Values:
    """v_* and q_*: backward induction with a horizon, else value iteration (section 4.4) from v = 0 to its fixed point.

    Args:
        mdp: The process.
        gamma: γ, in [0, 1].
        horizon: h, at least 1; None to go on until the episode ends.

    Raises:
        InvalidArgumentError: If value iteration does not converge; without a discount there may be no finite value.
    """
    _check_gamma(gamma)
    if horizon is not None:
        require_whole("horizon", horizon, 1)
        return _backward(mdp, gamma, horizon, lambda k, action: action.max(axis=1))
    state = np.zeros(len(mdp.start))
    for _ in range(_MAX_SWEEPS):
        before, state = state, _look_ahead(mdp, gamma, state).max(axis=1)
        if np.abs(state - before).max() <= _TOLERANCE * max(1.0, np.abs(state).max()) * max(1.0 - gamma, 1e-3):
            return Values(state, _look_ahead(mdp, gamma, state))
    raise InvalidArgumentError(
        f"value iteration has not settled after {_MAX_SWEEPS} sweeps with discount {gamma}: some state's best return "
        "grows without bound, or shrinks since it never reaches an end; give a horizon or a discount below 1"
    )


def policy_iteration(mdp: FiniteMDP, *, gamma: float) -> tuple[Array, Values]:
    """An optimal deterministic policy f64[s a] and its values, by policy iteration (section 4.3).

    The first policy always takes the first action. Each iteration evaluates the policy exactly and then improves it, until no
    action is better. The resulting values equal the values from `optimal_values`, which uses value iteration instead.

    Args:
        mdp: The process.
        gamma: γ, in [0, 1). Without a discount, the first policy or a later one may never end the episode.

    Raises:
        InvalidArgumentError: If the discount is not below 1.
    """
    if not 0 <= gamma < 1:
        raise InvalidArgumentError(f"policy iteration needs a discount in [0, 1), got {gamma!r}: see optimal_values")
    actions = np.zeros(len(mdp.start), dtype=np.int64)
    every = np.arange(len(actions))
    while True:
        policy = np.eye(mdp.reward.shape[1])[actions]
        values = policy_values(mdp, policy, gamma=gamma)
        best = values.action.argmax(axis=1)
        gain = values.action[every, best] - values.action[every, actions]
        better = gain > _TOLERANCE * np.maximum(1.0, np.abs(values.action).max())
        if not better.any():
            return policy, values
        actions = np.where(better, best, actions)


def greedy_policy(values: Values) -> Array:
    """The policy that chooses uniformly among the best actions, f64[s a]; with a horizon f64[k s a], k from 1 to h.

    With a horizon or a discount below 1, the policy is optimal if the values are. Without either, a best action may only
    postpone the end; a uniform choice among all best actions still reaches the end of a world eventually.
    """
    action = values.action if values.action.ndim == 2 else values.action[1:]
    best = action >= action.max(axis=-1, keepdims=True) - 1e-9 * np.maximum(1.0, np.abs(action).max())
    policy: Array = best / best.sum(axis=-1, keepdims=True)
    return policy


def uniform_policy(mdp: FiniteMDP) -> Array:
    """The policy that chooses uniformly among all actions, f64[s a]."""
    return np.full(mdp.reward.shape, 1.0 / mdp.reward.shape[1])


def expected_return(mdp: FiniteMDP, values: Values) -> float:
    """J, the value of the start: Σ_s start(s) v(s), with the whole horizon left."""
    state = values.state if values.state.ndim == 1 else values.state[-1]
    return float(mdp.start @ state)


def softmax_policy(logits: ArrayLike) -> Array:
    """The softmax policy π(a|s) ∝ exp θ(s, a) for a table of logits f64[s a]."""
    shifted = np.asarray(logits, dtype=np.float64)
    powers = np.exp(shifted - shifted.max(axis=-1, keepdims=True))
    probabilities: Array = powers / powers.sum(axis=-1, keepdims=True)
    return probabilities


def optimal_returns(env: TokenEnv | TokenVectorEnv, *, gamma: float = 1.0) -> Array:
    """The optimal expected returns f64[problems] of the problems of a grid-world environment, within the environment's budget.

    If problems have chance events of their own, the return is the mean over these events.
    """
    horizon, dataset = int(env.streams.rules.max_new_tokens), env.streams.dataset
    if isinstance(dataset, ProcessDataset):
        state = optimal_values(state_mdp(env), gamma=gamma, horizon=horizon).state[-1]
        return np.array([state[dataset.start(problem)] for problem in range(len(dataset))])
    mdps = (world_mdp(world_of(dataset[problem])) for problem in range(env.num_problems))
    return np.array([expected_return(mdp, optimal_values(mdp, gamma=gamma, horizon=horizon)) for mdp in mdps])


def ucb1_bound(means: ArrayLike, pulls: int) -> float:
    """The bound on UCB1's expected regret after n pulls of arms with rewards in [0, 1], given the arms' means f64[a].

    8 Σ_a ln n / Δ_a + (1 + π²/3) Σ_a Δ_a over the arms that are worse than the best by a gap Δ_a (Auer, Cesa-Bianchi and
    Fischer 2002, theorem 1).
    """
    arms = np.asarray(means, dtype=np.float64)
    gaps = (arms.max() - arms)[arms < arms.max()]
    return float(8 * math.log(pulls) * (1 / gaps).sum() + (1 + math.pi**2 / 3) * gaps.sum())


def lai_robbins_slope(means: ArrayLike) -> float:
    """The smallest slope of a consistent agent's expected regret against ln n, given the arms' means f64[a] in (0, 1).

    Σ_a Δ_a / KL(μ_a, μ_*) over the arms that are worse than the best by a gap Δ_a, for rewards 0 and 1 (Lai and Robbins 1985).

    Raises:
        InvalidArgumentError: If a mean is not between 0 and 1.
    """
    arms = np.asarray(means, dtype=np.float64)
    if not ((arms > 0) & (arms < 1)).all():
        raise InvalidArgumentError(f"means of rewards 0 and 1 must be between 0 and 1, got {arms.tolist()}")
    best, others = arms.max(), arms[arms < arms.max()]
    divergence = others * np.log(others / best) + (1 - others) * np.log((1 - others) / (1 - best))
    return float(((best - others) / divergence).sum())


def _look_ahead(mdp: FiniteMDP, gamma: float, state: Array) -> Array:
    """q(s, a) from the values of the next states."""
    action: Array = mdp.reward + gamma * mdp.transition @ state
    return action


def _backward(mdp: FiniteMDP, gamma: float, horizon: int, state_value: Callable[[int, Array], Array]) -> Values:
    """Values for 0 to h steps left; `state_value` computes the states' values from k, the steps left, and the action values."""
    state = np.zeros((horizon + 1, len(mdp.start)))
    action = np.zeros((horizon + 1, *mdp.reward.shape))
    for left in range(1, horizon + 1):
        action[left] = _look_ahead(mdp, gamma, state[left - 1])
        state[left] = state_value(left, action[left])
    return Values(state, action)


def _policy_table(mdp: FiniteMDP, policy: ArrayLike, horizon: int | None) -> Array:
    """A policy as f64[h s a], for 1 to h steps left; f64[1 s a] without a horizon."""
    table = np.asarray(policy, dtype=np.float64)
    if horizon is not None:
        require_whole("horizon", horizon, 1)
    steps = horizon or 1
    if table.shape == mdp.reward.shape:
        table = np.broadcast_to(table, (steps, *table.shape))
    if table.shape != (steps, *mdp.reward.shape) or (horizon is None and np.ndim(policy) != 2):
        raise InvalidArgumentError(
            f"a policy must be a table of shape {mdp.reward.shape} (states, actions)"
            + ("" if horizon is None else f" or {(steps, *mdp.reward.shape)}, for 1 to {horizon} steps left")
            + f"; got shape {np.shape(policy)}"
        )
    if not (table >= 0).all() or not np.allclose(table.sum(axis=-1), 1, rtol=0, atol=1e-9):
        raise InvalidArgumentError("a policy's probabilities of the actions must sum to 1 in every state")
    return table


def _check_gamma(gamma: float) -> None:
    if not 0 <= gamma <= 1:
        raise InvalidArgumentError(f"a discount must be in [0, 1], got {gamma!r}")


def _check_ends(stays: Array, gamma: float) -> None:
    """Check that a policy ends the episode from every state, given p_π(s'|s) as f64[s s].

    With a discount below 1, any policy passes.
    """
    ends = stays.sum(axis=1) < 1 - _TOLERANCE
    for _ in stays:
        ends |= (stays[:, ends] > 0).any(axis=1)
    if gamma == 1 and not ends.all():
        raise InvalidArgumentError(
            f"from states {np.flatnonzero(~ends).tolist()} the policy never ends the episode, so that without a discount "
            "there may be no value: give a horizon or a discount below 1"
        )
