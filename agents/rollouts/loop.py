"""The interaction loop: a policy acts in an environment until a list of episodes is done.

It uses `reset` and `step_many` of a vector environment with the observations, options and `info` of `TokenVectorEnv`, and
`step` if the outermost wrapper has no `step_many`. A row whose episode ends immediately starts the next episode.

A verdict may attribute parts of its score to earlier tokens (`Verdict.token_scores`). The environment returns the whole score
with the last token, since the earlier steps are over; a trajectory has each part at its token.

The reward is the one returned by `step`; `info["rewards"]` only distributes it over the tokens. If a wrapper changes one but
not the other, the difference is added to the last token of the step.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, cast

import numpy as np
from gymnasium import spaces
from gymnasium.vector import VectorEnv
from numpy.typing import NDArray

import rlvr_envs
from agents.rollouts.states import require_states, states_before
from agents.rollouts.token_record import TokenRecord
from agents.rollouts.vector_adapter import with_token_info
from agents.seeding import mix
from agents.types import Action, LimitsRows, Policy, Trajectory
from verifiers import InvalidArgumentError


@dataclass(frozen=True, slots=True)
class Episode:
    """An episode to play."""

    problem: int
    """The problem's index; -1 lets the environment draw the problem."""
    group: int
    """Number of the episode's group, which is copied to the trajectory."""
    seed: int
    """Seed u64 of the policy's sampling, which otherwise depends only on the observations."""
    env_seed: int | None = None
    """Seed with which the row is reset, so that an environment that draws problems itself draws the same problem again; None
    continues the environment's random state. Episodes with the same problem and `env_seed` start alike."""
    state: rlvr_envs.StreamState | None = field(default=None, compare=False)
    """State of the same problem, captured by `get_state`, from which the episode starts; None for the prompt. All tokens of the
    state are the trajectory's prompt, which this episode has not sampled, and the trajectory has only the rewards after the
    state."""

    def __post_init__(self) -> None:
        if self.state is not None and self.problem != self.state.problem_index:
            raise InvalidArgumentError(
                f"the episode's problem must be that of its state, {self.state.problem_index}, got {self.problem}"
            )
        if not _is_u64(self.seed):
            raise InvalidArgumentError(
                f"an episode's seed must be an integer from 0 to 2**64 - 1, got {self.seed!r}: take it modulo 2**64"
            )


@dataclass(frozen=True, slots=True)
class PartialEpisode:
    """An interrupted episode that is to be continued, perhaps with other weights."""

    episode: Episode
    played: Trajectory
    """The episode so far: neither terminated nor truncated, and without a verdict."""
    state: rlvr_envs.StreamState | None = field(default=None, compare=False)
    """The environment's state; None if the tokens have to be played again to reach it."""
    row: int = field(default=-1, compare=False)
    """The row that played the episode, since a policy may still have keys and values for this row; -1 for no row."""

    @property
    def group(self) -> int:
        """Number of the episode's group."""
        return self.episode.group


def _is_u64(value: object) -> bool:
    return isinstance(value, (int, np.integer)) and bool(0 <= value < 2**64)


_POLL_S = 1e-3
"""Interval between two checks for a verdict, if a wrapper hides `wait`."""


def rollout(
    env: VectorEnv[Any, Any, Any],
    policy: Policy,
    episodes: Sequence[Episode],
    *,
    on_episode: Callable[[Trajectory], None] | None = None,
) -> list[Trajectory]:
    """Play episodes, as many at once as the environment has rows and the policy has memory for.

    Args:
        env: A vector environment with `AutoresetMode.DISABLED`; one built with `copy=False` is faster.
        policy: The policy that acts. If it has `rows_at_once`, like `CausalLMPolicy`, no more rows are played at once.
        episodes: The episodes to play.
        on_episode: Called with each trajectory as it ends.

    Returns:
        The trajectories in the order of `episodes`.

    Raises:
        InvalidArgumentError: If the environment is not supported (see `with_token_info`), or starts differently when it is
            reset with the same seed.
    """
    done: dict[int, Trajectory] = {}
    for index, trajectory in play(env, policy, episodes):
        done[index] = trajectory
        if on_episode is not None:
            on_episode(trajectory)
    return [done[index] for index in range(len(episodes))]


