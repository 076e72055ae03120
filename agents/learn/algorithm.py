"""`Algorithm`: the part of an agent that a paper defines."""

from __future__ import annotations

import abc
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

from gymnasium.vector import VectorEnv

import rlvr_envs
from agents.batch import Batch, require_equal_groups
from agents.deferred import torch
from agents.rollouts.loop import Episode
from agents.rollouts.problem_samplers import require_indices
from agents.settings.agent import AgentConfig
from agents.truncation import apply_truncation
from agents.types import Policy, Sampler, Trajectory
from verifiers import InvalidArgumentError

if TYPE_CHECKING:
    from torch import Tensor


class Plays(Protocol):
    """Plays the episodes of a training step."""

    sampler: Sampler
    """The policy that samples, with the weights of the step."""

    def episodes(self, env: VectorEnv[Any, Any, Any], number: int) -> list[Episode]:
        """Return the episodes of round `number`, which depend only on the number, the seed and the observations of problems."""

    def play(
        self, env: VectorEnv[Any, Any, Any], episodes: Sequence[Episode], policy: Policy | None = None
    ) -> list[Trajectory]:
        """Play episodes with the sampler, or with another policy that uses its weights, and return them in the same order."""


class Algorithm(abc.ABC):
    """Advantages and a loss, with their requirements on episodes, on environments and on each other.

    An algorithm uses only a batch and its settings. The subclass `agents.Agent` adds a policy and everything that trains it.
    """

    name: str
    config: AgentConfig
    compares_groups: bool = False
    """Whether advantages compare scores within a group, which requires groups of equal size, at least 2."""
    vanishes_without_advantage: bool = True
    """Whether the gradient of `loss` is 0 where the advantage is 0, so that completions without advantages can be skipped."""
    advantages_from_rewards: bool = False
    """Whether the advantages of a batch follow from its rewards, masks, groups and verdicts alone. A rank then does not need
    the tokens of other ranks' episodes."""
    needs_whole_weights: bool = False
    """Whether an update needs all weights on every rank, so that weights can't be divided (`--shard`)."""

    @abc.abstractmethod
    def advantages(self, batch: Batch) -> Tensor:
        """Return the advantage of each token of a batch, f64[b l]."""

    @abc.abstractmethod
    def loss(self, batch: Batch, logprobs: Tensor, advantages: Tensor) -> Tensor:
        """Return the loss f[b t] of each token; the batch is cut to the same t positions, which hold all trained tokens.

        The gradient must be 0 where the advantage is 0, as it is for any loss proportional to the advantage: completions
        whose advantages are all 0 are skipped. An agent whose loss has other terms sets
        `vanishes_without_advantage = False`.
        """

    def value_targets(self, batch: Batch) -> Tensor | None:
        """Return the targets of the critic's values, f64[b l]; None for an agent without a critic."""
        return None

    def clipped(self, batch: Batch, logprobs: Tensor, advantages: Tensor) -> tuple[Tensor, Tensor] | None:
        """Return where the loss is clipped from below and above, bool[b t] each, for metrics; None if it is never clipped."""
        return None

    def sample_batch(
        self, sampling: Plays, env: VectorEnv[Any, Any, Any], first_round: int
    ) -> tuple[list[Trajectory], int]:
        """Play the episodes of one step; return them and the number of rounds of problems drawn.

        Args:
            sampling: Plays episodes; with a lag, its weights are older than the agent's.
            env: The environment.
            first_round: Number of the first round of problems.
        """
        return sampling.play(env, sampling.episodes(env, first_round)), 1

    def check_env(self, env: VectorEnv[Any, Any, Any]) -> None:  # noqa: B027 - most agents learn in any
        """Raise if the agent can't learn in an environment; called before training begins."""

    def require_env(self, env: VectorEnv[Any, Any, Any]) -> None:
        """Check that the agent can learn in an environment with its settings.

        Raises:
            InvalidArgumentError: If it can't.
        """
        self.check_env(env)
        require_indices(self.config.problem_sampler, env)
        if self.config.carried_groups and not isinstance(env.unwrapped, rlvr_envs.TokenVectorEnv):
            raise InvalidArgumentError(
                f"carried_groups={self.config.carried_groups} interrupts episodes, which only environments with tokens can go "
                f"on with, and {type(env.unwrapped).__name__} is none: leave `carried_groups` out"
            )

    def check_episode(self, trajectory: Trajectory) -> None:  # noqa: B027 - most agents learn from any episode
        """Raise if an episode can't be trained on; called as soon as each episode ends."""

    def check_batch(self, trajectories: Sequence[Trajectory]) -> None:
        """Raise if episodes can't be trained on together.

        Raises:
            InvalidArgumentError: If an episode can't be trained on, if groups that are compared have one member or different
                sizes, or if the batch can't be divided into minibatches of equal size.
        """
        for trajectory in trajectories:
            self.check_episode(trajectory)
        require_equal_minibatches(len(trajectories), self.config.minibatches)
        if self.compares_groups:
            require_equal_groups(trajectory.group for trajectory in trajectories)

    def usable(self, batch: Batch) -> Batch:
        """Return a batch without the completions that advantages can't be computed for; see `Batch.without`."""
        return batch

    def truncated(self, batch: Batch) -> Batch:
        """Apply the config's rule for truncated episodes to a batch."""
        config = self.config
        return apply_truncation(
            batch,
            config.truncation,
            reward=config.truncation_reward,
            max_tokens=config.max_tokens,
            margin=config.overlong_margin,
        )

    def after_update(self, batch: Batch) -> None:  # noqa: B027 - most agents keep nothing
        """Called with each batch after its update, to update an agent's own state, such as a moving average."""

    def own_state(self) -> dict[str, Any]:
        """Return the state that only this kind of agent has, as tensors and plain data."""
        return {}

    def load_own_state(self, state: dict[str, Any]) -> None:  # noqa: B027 - most agents carry nothing
        """Restore the state returned by `own_state`."""


def require_equal_minibatches(rows: int, minibatches: int) -> None:
    """Reject a batch whose minibatches would differ in size, since completions would have different weights."""
    if rows % minibatches:
        raise InvalidArgumentError(
            f"{rows} completions can't be divided into minibatches={minibatches} of equal size: pass "
            f"{minibatches - rows % minibatches} more or {rows % minibatches} fewer, or change minibatches"
        )


def require_per_token(algorithm: Algorithm, name: str, given: object, tokens: Tensor) -> None:
    """Check that an algorithm's method returned a floating-point number for each token."""
    if not isinstance(given, torch.Tensor):
        came = f"an object of {type(given)}"
    elif given.shape != tokens.shape:
        came = f"one of shape {tuple(given.shape)}"
    elif not given.is_floating_point():
        came = f"one of {given.dtype}"
    else:
        return
    raise InvalidArgumentError(
        f"{type(algorithm).__name__}.{name} must return a floating-point number for each token, a tensor of shape "
        f"{tuple(tokens.shape)}; got {came}"
    )
