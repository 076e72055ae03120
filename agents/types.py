"""What flows between policies, rollout and learners. NumPy only: torch is not needed to hold a trajectory."""

from __future__ import annotations

import math
from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from rlvr_envs import Observation
from verifiers import InvalidArgumentError, Outcome, Verdict


@dataclass(frozen=True, slots=True)
class Action:
    """What a policy decided for b rows: up to n tokens each."""

    tokens: NDArray[np.int64]
    """i64[b n]."""
    counts: NDArray[np.int64]
    """i64[b], number of valid tokens in the row; 0 for rows that needed no action."""
    logprobs: NDArray[np.float32]
    """f32[b n], natural logs of the probabilities the tokens were sampled with; NaN where they were not sampled."""
    kept: NDArray[np.uint8] | None = None
    """u8[b n ceil(v/8)], the tokens that each was chosen from, packed by `numpy.packbits`, where the policy itself left some
    out (top-k and the like); None where it chose from all legal ones."""


class Policy(Protocol):
    """Chooses tokens."""

    @property
    def version(self) -> int:
        """Counts the updates of the weights."""
        ...

    def act(
        self,
        observation: Observation,
        *,
        action_mask: NDArray[np.int8] | None = None,
        rows: NDArray[np.bool_] | None = None,
    ) -> Action:
        """Choose tokens for each row of an observation.

        Args:
            observation: `tokens` i32[b l], `length` i32[b 1].
            action_mask: i8[b v], the legal tokens (1) where the environment limits them.
            rows: bool[b], the rows that need an action; None for all. Leaving rows out only saves work.
        """
        ...

    def begin(self, rows: NDArray[np.int64], seeds: NDArray[np.uint64]) -> None:
        """Announce new episodes in some rows and the seeds u64[r] that decide their sampling."""
        ...


class Sampler(Policy, Protocol):
    """A policy that an agent's episodes are played with: the one that learns, or an engine that gets its weights."""

    @property
    def learner(self) -> Policy:
        """The policy whose weights these are."""
        ...

    def at_temperature(self, temperature: float) -> Policy:
        """Give a policy on the same weights at another temperature, 0 being greedy."""
        ...

    def sampling(self) -> AbstractContextManager[Mapping[str, float]]:
        """Inside, the policy acts with the learner's weights as they are on entering; gives metrics of getting them."""
        ...


@dataclass(frozen=True, slots=True)
class Trajectory:
    """One episode: its problem, its tokens, and for each token what learning needs. l counts the prompt too.

    Raises:
        InvalidArgumentError: If a reward is not finite and no verdict says that the verifier broke.
    """

    problem_id: str
    group: int
    """Trajectories of one group answer the same problem."""
    prompt_length: int
    terminated: bool
    truncated: bool
    verdict: Verdict | None
    completion: str
    tokens: NDArray[np.int32]
    """i32[l]."""
    policy_mask: NDArray[np.bool_]
    """bool[l], True on the policy's own tokens, its stop token included."""
    logprobs: NDArray[np.float32]
    """f32[l], of the distribution that was sampled from; 0 off the mask."""
    rewards: NDArray[np.float64]
    """f64[l], the reward that came with each token."""
    policy_version: NDArray[np.int32]
    """i32[l], the version that produced each token."""
    action_masks: NDArray[np.uint8] | None = None
    """u8[l ceil(v/8)], for each token the legal tokens it was chosen from, packed by `numpy.packbits`; None if all were."""
    baseline: float | None = None
    """A score of the same problem to compare this one's with, such as that of the greedy completion; NaN if its verifier
    broke, None if none was asked for."""

    def __post_init__(self) -> None:
        if not self.errored and not np.isfinite(self.rewards).all():
            token = int(np.flatnonzero(~np.isfinite(self.rewards))[0])
            said = "no verdict" if self.verdict is None else f"the verdict {self.verdict.outcome}"
            raise InvalidArgumentError(
                f"the reward of token {token} is {self.rewards[token]} in an episode of problem {self.problem_id!r} with "
                f"{said}: rewards are finite, and a verifier that broke says VERIFIER_ERROR, so that its episode is left out"
            )

    @property
    def score(self) -> float:
        """The return: the sum of the rewards; NaN where the verifier broke."""
        return float(np.sum(self.rewards))

    @property
    def errored(self) -> bool:
        """Whether the verifier broke, so that the episode is no evidence about the policy."""
        return self.verdict is not None and self.verdict.outcome is Outcome.VERIFIER_ERROR

    @property
    def reward_parts(self) -> dict[str, tuple[float, float]]:
        """Score and weight of each part of a score that is a weighted sum (`verifiers.make("weighted_sum")`); else empty."""
        parts = {} if self.verdict is None else self.verdict.detail.get("parts", {})
        if not isinstance(parts, Mapping) or not all(_is_weighted(part) for part in parts.values()):
            return {}
        return {name: (_number(part["score"]), part["weight"]) for name, part in parts.items()}


def _is_weighted(part: object) -> bool:
    """Whether a part is one of a weighted sum; other verifiers say other things of their parts, such as a number."""
    return isinstance(part, Mapping) and {"score", "weight"} <= part.keys()


def _number(score: float | None) -> float:
    return math.nan if score is None else score