def play(
    env: VectorEnv[Any, Any, Any], policy: Policy, episodes: Sequence[Episode]
) -> Iterator[tuple[int, Trajectory]]:
    """Play episodes as `rollout` does, and yield each trajectory as it ends, with its index in `episodes`."""
    if any(episode.state is not None for episode in episodes):
        require_states(env)
    for index, played in _Player(with_token_info(env), policy, episodes).play():
        assert isinstance(played, Trajectory)  # nothing interrupts it
        yield index, played


def play_on(
    env: VectorEnv[Any, Any, Any], policy: Policy, episodes: Sequence[Episode | PartialEpisode], tokens: int
) -> Iterator[tuple[int, Trajectory | PartialEpisode]]:
    """Play new and interrupted episodes, and interrupt each after `tokens` further tokens of the policy.

    An episode is interrupted only after a whole action, so an action of several tokens may go beyond `tokens`.

    Args:
        env: As for `rollout`; a `TokenVectorEnv` below its wrappers.
        policy: The policy that acts.
        episodes: The episodes to play.
        tokens: Number of tokens of the policy, at least 1, after which an episode is interrupted.

    Yields:
        Each trajectory or interrupted episode with its index in `episodes`, as it ends or is interrupted.

    Raises:
        InvalidArgumentError: If the environment has no states to continue from, or an interrupted episode proceeds differently
            when its tokens are played again.
    """
    require_states(env)
    lost = [episode for episode in episodes if isinstance(episode, PartialEpisode) and episode.state is None]
    states = iter(states_before(env, [(each.played, [len(each.played.tokens)]) for each in lost]))
    there = [
        replace(episode, state=next(states)[0])
        if isinstance(episode, PartialEpisode) and episode.state is None
        else episode
        for episode in episodes
    ]
    return _Player(with_token_info(env), policy, there, tokens).play()


def _check_vocabulary(env: VectorEnv[Any, Any, Any], policy: Policy) -> None:
    """Reject a policy with more tokens than the environment, which must use another tokenizer."""
    tokens, known = int(env.single_action_space.n), getattr(policy, "vocab_size", None)  # type: ignore[attr-defined] # Discrete
    if known is not None and known > tokens:
        raise InvalidArgumentError(
            f"the policy chooses among {known} tokens, but the environment has {tokens}: use the same tokenizer for both, and "
            "set the policy's vocab_size to its size"
        )


def rows_at_once(policy: object, width: int) -> int | None:
    """The number of rows of up to `width` tokens that a policy has memory for; None if unlimited."""
    return policy.rows_at_once(width) if isinstance(policy, LimitsRows) else None


