"""The data types passed between policies, rollouts and learners. NumPy only: a trajectory does not need torch."""

from __future__ import annotations

import math
from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

import rlvr_envs
from verifiers import InvalidArgumentError, Outcome, Verdict


@dataclass(frozen=True, slots=True)
class Action:
    """The tokens a policy chose for b rows, up to n in each."""

    tokens: NDArray[np.int64]
    """i64[b n], the chosen tokens."""
    counts: NDArray[np.int64]
    """i64[b], number of valid tokens in the row; 0 for rows that needed no action or have no tokens yet."""
    logprobs: NDArray[np.float32]
    """f32[b n], natural log-probabilities under the sampling distribution; NaN where a token was not sampled."""
    kept: NDArray[np.uint8] | None = None
    """u8[b n ceil(v/8)], the candidate tokens for each choice, packed by `numpy.packbits`, if the policy itself excluded some
    (top-k, for example); None if it chose from all legal tokens."""


class Policy(Protocol):
    """Chooses tokens."""

    @property
    def version(self) -> int:
        """Number of weight updates so far."""

    def act(
        self,
        observation: rlvr_envs.Observation,
        *,
        action_mask: NDArray[np.int8] | None = None,
        rows: NDArray[np.bool_] | None = None,
    ) -> Action:
        """Choose tokens for the rows that need an action. A slow policy may choose tokens for some of these rows, at least one.

        Args:
            observation: `tokens` i32[b l], `length` i32[b 1].
            action_mask: i8[b v], 1 for legal tokens, if the environment limits them.
            rows: bool[b], the rows that need an action; None for all. Excluding rows only saves work.
        """

    def begin(self, rows: NDArray[np.int64], seeds: NDArray[np.uint64]) -> None:
        """Announce, with sampling seeds u64[r], that some rows begin new episodes, or new contexts of their current episodes.

        Each context (`rlvr_envs.Reply.context`) has its own seed, since observations of a new context begin short again.
        """


class Sampler(Policy, Protocol):
    """A policy used for an agent's rollouts: the policy being trained, or an engine that receives its weights."""

    @property
    def learner(self) -> Policy:
        """The policy being trained, whose weights this sampler uses."""

    def at_temperature(self, temperature: float) -> Policy:
        """Return a policy with the same weights at another temperature; 0 is greedy."""

    def sampling(self) -> AbstractContextManager[Mapping[str, float]]:
        """A context in which the policy acts with the weights that the learner had at its start; yields transfer metrics."""


@runtime_checkable
class LimitsRows(Protocol):
    """A policy whose memory limits how many episodes it plays at once."""

    def rows_at_once(self, width: int) -> int | None:
        """The number of rows of up to `width` tokens that there is memory for; None if unlimited."""


@runtime_checkable
class Interruptible(Protocol):
    """A policy that samples several tokens in one call of `act`, and can limit their number."""

    def interrupted_after(self, tokens: int) -> Policy:
        """Return a policy that returns completions, finished or not, after at most this number of tokens."""


@runtime_checkable
class TakesLearner(Protocol):
    """A sampler that can take its weights from another policy of the same model."""

    def with_learner(self, policy: Any) -> Sampler:
        """Return a sampler that takes its weights from a policy."""


@runtime_checkable
class TakesLayers(Protocol):
    """A sampler that can take the learner's weights layer by layer if the weights are divided among ranks."""

    def check_layers(self) -> None:
        """Raise `InvalidArgumentError` if the sampler's settings do not support such transfers."""

    def transferred(self) -> Sampler:
        """Take the learner's weights, on all ranks together, and return a sampler that acts with them while the learner learns.

        The returned sampler keeps these weights until the next transfer; its `sampling()` transfers none.
        """


