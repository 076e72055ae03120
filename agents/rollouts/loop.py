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
from typing import Any

import numpy as np
from gymnasium.vector import VectorEnv
from numpy.typing import NDArray

import rlvr_envs
from agents.rollouts.states import require_states, states_before
from agents.rollouts.vector_adapter import with_token_info
from agents.seeding import mix
from agents.types import Action, Policy, Trajectory
from verifiers import InvalidArgumentError


@dataclass(frozen=True, slots=True)
class Episode:
    """An episode to play."""

    problem: int
    """The problem's index, -1 to let the environment draw it."""
    group: int
    """Number of the episode's group, which is copied to the trajectory."""
    seed: int
    """Seed u64 of the policy's sampling, which otherwise depends only on the observations."""
    env_seed: int | None = None
    """Seed with which the row is reset, so that an environment that draws the problem itself draws the same one again; None
    continues the environment's random state. Episodes with the same problem and `env_seed` start alike."""
    state: rlvr_envs.StreamState | None = field(default=None, compare=False)
    """State of the same problem, captured by `get_state`, from which the episode starts; None for the prompt. All tokens of the
    state are the trajectory's prompt, which this episode has not sampled, and its rewards are those that follow."""

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
    """An episode that was interrupted, to be played on, perhaps with other weights."""

    episode: Episode
    played: Trajectory
    """What was played so far: neither terminated nor truncated, and without a verdict."""
    state: rlvr_envs.StreamState | None = field(default=None, compare=False)
    """The environment's state; None if the tokens have to be played again to get there."""
    row: int = field(default=-1, compare=False)
    """The row that played it, in which a policy may still have its keys and values; -1 for none."""

    @property
    def group(self) -> int:
        """Number of the episode's group."""
        return self.episode.group


def _is_u64(value: object) -> bool:
    return isinstance(value, (int, np.integer)) and bool(0 <= value < 2**64)


_ALL_LEGAL = 255
"""Eight bits of a packed mask."""
_POLL_S = 1e-3
"""Interval between two checks for a verdict, if a wrapper hides `wait`."""
_ROUNDING = 1e-6
"""Relative rounding error of a reward that a wrapper returns in float32."""


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
    for index, played in _Recorder(with_token_info(env), policy, episodes).play():
        assert isinstance(played, Trajectory)  # nothing interrupts it
        yield index, played


