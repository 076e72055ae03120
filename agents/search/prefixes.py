"""Code that searches over tokens share: next-token probabilities after any prefix, and episodes with given tokens."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from gymnasium.vector import VectorEnv
from numpy.typing import NDArray

import rlvr_envs
from agents.policies.trainable import TrainablePolicy
from agents.rollouts.loop import Episode, rollout, rows_at_once
from agents.types import Action, Policy, Trajectory
from verifiers import InvalidArgumentError

_TOKENS_AT_ONCE = 2**15
"""Maximum number of tokens in one forward pass."""


def rating_policy(policy: Policy) -> TrainablePolicy:
    """The policy that rates tokens. A greedy policy gets temperature 1, since at 0 it would rate only one token.

    Raises:
        InvalidArgumentError: If the policy only samples and gives no probabilities, such as an engine like vLLM.
    """
    rated: Any = policy
    if not hasattr(rated, "distributions"):
        raise InvalidArgumentError(
            f"a search over tokens needs the probabilities of all next tokens, which {type(policy).__name__} does not give: "
            "use a CausalLMPolicy or TorchPolicy (--engine torch), or search by best-of-n"
        )
    chosen: TrainablePolicy = rated if rated.temperature > 0 else rated.at_temperature(1.0)
    return chosen


@torch.no_grad()
def next_logprobs(
    policy: TrainablePolicy, prefixes: Sequence[NDArray[np.int32]], legal: NDArray[np.int8] | None
) -> NDArray[np.float64]:
    """Log-probabilities f64[n v] of the token after each prefix; -inf for illegal tokens.

    Args:
        policy: The policy that rates tokens, at its temperature.
        prefixes: n prefixes, each i32[l].
        legal: i8[n v], the legal next tokens; None if every token is legal.
    """
    results = np.empty((len(prefixes), policy.vocab_size))
    by_length: defaultdict[int, list[int]] = defaultdict(list)
    for index, prefix in enumerate(prefixes):
        by_length[len(prefix)].append(index)
    for length, members in by_length.items():
        size = max(1, _TOKENS_AT_ONCE // (length + 1))
        for start in range(0, len(members), size):
            some = members[start : start + size]
            # The last token is a placeholder, since its distribution depends only on the tokens before it.
            tokens = np.zeros((len(some), length + 1), dtype=np.int64)
            tokens[:, :length] = np.stack([prefixes[index] for index in some])
            allowed = None if legal is None else torch.from_numpy(legal[some].astype(bool))[:, None].to(policy.device)
            rated = policy.distributions(torch.from_numpy(tokens).to(policy.device), length, allowed)
            results[some] = rated[:, 0].cpu().double().numpy()
    return results


class Scripted:
    """A policy that first plays given tokens, one at a time, and then lets another policy choose.

    Args:
        scripts: The tokens of each episode, by the episode's seed.
        policy: The policy that chooses after the end of a script; None if every script lasts to the end of its episode.
    """

    version = 0

    def __init__(self, scripts: Mapping[int, Sequence[int]], policy: Policy | None = None) -> None:
        self._scripts = scripts
        self._policy = policy
        self._rest: dict[int, list[int]] = {}

    def begin(self, rows: NDArray[np.int64], seeds: NDArray[np.uint64]) -> None:
        """Announce new episodes in some rows, with the seeds u64[r] of their scripts.

        A seed without a script belongs to a new context.
        """
        for row, seed in zip(rows.tolist(), seeds.tolist(), strict=True):
            if seed in self._scripts:
                self._rest[row] = list(self._scripts[seed])
        if self._policy is not None:
            self._policy.begin(rows, seeds)

    def rows_at_once(self, width: int) -> int | None:
        """The number of rows of up to `width` tokens that fit in the memory of `policy`; None if unlimited."""
        return rows_at_once(self._policy, width)

    def act(
        self,
        observation: rlvr_envs.Observation,
        *,
        action_mask: NDArray[np.int8] | None = None,
        rows: NDArray[np.bool_] | None = None,
    ) -> Action:
        """Choose the next token of each row; see `Policy.act`."""
        assert rows is not None  # rollouts always pass the rows that play
        count = len(rows)
        tokens, logprobs = np.zeros((count, 1), dtype=np.int64), np.full((count, 1), np.nan, dtype=np.float32)
        scripted = np.array([bool(rows[row] and self._rest.get(row)) for row in range(count)])
        for row in np.flatnonzero(scripted).tolist():
            tokens[row, 0] = self._rest[row].pop(0)
        others = rows & ~scripted
        if self._policy is not None and others.any():
            action = self._policy.act(observation, action_mask=action_mask, rows=others)
            tokens[others], logprobs[others] = action.tokens[others], action.logprobs[others]
        return Action(tokens, rows.astype(np.int64), logprobs)


def played(env: VectorEnv[Any, Any, Any], episode: Episode, tokens: Sequence[int]) -> Trajectory:
    """Play an episode with the given tokens as the policy's tokens; the environment judges the episode."""
    (trajectory,) = rollout(env, Scripted({episode.seed: tokens}), [episode])
    return trajectory