@dataclass(frozen=True, slots=True)
class Trajectory:
    """One episode: its problem, its tokens, and the per-token data needed for training. The length l includes the prompt.

    Raises:
        InvalidArgumentError: If a reward is not finite and no verdict says that the verifier broke.
    """

    problem_id: str
    group: int
    """Number of the group; trajectories of one group answer the same problem."""
    prompt_length: int
    """Number of tokens that the episode started with, from the prompt or the captured state."""
    terminated: bool
    truncated: bool
    verdict: Verdict | None
    completion: str
    tokens: NDArray[np.int32]
    """i32[l], the tokens of the episode."""
    policy_mask: NDArray[np.bool_]
    """bool[l], True for the policy's own tokens, including its stop token."""
    logprobs: NDArray[np.float32]
    """f32[l], log-probabilities under the sampling distribution; 0 outside `policy_mask`."""
    rewards: NDArray[np.float64]
    """f64[l], the reward of each token."""
    policy_version: NDArray[np.int32]
    """i32[l], the version of the policy that produced each token."""
    action_masks: NDArray[np.uint8] | None = None
    """u8[l ceil(v/8)], the candidate tokens for each token, packed by `numpy.packbits`; None if every token was legal."""
    observations: NDArray[np.float32] | None = None
    """f32[l d], the vector that the environment showed after each token; None if the environment shows tokens."""
    problem: int = -1
    """Index of the problem in the data set; -1 if the environment drew it itself."""
    seed: int = 0
    """Seed u64 of the policy's sampling; 0 if it is unknown."""
    baseline: float | None = None
    """A baseline score for the same problem, such as that of the greedy completion; NaN if its verifier broke, None if
    there is no baseline."""
    step_values: NDArray[np.float64] | None = None
    """f64[l], an estimate of the value of the state before each token that begins a step, such as VinePPO's; NaN for all other
    tokens. None if there are no estimates."""
    contexts: tuple[int, ...] = ()
    """Positions in `tokens` at which a new context began (`rlvr_envs.Reply.context`): from there on the policy saw no earlier
    tokens. Empty if there was only one context."""

    def __post_init__(self) -> None:
        if not self.errored and not np.isfinite(self.rewards).all():
            token = int(np.flatnonzero(~np.isfinite(self.rewards))[0])
            said = "no verdict" if self.verdict is None else f"the verdict {self.verdict.outcome}"
            raise InvalidArgumentError(
                f"the reward of token {token} is {self.rewards[token]} in an episode of problem {self.problem_id!r} with "
                f"{said}: rewards must be finite; a verifier that breaks must report VERIFIER_ERROR, so that its episode is "
                "excluded from training"
            )

    @property
    def score(self) -> float:
        """The return: the sum of the rewards; NaN where the verifier broke."""
        return float(np.sum(self.rewards))

    def context_before(self, position: int) -> int:
        """The position at which the context of the token at `position` begins; 0 in the first context."""
        return max((start for start in self.contexts if start <= position), default=0)

    @property
    def errored(self) -> bool:
        """Whether the verifier broke, so that the episode is no evidence about the policy."""
        return self.verdict is not None and self.verdict.outcome is Outcome.VERIFIER_ERROR

    @property
    def reward_parts(self) -> dict[str, tuple[float, float]]:
        """Score and weight of each part of a weighted-sum score (`verifiers.make("weighted_sum")`); empty for other scores."""
        return {} if self.verdict is None else reward_parts(self.verdict)


@dataclass(frozen=True, eq=False)
class TrajectoryElsewhere(Trajectory):
    """An episode that another rank played and trains on; here its tokens are -1 and its log-probabilities NaN."""


def reward_parts(verdict: Verdict) -> dict[str, tuple[float, float]]:
    """Score and weight of each part of a verdict of `verifiers.make("weighted_sum")`; empty for other verdicts."""
    parts = verdict.detail.get("parts", {})
    if not isinstance(parts, Mapping) or not all(_is_weighted(part) for part in parts.values()):
        return {}
    return {name: (_number(part["score"]), part["weight"]) for name, part in parts.items()}


def _is_weighted(part: object) -> bool:
    """Whether a part belongs to a weighted sum; other verifiers report their parts differently, such as by a number."""
    return isinstance(part, Mapping) and {"score", "weight"} <= part.keys()


def _number(score: float | None) -> float:
    return math.nan if score is None else score