def play_on(
    env: VectorEnv[Any, Any, Any], policy: Policy, episodes: Sequence[Episode | PartialEpisode], tokens: int
) -> Iterator[tuple[int, Trajectory | PartialEpisode]]:
    """Play episodes, new ones and those that were interrupted, and interrupt each when it has `tokens` more of the policy.

    An episode is interrupted where the policy acts, so that an action of several tokens may go beyond.

    Args:
        env: As for `rollout`; a `TokenVectorEnv` below its wrappers.
        policy: The policy that acts.
        episodes: The episodes to play.
        tokens: Number of tokens of the policy, at least 1, after which an episode is interrupted.

    Yields:
        Each trajectory or interrupted episode with its index in `episodes`, as it ends or is interrupted.

    Raises:
        InvalidArgumentError: If the environment has no states to go on from, or an interrupted episode goes another way when
            its tokens are played again.
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
    return _Recorder(with_token_info(env), policy, there, tokens).play()


def _check_vocabulary(env: VectorEnv[Any, Any, Any], policy: Policy) -> None:
    """Reject a policy with more tokens than the environment, which must have another tokenizer."""
    tokens, known = int(env.single_action_space.n), getattr(policy, "vocab_size", None)  # type: ignore[attr-defined] # Discrete
    if known is not None and known > tokens:
        raise InvalidArgumentError(
            f"the policy chooses among {known} tokens, but the environment has {tokens}: use the same tokenizer for both, and "
            "set the policy's vocab_size to its size"
        )


class _Recorder:
    """Plays episodes and records the data of each token, by position in the episode."""

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
        self.playing = np.full(rows, -1)  # index of the row's episode, -1 for none
        self.waiting = np.zeros(rows, dtype=bool)  # the episode is over and its verdict awaited
        self.width = width = env.single_observation_space["tokens"].shape[0]  # type: ignore[index] # a Dict space
        at_once = getattr(policy, "rows_at_once", None)  # of policies whose memory is limited
        self.most = (None if at_once is None else at_once(width)) or rows
        self.sampled = np.zeros(
            rows, dtype=np.int64
        )  # tokens of the policy since the row's episode was begun or resumed
        self.prompt_length = np.zeros(rows, dtype=np.int64)
        self.length = np.zeros(rows, dtype=np.int64)
        self.contexts: list[tuple[int, ...]] = [()] * rows  # where each but the first begins, in the episode's tokens
        self.offset = np.zeros(rows, dtype=np.int64)  # where the one in view begins
        self.tokens = np.zeros((rows, width), dtype=np.int32)
        self.policy_mask = np.zeros((rows, width), dtype=bool)
        self.logprobs = np.zeros((rows, width), dtype=np.float32)
        self.rewards = np.zeros((rows, width))
        self.reward_scale = np.ones(rows)  # of the last reward, by what `step` returned
        self.versions = np.zeros((rows, width), dtype=np.int32)
        self.action_masks: NDArray[np.uint8] | None = None
        vectors = env.single_observation_space.spaces.get("observation")  # type: ignore[attr-defined] # a Dict space
        self.observations = None if vectors is None else np.zeros((rows, width, *vectors.shape), dtype=np.float32)
        self.starts: dict[tuple[int, int], bytes] = {}  # the prompt of each problem and seed of the environment

    def play(self) -> Iterator[tuple[int, Trajectory | PartialEpisode]]:
        observation, mask = self._refill(np.ones(self.env.num_envs, dtype=bool))
        while (self.playing >= 0).any():
            acting = (self.playing >= 0) & ~self.waiting
            if acting.any():
                action = self.policy.act(observation, action_mask=mask, rows=acting)
                self._keep_masks(mask, action, acting)
                observation, reward, terminated, truncated, info = self._step(action, mask)
                self._record(action, info)
            else:
                observation, reward, terminated, truncated, info = self._wait(mask)
            self._correct_rewards(reward, terminated | truncated, info)
            self._record_inserted(observation, info)
            self._record_rewards(info)
            self._record_observations(observation, info["consumed"] > 0)
            mask = info.get("action_mask")
            self.waiting = np.asarray(info.get("pending", np.zeros(self.env.num_envs, dtype=bool)))
            ended = (terminated | truncated) & (self.playing >= 0)
            interrupted = (self.sampled >= self.interrupt_after) & (self.playing >= 0) & ~self.waiting & ~ended
            if (ended | interrupted).any():
                for row in np.flatnonzero(ended).tolist():
                    yield self._finish(row, observation, bool(terminated[row]), bool(truncated[row]), info)
                for row in np.flatnonzero(interrupted).tolist():
                    yield self._interrupt(row, observation)
                if self.next < len(self.episodes):
                    observation, mask = self._refill(ended | interrupted)

    def _refill(self, free: NDArray[np.bool_]) -> tuple[Any, Any]:
        """Start the next episodes in free rows, as many as the policy has memory for."""
        room = self.most - int((self.playing >= 0).sum())
        count = max(min(len(self.episodes) - self.next, room, int(free.sum())), 0)
        rows = self._rows_for(range(self.next, self.next + count), free)
        starting = self.episodes[self.next : self.next + count]
        self.playing[rows] = np.arange(self.next, self.next + count)
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
        self.length = observation["length"].reshape(-1).astype(np.int64)
        self.prompt_length[rows] = self.length[rows]
        self.offset[rows] = self.sampled[rows] = 0
        self.reward_scale[rows] = 1.0
        for row in rows.tolist():
            self.contexts[row] = ()
        for buffer in (self.policy_mask, self.logprobs, self.rewards, self.versions):
            buffer[rows] = 0
        self.tokens[rows, : self.width] = observation["tokens"][rows]
        if self.action_masks is not None:
            self.action_masks[rows] = _ALL_LEGAL
        for row in rows.tolist():
            if int(self.playing[row]) in self.partial:
                self._restore(row, self.partial[int(self.playing[row])].played)
        self.policy.begin(rows, self._context_seeds(rows))
        self._record_observations(observation, np.isin(np.arange(self.env.num_envs), rows))
        self._check_starts(rows, starting, observation)
        return observation, info.get("action_mask")

    def _rows_for(self, starting: Sequence[int], free: NDArray[np.bool_]) -> NDArray[np.int64]:
        """A free row for each of some episodes, its own where it was interrupted in one."""
        unused = dict.fromkeys(np.flatnonzero(free).tolist())
        own: dict[int, int] = {}
        for index in starting:
            if index in self.partial and self.partial[index].row in unused:
                own[index] = self.partial[index].row
                del unused[own[index]]
        others = iter(unused)
        return np.array([own[index] if index in own else next(others) for index in starting], dtype=np.int64)

    def _restore(self, row: int, played: Trajectory) -> None:
        """Record what was played of an episode before it was interrupted; its row has its last context in view."""
        length = len(played.tokens)
        self.contexts[row] = played.contexts
        self.offset[row] = played.contexts[-1] if played.contexts else 0
        self.prompt_length[row] = played.prompt_length
        self._make_room(int(self.offset[row]) + self.width)
        self.tokens[row, :length] = played.tokens
        self.policy_mask[row, :length] = played.policy_mask
        self.logprobs[row, :length] = played.logprobs
        self.rewards[row, :length] = played.rewards
        self.versions[row, :length] = played.policy_version
        if played.action_masks is not None:
            self._masks(played.action_masks.shape[1])[row, :length] = played.action_masks

    def _context_seeds(self, rows: NDArray[np.int64]) -> NDArray[np.uint64]:
        """The sampling seeds u64[r] of the contexts that rows have in view: an episode's own seed in its first one."""
        seeds = np.array([self.episodes[index].seed for index in self.playing[rows]], dtype=np.uint64)
        # As many numbers were drawn as there are positions before.
        offset = self.offset[rows]
        return np.where(offset == 0, seeds, mix(mix(seeds) ^ mix(offset.astype(np.uint64))))

    def _env_seeds(self, rows: NDArray[np.int64], starting: Sequence[Episode]) -> list[int | None] | None:
        """A reset seed for each row of the environment, None for rows that are not reset; None if there are no seeds."""
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
            prompt = observation["tokens"][row, : self.length[row]].tobytes()
            if self.observations is not None:
                prompt += observation["observation"][row].tobytes()
            if self.starts.setdefault((episode.problem, episode.env_seed), prompt) != prompt:
                raise InvalidArgumentError(
                    f"{type(self.env.unwrapped).__name__} began differently when it was reset twice with seed "
                    f"{episode.env_seed}: an environment must draw all its randomness from the seed of reset(seed=...)"
                )

    def _wait(self, mask: NDArray[np.int8] | None) -> Any:
        """Wait for a verdict: by `wait`, or if a wrapper hides it, by polling with steps that consume no token."""
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
        if ((self.playing >= 0) & ~self.waiting & (action.counts == 0)).any():
            raise InvalidArgumentError(
                "the policy returns no token yet for some rows, but the outermost wrapper of the environment, "
                f"{type(self.env).__name__}, has no step_many and steps all rows: unwrap it, or let the policy wait for all "
                "rows (VLLMConfig(streaming=False))"
            )
        # `step` needs a token for every row: rows that are not played get a legal one.
        unused = 0 if mask is None else mask.argmax(axis=1)
        return self.env.step(np.where(action.counts > 0, action.tokens[:, 0], unused))

    def _keep_masks(self, mask: NDArray[np.int8] | None, action: Action, acting: NDArray[np.bool_]) -> None:
        """Record the candidates of each choice: the tokens the policy kept, or else the legal ones."""
        if mask is None and action.kept is None:
            return
        rows = np.flatnonzero(acting & (action.counts > 0))
        if action.kept is not None:
            packed = action.kept[rows]
        else:
            assert mask is not None
            self._check_width(mask, action, rows)
            packed = np.packbits(mask[rows].astype(bool), axis=1)[:, None]
        masks = self._masks(packed.shape[-1])
        width = masks.shape[1]
        for column in range(packed.shape[1]):
            at = self.offset[rows] + self.length[rows] + column
            fits = (at < width) & (column < action.counts[rows])  # tokens beyond the buffer are never consumed
            masks[rows[fits], at[fits]] = packed[fits, column]

    def _masks(self, size: int) -> NDArray[np.uint8]:
        """The recorded candidates of each token, in `size` bytes each."""
        if self.action_masks is None:
            self.action_masks = np.full((*self.rewards.shape, size), _ALL_LEGAL, dtype=np.uint8)
        return self.action_masks

    def _check_width(self, mask: NDArray[np.int8], action: Action, rows: NDArray[np.int64]) -> None:
        """Check that a policy returns one token at a time where tokens are limited: the mask covers only the next token."""
        width = action.tokens.shape[1]
        if width > 1 and not mask[rows].all():
            raise InvalidArgumentError(
                f"the policy returns {width} tokens at once, but the environment's action mask is that of the next token only: "
                "return one token at a time, or set `Action.kept` to the tokens that each was chosen from"
            )

    def _record(self, action: Action, info: dict[str, Any]) -> None:
        consumed = info["consumed"]
        self.sampled += consumed
        for column in range(action.tokens.shape[1]):
            rows = np.flatnonzero((consumed > column) & (self.playing >= 0))
            at = self.offset[rows] + self.length[rows] + column
            self.tokens[rows, at] = action.tokens[rows, column]
            self.policy_mask[rows, at] = True
            self.logprobs[rows, at] = action.logprobs[rows, column]
            self.rewards[rows, at] += info["rewards"][rows, column]
            self.versions[rows, at] = self.policy.version

    def _correct_rewards(self, reward: NDArray[np.float64], ended: NDArray[np.bool_], info: dict[str, Any]) -> None:
        """Add the difference between the reward of `step` and the sum of the tokens' rewards to the last token."""
        paid = info["rewards"].sum(axis=1)
        if (reward == paid).all():
            return
        consumed = info["consumed"]
        differs = ~np.isclose(reward, paid, rtol=_ROUNDING, atol=0, equal_nan=True)
        # NaN stays as it is, so that the trajectory reports it; a row that waits has no token to add the difference to.
        differs &= np.isfinite(paid) & ((consumed > 0) | ended | (paid != 0))
        rows = np.flatnonzero(differs & (self.playing >= 0))
        self.rewards[rows, self.offset[rows] + self.length[rows] + consumed[rows] - 1] += (reward - paid)[rows]
        whole = rows[paid[rows] != 0]
        self.reward_scale[whole] = reward[whole] / paid[whole]

    def _record_inserted(self, observation: Any, info: dict[str, Any]) -> None:
        """Record what the environment appended, and where that begins a new context."""
        before, self.length = self.length + info["consumed"], observation["length"].reshape(-1).astype(np.int64)
        if "inserted" not in info:
            return
        begins = info.get("new_context", np.zeros(self.env.num_envs, dtype=bool)) & (self.playing >= 0)
        if begins.any():
            self._begin_contexts(np.flatnonzero(begins), before)
        for row in np.flatnonzero(info["inserted"] * (self.playing >= 0)).tolist():
            start, end = self.length[row] - info["inserted"][row], self.length[row]
            said = observation["tokens"][row, start:end]
            self.tokens[row, self.offset[row] + start : self.offset[row] + end] = said

    def _begin_contexts(self, rows: NDArray[np.int64], before: NDArray[np.int64]) -> None:
        """Begin a new context in some rows, whose last one had `before` tokens i64[b]."""
        self.offset[rows] += before[rows]
        self._make_room(int(self.offset[rows].max()) + self.width)
        self.policy.begin(rows, self._context_seeds(rows))
        for row in rows.tolist():
            self.contexts[row] += (int(self.offset[row]),)

    def _make_room(self, width: int) -> None:
        """Widen the buffers to episodes of so many tokens."""
        missing = width - self.tokens.shape[1]
        if missing <= 0:
            return
        for name in ("tokens", "policy_mask", "logprobs", "rewards", "versions", "action_masks", "observations"):
            values = getattr(self, name)
            if values is not None:
                filling = _ALL_LEGAL if name == "action_masks" else 0
                wider = [(0, 0), (0, missing), *[(0, 0)] * (values.ndim - 2)]
                setattr(self, name, np.pad(values, wider, constant_values=filling))

    def _record_rewards(self, info: dict[str, Any]) -> None:
        """Add a reward that arrives without a token, of a deferred verdict or reply, to the policy's last token."""
        rows = np.flatnonzero((info["consumed"] == 0) & (info["rewards"][:, 0] != 0) & (self.playing >= 0))
        inserted = info["inserted"][rows] if "inserted" in info else 0
        self.rewards[rows, self.offset[rows] + self.length[rows] - inserted - 1] += info["rewards"][rows, 0]

    def _record_observations(self, observation: Any, shown: NDArray[np.bool_]) -> None:
        """Record the vectors of the rows bool[b] that were reset or stepped, after their last token."""
        if self.observations is not None:
            self.observations[shown, self.offset[shown] + self.length[shown] - 1] = observation["observation"][shown]

    def _credit(self, row: int, length: int, info: dict[str, Any]) -> None:
        """Move the parts of the last reward that belong to earlier tokens; the return does not change."""
        if "token_scores" in info and info["_token_scores"][row]:
            for position, amount in info["token_scores"][row]:
                moved = amount * self.reward_scale[row]  # a wrapper that scales a reward scales its parts
                self.rewards[row, self.offset[row] + position] += moved
                self.rewards[row, length - 1] -= moved
        self.reward_scale[row] = 1.0

    def _finish(
        self, row: int, observation: Any, terminated: bool, truncated: bool, info: dict[str, Any]
    ) -> tuple[int, Trajectory]:
        """Free a row, and return the index of its episode and the trajectory."""
        self._credit(row, int(self.offset[row] + self.length[row]), info)
        said = {name: info[name][row] for name in ("problem_id", "verdict", "completion")}
        index, trajectory = self._free(row, observation, terminated=terminated, truncated=truncated, **said)
        return index, trajectory

    def _interrupt(self, row: int, observation: Any) -> tuple[int, PartialEpisode]:
        """Free a row whose episode is not over, and return the episode's index, and what was played with the state."""
        streams = require_states(self.env).streams
        problem, state = streams.problem(row), streams.get_state(row)
        assert problem is not None
        said = {"problem_id": problem.id, "verdict": None, "completion": ""}
        index, played = self._free(row, observation, terminated=False, truncated=False, **said)
        before = self.partial.get(index)
        episode = self.episodes[index] if before is None else before.episode
        return index, PartialEpisode(replace(episode, problem=state.problem_index), played, state, row)

    def _free(self, row: int, observation: Any, **said: Any) -> tuple[int, Trajectory]:
        """Free a row, and return the index of its episode, and what was recorded with what is said of it."""
        length = int(self.offset[row] + self.length[row])
        self.tokens[row, self.offset[row] : length] = observation["tokens"][row, : self.length[row]]
        index = int(self.playing[row])
        self.playing[row] = -1
        trajectory = Trajectory(
            group=self.episodes[index].group,
            prompt_length=int(self.prompt_length[row]),
            tokens=self.tokens[row, :length].copy(),
            policy_mask=self.policy_mask[row, :length].copy(),
            logprobs=self.logprobs[row, :length].copy(),
            rewards=self.rewards[row, :length].copy(),
            policy_version=self.versions[row, :length].copy(),
            action_masks=None if self.action_masks is None else self.action_masks[row, :length].copy(),
            observations=None if self.observations is None else self.observations[row, :length].copy(),
            problem=self.episodes[index].problem,
            seed=int(self.episodes[index].seed),
            contexts=self.contexts[row],
            **said,
        )
        return index, trajectory
