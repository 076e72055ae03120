"""VinePPO (Kazemnejad et al. 2024, arXiv:2410.01679): PPO in which further sampling, not a critic, estimates values.

A completion is divided into steps, such as lines. From the state before each step, K further completions are sampled. The mean
of their returns is an unbiased estimate of the state's value, so that

    A = r + V(s') - V(s)

is an unbiased estimate of the advantage of the step from s to s', and all tokens of the step get it. If several completions of
a batch share a state, such as the prompt, its value is estimated once. The end of a step must depend only on the text up to
this end; otherwise the estimate would be biased.

One training step, and the functions that implement it:

    trajectories   tokens ~ pi_old, scored by the verifier               rollouts.loop.rollout
    steps          the tokens that begin a step                          step_starts
    states         the trajectory's tokens up to there, played again     rollouts.states.states_before
    V              the mean return of K episodes from each state         VinePPO.with_values, rollouts.loop.rollout
    A              r + V(s') - V(s), then whitened                       advantages.step_advantages, advantages.whiten
    L              -min(ratio A, clip(ratio) A)                          losses.clipped_surrogate

A rule for truncated completions that changes scores, such as `truncation="fixed-reward"`, applies to the further completions,
too. A further completion on which the verifier broke is left out of the mean. If the verifier broke on all further completions
from a state, the completions that pass through this state are excluded from training.

Departures from the paper: by default there is one pass over a batch, as for the other agents, and no KL term unless
`kl_coefficient` is set. The paper makes two passes over batches of 512 completions of 64 problems, with a KL term of weight
1e-4 in the loss. The authors divide solutions by rules for each data set; here a step ends with `step_separator`, or after
`max_step_tokens`.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
from gymnasium.vector import VectorEnv

import rlvr_envs
from agents.advantages import step_advantages, whiten
from agents.batch import Batch, make_batch
from agents.learn.agent import Agent
from agents.learn.algorithm import Plays
from agents.losses import clipped_surrogate, clipped_tokens
from agents.rollouts.loop import Episode
from agents.rollouts.states import require_states, states_before
from agents.seeding import mix
from agents.settings.agent import AgentConfig
from agents.types import Trajectory
from verifiers import AtLeast, Between, InvalidArgumentError

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True)
class VinePPOConfig(AgentConfig):
    """Settings of VinePPO."""

    minibatches: int = 4
    episodes_per_state: Annotated[int, AtLeast(1)] = 9
    """Number K of further completions that are sampled to estimate the value of a state."""
    step_separator: str = "\n"
    """Text that ends a step; empty to divide completions by `max_step_tokens` alone."""
    max_step_tokens: Annotated[int | None, AtLeast(1)] = None
    """Number of tokens after which a step ends in any case; None sets no limit."""
    whiten: bool = True
    """Whether advantages are normalised to mean 0 and standard deviation 1 over the batch's tokens."""
    clip_low: Annotated[float, Between(0, 1)] = 0.2
    """Lower clip range: the probability ratio is clipped at 1 - `clip_low`."""
    clip_high: Annotated[float, AtLeast(0, infinite=True)] = 0.2
    """Upper clip range: the probability ratio is clipped at 1 + `clip_high`."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.needs_reference and self.kl_placement == "reward":
            raise InvalidArgumentError(
                "VinePPO estimates values from the environment's rewards, which would not include a KL term: set "
                "kl_placement='loss'"
            )


class VinePPO(Agent):
    """PPO with Monte Carlo values of the states between steps."""

    name = "vineppo"
    config: VinePPOConfig

    def check_env(self, env: VectorEnv[Any, Any, Any]) -> None:
        """Refuse an environment that can't begin an episode in the middle of another episode."""
        if not isinstance(env.unwrapped, rlvr_envs.TokenVectorEnv):
            raise InvalidArgumentError(
                "vineppo starts several continuations in the middle of an episode, which only the environments of rlvr_envs "
                "with tokens allow: choose one of these, or an agent with a critic, such as ppo"
            )

    def sample_batch(
        self, sampling: Plays, env: VectorEnv[Any, Any, Any], first_round: int
    ) -> tuple[list[Trajectory], int]:
        """Sample completions, and estimate the value of the state before each of their steps."""
        require_states(env)
        trajectories = sampling.play(env, sampling.episodes(env, first_round))
        return self.with_values(sampling, env, trajectories), 1

    def with_values(
        self, sampling: Plays, env: VectorEnv[Any, Any, Any], trajectories: Sequence[Trajectory]
    ) -> list[Trajectory]:
        """Estimate the `step_values` of trajectories from an environment."""
        config, tokenizer = self.config, require_states(env).tokenizer
        starts = [step_starts(one, tokenizer, config.step_separator, config.max_step_tokens) for one in trajectories]
        states = states_before(env, list(zip(trajectories, starts, strict=True)))
        values = self._estimate(sampling, env, trajectories, starts, states)
        return [
            _with_values(one, positions, [values[_key(state)] for state in own])
            for one, positions, own in zip(trajectories, starts, states, strict=True)
        ]

    def _estimate(
        self,
        sampling: Plays,
        env: VectorEnv[Any, Any, Any],
        trajectories: Sequence[Trajectory],
        starts: Sequence[Sequence[int]],
        states: Sequence[Sequence[rlvr_envs.StreamState]],
    ) -> dict[_Key, float]:
        """The value of each different state; NaN if the verifier broke on all episodes from the state."""
        count = self.config.episodes_per_state
        origins: dict[_Key, tuple[Trajectory, int, rlvr_envs.StreamState]] = {}
        for one, positions, own in zip(trajectories, starts, states, strict=True):
            for position, state in zip(positions, own, strict=True):
                origins.setdefault(_key(state), (one, position, state))
        episodes = [
            Episode(state.problem_index, one.group, seed, state=state)
            for one, position, state in origins.values()
            for seed in _seeds(one.seed, position, count)
        ]
        played = sampling.play(env, episodes)
        return {
            key: self._mean_return(one, position, played[index * count : (index + 1) * count])
            for index, (key, (one, position, _)) in enumerate(origins.items())
        }

    def _mean_return(self, origin: Trajectory, position: int, continuations: Sequence[Trajectory]) -> float:
        """The mean return from a position of an episode on, by the config's rule for truncated episodes."""
        batch = self.truncated(make_batch([_whole(origin, position, one) for one in continuations]))
        earned = batch.rewards[:, position:].sum(dim=1)
        return float(earned[batch.valid].mean())  # NaN if no episode is valid

    def usable(self, batch: Batch) -> Batch:
        """Exclude completions that pass through a state whose value is unknown."""
        return batch if batch.baselines is None else batch.without(batch.baselines.isnan())

    def advantages(self, batch: Batch) -> Tensor:
        """The difference r + V(s') - V(s) for all tokens of a step, whitened."""
        advantages = step_advantages(batch.rewards, _values(batch), batch.loss_mask)
        return whiten(advantages, batch.loss_mask) if self.config.whiten else advantages

    def loss(self, batch: Batch, logprobs: Tensor, advantages: Tensor) -> Tensor:
        """PPO's clipped surrogate."""
        return clipped_surrogate(logprobs, batch.old, advantages, self.config.clip_low, self.config.clip_high)

    def clipped(self, batch: Batch, logprobs: Tensor, advantages: Tensor) -> tuple[Tensor, Tensor] | None:
        """Return the tokens at which the surrogate has no gradient."""
        return clipped_tokens(logprobs, batch.old, advantages, self.config.clip_low, self.config.clip_high)