class _Player:
    """Plays episodes in the rows of an environment, and records the data of each token."""

    def __init__(
        self,
        env: VectorEnv[Any, Any, Any],
        policy: Policy,
        episodes: Sequence[Episode | PartialEpisode],
        interrupt_after: int | None = None,
    ) -> None:
        _check_vocabulary(env, policy)
        self.env = env
        self.policy = policy
        self.partial = {index: each for index, each in enumerate(episodes) if isinstance(each, PartialEpisode)}
        self.episodes = [
            replace(each.episode, state=each.state) if isinstance(each, PartialEpisode) else each for each in episodes
        ]
        self.interrupt_after = np.iinfo(np.int64).max if interrupt_after is None else interrupt_after
        self.next = 0
        rows = env.num_envs
        self.index = np.full(rows, -1)  # index of the row's episode, -1 for none
        self.waiting = np.zeros(rows, dtype=bool)  # the episode is over and its verdict awaited
        # Tokens of the policy since the row's episode was begun or resumed.
        self.sampled = np.zeros(rows, dtype=np.int64)
        self.record = TokenRecord(rows, cast("spaces.Dict", env.single_observation_space))
        self.most = rows_at_once(policy, self.record.width) or rows
        self.starts: dict[tuple[int, int], bytes] = {}  # the prompt of each problem and seed of the environment

    @property
    def playing(self) -> NDArray[np.bool_]:
        """bool[b], the rows with an episode."""
        return self.index >= 0

    def play(self) -> Iterator[tuple[int, Trajectory | PartialEpisode]]:
        observation, mask = self._refill(np.ones(self.env.num_envs, dtype=bool))
        record = self.record
        while (playing := self.playing).any():
            acting = playing & ~self.waiting
            if acting.any():
                action = self.policy.act(observation, action_mask=mask, rows=acting)
                record.record_masks(mask, action, acting)
                observation, reward, terminated, truncated, info = self._step(action, mask)
                self.sampled += info["consumed"]
                record.record(action, info, playing, self.policy.version)
            else:
                observation, reward, terminated, truncated, info = self._wait(mask)
            record.correct_rewards(reward, terminated | truncated, info, playing)
            begun = record.record_inserted(observation, info, playing)
            if len(begun):
                self.policy.begin(begun, self._context_seeds(begun))
            record.record_rewards(info, playing)
            record.record_observations(observation, info["consumed"] > 0)
            mask = info.get("action_mask")
            self.waiting = np.asarray(info.get("pending", np.zeros(self.env.num_envs, dtype=bool)))
            ended = (terminated | truncated) & playing
            interrupted = (self.sampled >= self.interrupt_after) & playing & ~self.waiting & ~ended
            if (ended | interrupted).any():
                for row in np.flatnonzero(ended).tolist():
                    yield self._finish(row, observation, bool(terminated[row]), bool(truncated[row]), info)
                for row in np.flatnonzero(interrupted).tolist():
                    yield self._interrupt(row, observation)
                if self.next < len(self.episodes):
                    observation, mask = self._refill(ended | interrupted)

    def _refill(self, free: NDArray[np.bool_]) -> tuple[Any, Any]:
        """Start the next episodes in free rows, as many as the policy has memory for."""
        room = self.most - int(self.playing.sum())
        count = max(min(len(self.episodes) - self.next, room, int(free.sum())), 0)
        rows = self._rows_for(range(self.next, self.next + count), free)
        starting = self.episodes[self.next : self.next + count]
        self.index[rows] = np.arange(self.next, self.next + count)
        self.next += count
        problems = np.full(self.env.num_envs, -1, dtype=np.int64)
        problems[rows] = [episode.problem for episode in starting]
        options: dict[str, Any] = {"problems": problems}
        if any(episode.state is not None for episode in starting):
            states: list[rlvr_envs.StreamState | None] = [None] * self.env.num_envs
            for row, episode in zip(rows.tolist(), starting, strict=True):
                states[row] = episode.state
            options["states"] = states
        if len(rows) < self.env.num_envs:
            options["reset_mask"] = np.isin(np.arange(self.env.num_envs), rows)
        seeds = self._env_seeds(rows, starting)
        observation, info = self.env.reset(seed=seeds, options=options)  # type: ignore[arg-type] # a list may hold None
        self.sampled[rows] = 0
        self.record.begin(rows, observation)
        for row in rows.tolist():
            if int(self.index[row]) in self.partial:
                self.record.restore(row, self.partial[int(self.index[row])].played)
        self.policy.begin(rows, self._context_seeds(rows))
        self.record.record_observations(observation, np.isin(np.arange(self.env.num_envs), rows))
        self._check_starts(rows, starting, observation)
        return observation, info.get("action_mask")

    def _rows_for(self, starting: Sequence[int], free: NDArray[np.bool_]) -> NDArray[np.int64]:
        """A free row for each of some episodes: if possible, the row in which the episode was interrupted."""
        unused = dict.fromkeys(np.flatnonzero(free).tolist())
        own: dict[int, int] = {}
        for index in starting:
            if index in self.partial and self.partial[index].row in unused:
                own[index] = self.partial[index].row
                del unused[own[index]]
        others = iter(unused)
        return np.array([own[index] if index in own else next(others) for index in starting], dtype=np.int64)

    def _context_seeds(self, rows: NDArray[np.int64]) -> NDArray[np.uint64]:
        """The sampling seeds u64[r] of the rows' current contexts; the first context of an episode has the episode's seed."""
        seeds = np.array([self.episodes[index].seed for index in self.index[rows]], dtype=np.uint64)
        # As many numbers were drawn as there are positions before the context.
        offset = self.record.offset[rows]
        return np.where(offset == 0, seeds, mix(mix(seeds) ^ mix(offset.astype(np.uint64))))

    def _env_seeds(self, rows: NDArray[np.int64], starting: Sequence[Episode]) -> list[int | None] | None:
        """The reset seed of each row of the environment (None for a row that is not reset); a single None without seeds."""
        if all(episode.env_seed is None for episode in starting):
            return None
        seeds: list[int | None] = [None] * self.env.num_envs
        for row, episode in zip(rows.tolist(), starting, strict=True):
            seeds[row] = episode.env_seed
        return seeds

    def _check_starts(self, rows: NDArray[np.int64], starting: Sequence[Episode], observation: Any) -> None:
        """Check that episodes with the same problem and seed start alike, since members of a group are compared."""
        for row, episode in zip(rows.tolist(), starting, strict=True):
            if episode.env_seed is None or episode.state is not None:
                continue
            prompt = observation["tokens"][row, : self.record.length[row]].tobytes()
            if self.record.observations is not None:
                prompt += observation["observation"][row].tobytes()
            if self.starts.setdefault((episode.problem, episode.env_seed), prompt) != prompt:
                raise InvalidArgumentError(
                    f"{type(self.env.unwrapped).__name__} began differently when it was reset twice with seed "
                    f"{episode.env_seed}: an environment must draw all its randomness from the seed of reset(seed=...)"
                )

    def _wait(self, mask: NDArray[np.int8] | None) -> Any:
        """Wait for a verdict: by `wait` or, if a wrapper hides `wait`, by polling with steps that consume no token."""
        if hasattr(self.env, "wait"):
            return self.env.wait(every=False)
        time.sleep(_POLL_S)
        rows = self.env.num_envs
        nothing = np.zeros((rows, 1), dtype=np.int64)
        return self._step(Action(nothing, nothing[:, 0], nothing.astype(np.float32)), mask)

    def _step(self, action: Action, mask: NDArray[np.int8] | None) -> Any:
        if hasattr(self.env, "step_many"):
            return self.env.step_many(action.tokens, action.counts)
        if action.tokens.shape[1] != 1:
            raise InvalidArgumentError(
                f"the policy returns {action.tokens.shape[1]} tokens at once, but the outermost wrapper of the environment, "
                f"{type(self.env).__name__}, has no step_many: unwrap it, or use a policy that returns one token at a time"
            )
        if (self.playing & ~self.waiting & (action.counts == 0)).any():
            raise InvalidArgumentError(
                "the policy returns no token yet for some rows, but the outermost wrapper of the environment, "
                f"{type(self.env).__name__}, has no step_many and steps all rows: unwrap it, or let the policy wait for all "
                "rows (VLLMConfig(streaming=False))"
            )
        # `step` needs a token for every row: rows that are not played get a legal one.
        unused = 0 if mask is None else mask.argmax(axis=1)
        return self.env.step(np.where(action.counts > 0, action.tokens[:, 0], unused))

    def _finish(
        self, row: int, observation: Any, terminated: bool, truncated: bool, info: dict[str, Any]
    ) -> tuple[int, Trajectory]:
        """Free a row, and return the index of its episode and the trajectory."""
        self.record.credit(row, info)
        said = {name: info[name][row] for name in ("problem_id", "verdict", "completion")}
        return self._free(row, observation, terminated=terminated, truncated=truncated, **said)

    def _interrupt(self, row: int, observation: Any) -> tuple[int, PartialEpisode]:
        """Free a row whose episode is not over; return the index of the episode, and the interrupted episode with its state."""
        streams = require_states(self.env).streams
        problem, state = streams.problem(row), streams.get_state(row)
        assert problem is not None
        said = {"problem_id": problem.id, "verdict": None, "completion": ""}
        index, played = self._free(row, observation, terminated=False, truncated=False, **said)
        before = self.partial.get(index)
        episode = self.episodes[index] if before is None else before.episode
        return index, PartialEpisode(replace(episode, problem=state.problem_index), played, state, row)

    def _free(self, row: int, observation: Any, **said: Any) -> tuple[int, Trajectory]:
        """Free a row; return the index of its episode, and the episode's trajectory with the given fields set."""
        index = int(self.index[row])
        self.index[row] = -1
        episode = self.episodes[index]
        asked = {"group": episode.group, "problem": episode.problem, "seed": int(episode.seed)}
        return index, self.record.trajectory(row, observation, **asked, **said)