def step_starts(
    trajectory: Trajectory, tokenizer: rlvr_envs.Tokenizer, separator: str, max_tokens: int | None
) -> list[int]:
    """The position of the first token of each step.

    A step begins with each turn of the policy, after a token that completes the separator, and after `max_tokens` tokens.
    """
    wanted = separator.encode()
    starts: list[int] = []
    seen, count = b"", 0
    for position in np.flatnonzero(trajectory.policy_mask).tolist():
        begins_turn = not trajectory.policy_mask[position - 1]
        if begins_turn or (wanted and wanted in seen) or count == max_tokens:
            starts.append(position)
            seen, count = b"", 0
        # A separator may span tokens, so the end of the text so far may be the beginning of a separator.
        seen = seen[len(seen) - len(wanted) + 1 :] if len(seen) >= len(wanted) else seen
        seen, count = seen + tokenizer.token_bytes(int(trajectory.tokens[position])), count + 1
    return starts


def _with_values(trajectory: Trajectory, starts: Sequence[int], values: Sequence[float]) -> Trajectory:
    """Add the values before the steps to a trajectory. The baseline becomes the first value, or NaN if any value is unknown."""
    step_values = np.full(len(trajectory.tokens), math.nan)
    step_values[list(starts)] = values
    known = not any(map(math.isnan, values))
    return dataclasses.replace(trajectory, step_values=step_values, baseline=values[0] if known else math.nan)


def _whole(origin: Trajectory, position: int, continuation: Trajectory) -> Trajectory:
    """Convert an episode that began within another to an episode from the prompt, so that its length counts all tokens."""
    start = continuation.prompt_length
    before = position - start  # number of tokens that are no longer in view
    return dataclasses.replace(
        continuation,
        tokens=np.concatenate([origin.tokens[:before], continuation.tokens]),
        policy_mask=np.concatenate([origin.policy_mask[:position], continuation.policy_mask[start:]]),
        logprobs=np.concatenate([origin.logprobs[:before], continuation.logprobs]),
        rewards=np.concatenate([np.zeros(before), continuation.rewards]),
        action_masks=None,  # not used for training
        contexts=(),
    )


_Key = tuple[int, bytes, tuple[bytes, ...]]


def _key(state: rlvr_envs.StreamState) -> _Key:
    """The identity of a state: the tokens in view, and the earlier turns, which may be out of view."""
    return state.problem_index, state.tokens.tobytes(), tuple(turn.tokens.tobytes() for turn in state.turns)


def _seeds(seed: int, position: int, count: int) -> list[int]:
    """Sampling seeds of the episodes from a state, from the seed of the episode that reached the state, and its position."""
    base = mix(np.array([seed], dtype=np.uint64)) ^ mix(np.array([position], dtype=np.uint64))
    seeds: list[int] = mix(mix(base) ^ mix(np.arange(count, dtype=np.uint64))).tolist()
    return seeds


def _values(batch: Batch) -> Tensor:
    """The values f64[b l] before the first token of each step.

    Raises:
        InvalidArgumentError: If no token has a value, because the trajectories were not collected by VinePPO.
    """
    if batch.step_values is None:
        raise InvalidArgumentError(
            "no trajectory has values of the states before its steps: use VinePPO.collect or VinePPO.with_values, or set the "
            "`step_values` of each trajectory"
        )
    return batch.step_values
