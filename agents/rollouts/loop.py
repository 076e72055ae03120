"""The one interaction loop: a policy acts in an environment until a list of episodes is done.

It uses `reset` and `step_many` of a vector environment with the observations, options and information of `TokenVectorEnv`,
and `step` where the outermost wrapper has no `step_many`. Rows that end are refilled at once with the next episode.

A verdict may say that parts of its score belong to earlier tokens (`Verdict.token_scores`). The environment pays the score as
a whole, with the last token, since the steps before are over; a trajectory has each part at its token.

What `step` returns is the reward, and `info["rewards"]` says only which tokens it came with: where they differ, since a
wrapper changed the one and not the other, the difference belongs to the last token of the step.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from gymnasium.vector import VectorEnv
from numpy.typing import NDArray

from agents.rollouts.vector_adapter import with_token_info
from agents.types import Action, Policy, Trajectory
from verifiers import InvalidArgumentError


@dataclass(frozen=True, slots=True)
class Episode:
    """One episode to be played."""

    problem: int
    """The problem's index, -1 to let the environment draw it."""
    group: int
    """Carried into the trajectory."""
    seed: int
    """Decides the policy's sampling, together with the observations alone; u64."""
    env_seed: int | None = None
    """What the row is reset with, so that an environment that draws the problem itself draws the same again; None for an
    environment that goes on drawing. Episodes with one problem and one `env_seed` begin alike."""

    def __post_init__(self) -> None:
        if not _is_u64(self.seed):
            raise InvalidArgumentError(
                f"an episode's seed must be a whole number of 64 bits, 0 to 2**64 - 1, got {self.seed!r}: take it modulo 2**64"
            )


def _is_u64(value: object) -> bool:
    return isinstance(value, (int, np.integer)) and bool(0 <= value < 2**64)


_ALL_LEGAL = 255
"""Eight bits of a packed mask."""
_POLL_S = 1e-3
"""Between two looks for a verdict, where a wrapper hides `wait`."""
_ROUNDING = 1e-6
"""Relative, of a reward that a wrapper returns in float32."""


def rollout(
    env: VectorEnv[Any, Any, Any],
    policy: Policy,
    episodes: Sequence[Episode],
    *,
    on_episode: Callable[[Trajectory], None] | None = None,
) -> list[Trajectory]:
    """Play episodes, as many at once as the environment has rows and the policy has room for.

    Args:
        env: A vector environment with `AutoresetMode.DISABLED`; one built with `copy=False` saves time.
        policy: Who acts. One that has `rows_at_once`, as `CausalLMPolicy` does, is given no more rows than that.
        episodes: What is played.
        on_episode: Called with each trajectory as it ends.

    Returns:
        The trajectories in the order of `episodes`.

    Raises:
        InvalidArgumentError: If the environment can't be played (see `with_token_info`), or begins differently when it is
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
    """Play episodes as `rollout` does, and give each trajectory as it ends, with its index in `episodes`."""
    return _Recorder(with_token_info(env), policy, episodes).play()


def _check_vocabulary(env: VectorEnv[Any, Any, Any], policy: Policy) -> None:
    """Refuse a policy of other tokens than the environment's, as far as their number tells."""
    tokens, known = int(env.single_action_space.n), getattr(policy, "vocab_size", None)  # type: ignore[attr-defined] # Discrete
    if known is not None and known > tokens:
        raise InvalidArgumentError(
            f"the policy chooses among {known} tokens, and the environment has {tokens}: give both the same tokenizer, and the "
            "policy its vocab_size"
        )


class _Recorder:
    """Plays episodes and writes down what each token came with, by position in the row's buffer."""

    def __init__(self, env: VectorEnv[Any, Any, Any], policy: Policy, episodes: Sequence[Episode]) -> None:
        _check_vocabulary(env, policy)
        self.env = env
        self.policy = policy
        self.episodes = episodes
        self.next = 0
        rows = env.num_envs
        self.playing = np.full(rows, -1)  # index of the row's episode, -1 for none
        self.waiting = np.zeros(rows, dtype=bool)  # the episode is over and its verdict awaited
        width = env.single_observation_space["tokens"].shape[0]  # type: ignore[index] # a Dict space
        at_once = getattr(policy, "rows_at_once", None)  # of policies whose memory is limited
        self.most = (None if at_once is None else at_once(width)) or rows
        self.prompt_length = np.zeros(rows, dtype=np.int64)
        self.length = np.zeros(rows, dtype=np.int64)
        self.policy_mask = np.zeros((rows, width), dtype=bool)
        self.logprobs = np.zeros((rows, width), dtype=np.float32)
        self.rewards = np.zeros((rows, width))
        self.reward_scale = np.ones(rows)  # of the last reward, by what `step` returned
        self.versions = np.zeros((rows, width), dtype=np.int32)
        self.action_masks: NDArray[np.uint8] | None = None
        self.starts: dict[tuple[int, int], bytes] = {}  # the prompt of each problem and seed of the environment

    def play(self) -> Iterator[tuple[int, Trajectory]]:
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
            self.length = observation["length"].reshape(-1).astype(np.int64)
            self._record_rewards(info)
            mask = info.get("action_mask")
            self.waiting = np.asarray(info.get("pending", np.zeros(self.env.num_envs, dtype=bool)))
            ended = (terminated | truncated) & (self.playing >= 0)
            if ended.any():
                for row in np.flatnonzero(ended).tolist():
                    yield self._finish(row, observation, bool(terminated[row]), bool(truncated[row]), info)
                if self.next < len(self.episodes):
                    observation, mask = self._refill(ended)

    def _refill(self, free: NDArray[np.bool_]) -> tuple[Any, Any]:
        """Start the next episodes in free rows, as far as there are any and the policy has room for them."""
        room = self.most - int((self.playing >= 0).sum())
        rows = np.flatnonzero(free)[: max(min(len(self.episodes) - self.next, room), 0)]
        starting = self.episodes[self.next : self.next + len(rows)]
        self.playing[rows] = np.arange(self.next, self.next + len(rows))
        self.next += len(rows)
        problems = np.full(self.env.num_envs, -1, dtype=np.int64)
        problems[rows] = [episode.problem for episode in starting]
        options: dict[str, Any] = {"problems": problems}
        if len(rows) < self.env.num_envs:
            options["reset_mask"] = np.isin(np.arange(self.env.num_envs), rows)
        seeds = self._env_seeds(rows, starting)
        observation, info = self.env.reset(seed=seeds, options=options)  # type: ignore[arg-type] # a list may hold None
        self.policy.begin(rows, np.array([episode.seed for episode in starting], dtype=np.uint64))
        self.length = observation["length"].reshape(-1).astype(np.int64)
        self.prompt_length[rows] = self.length[rows]
        for buffer in (self.policy_mask, self.logprobs, self.rewards, self.versions):
            buffer[rows] = 0
        if self.action_masks is not None:
            self.action_masks[rows] = _ALL_LEGAL
        self._check_starts(rows, starting, observation)
        return observation, info.get("action_mask")

    def _env_seeds(self, rows: NDArray[np.int64], starting: Sequence[Episode]) -> list[int | None] | None:
        """One seed for each row of the environment, None for rows that are not reset; None altogether if there is none."""
        if all(episode.env_seed is None for episode in starting):
            return None
        seeds: list[int | None] = [None] * self.env.num_envs
        for row, episode in zip(rows.tolist(), starting, strict=True):
            seeds[row] = episode.env_seed
        return seeds

    def _check_starts(self, rows: NDArray[np.int64], starting: Sequence[Episode], observation: Any) -> None:
        """Members of a group are compared, so an environment that ignores its seed must not pass unnoticed."""
        for row, episode in zip(rows.tolist(), starting, strict=True):
            if episode.env_seed is None:
                continue
            prompt = observation["tokens"][row, : self.length[row]].tobytes()
            if self.starts.setdefault((episode.problem, episode.env_seed), prompt) != prompt:
                raise InvalidArgumentError(
                    f"{type(self.env.unwrapped).__name__} began differently when it was reset twice with seed "
                    f"{episode.env_seed}: an environment draws all that is random from the seed of reset(seed=...)"
                )

    def _wait(self, mask: NDArray[np.int8] | None) -> Any:
        """Give what comes once a verdict is there: from `wait`, or, where a wrapper hides it, from steps that move no row."""
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
                f"the policy gives {action.tokens.shape[1]} tokens at once, and the outermost wrapper of the environment, "
                f"{type(self.env).__name__}, has no step_many: unwrap it, or use a policy that gives one token"
            )
        # `step` has a token for every row: those that are not played get a legal one.
        unused = 0 if mask is None else mask.argmax(axis=1)
        return self.env.step(np.where(action.counts > 0, action.tokens[:, 0], unused))

    def _keep_masks(self, mask: NDArray[np.int8] | None, action: Action, acting: NDArray[np.bool_]) -> None:
        """Note which tokens each was chosen from: what the policy kept, or else the legal ones."""
        if mask is None and action.kept is None:
            return
        rows = np.flatnonzero(acting)
        if action.kept is not None:
            packed = action.kept[rows]
        else:
            assert mask is not None
            self._check_width(mask, action, rows)
            packed = np.packbits(mask[rows].astype(bool), axis=1)[:, None]
        if self.action_masks is None:
            self.action_masks = np.full((*self.rewards.shape, packed.shape[-1]), _ALL_LEGAL, dtype=np.uint8)
        width = self.action_masks.shape[1]
        for column in range(packed.shape[1]):
            at = self.length[rows] + column
            fits = at < width  # what is beyond the buffer is never consumed
            self.action_masks[rows[fits], at[fits]] = packed[fits, column]

    def _check_width(self, mask: NDArray[np.int8], action: Action, rows: NDArray[np.int64]) -> None:
        """The environment's mask is that of the next token only."""
        width = action.tokens.shape[1]
        if width > 1 and not mask[rows].all():
            raise InvalidArgumentError(
                f"the policy gives {width} tokens at once, and the environment limits tokens, of which only the next one's "
                "limits are known: give one token at a time, or say in `Action.kept` what each was chosen from"
            )

    def _record(self, action: Action, info: dict[str, Any]) -> None:
        consumed = info["consumed"]
        for column in range(action.tokens.shape[1]):
            rows = np.flatnonzero((consumed > column) & (self.playing >= 0))
            at = self.length[rows] + column
            self.policy_mask[rows, at] = True
            self.logprobs[rows, at] = action.logprobs[rows, column]
            self.rewards[rows, at] += info["rewards"][rows, column]
            self.versions[rows, at] = self.policy.version

    def _correct_rewards(self, reward: NDArray[np.float64], ended: NDArray[np.bool_], info: dict[str, Any]) -> None:
        """Put the difference between what `step` returned and what the tokens were paid on the last of them."""
        paid = info["rewards"].sum(axis=1)
        if (reward == paid).all():
            return
        consumed = info["consumed"]
        differs = ~np.isclose(reward, paid, rtol=_ROUNDING, atol=0, equal_nan=True)
        # What is no number stays as it is, for the trajectory to name it; a row that waits has no token to put it on.
        differs &= np.isfinite(paid) & ((consumed > 0) | ended)
        rows = np.flatnonzero(differs & (self.playing >= 0))
        self.rewards[rows, self.length[rows] + consumed[rows] - 1] += (reward - paid)[rows]
        whole = rows[paid[rows] != 0]
        self.reward_scale[whole] = reward[whole] / paid[whole]

    def _record_rewards(self, info: dict[str, Any]) -> None:
        """A verdict that was awaited comes without a token: it belongs to the last one."""
        rows = np.flatnonzero((info["consumed"] == 0) & (info["rewards"][:, 0] != 0) & (self.playing >= 0))
        self.rewards[rows, self.length[rows] - 1] += info["rewards"][rows, 0]

    def _credit(self, row: int, length: int, info: dict[str, Any]) -> None:
        """Move the parts of the last reward that belong to earlier tokens there; the return stays what it was."""
        if "token_scores" in info and info["_token_scores"][row]:
            for position, amount in info["token_scores"][row]:
                moved = amount * self.reward_scale[row]  # a wrapper that scales a reward scales its parts
                self.rewards[row, position] += moved
                self.rewards[row, length - 1] -= moved
        self.reward_scale[row] = 1.0

    def _finish(
        self, row: int, observation: Any, terminated: bool, truncated: bool, info: dict[str, Any]
    ) -> tuple[int, Trajectory]:
        """The index of the episode in a row, which is free then, and its trajectory."""
        length = int(self.length[row])
        self._credit(row, length, info)
        masks = None if self.action_masks is None else self.action_masks[row, :length].copy()
        index = int(self.playing[row])
        self.playing[row] = -1
        trajectory = Trajectory(
            problem_id=info["problem_id"][row],
            group=self.episodes[index].group,
            prompt_length=int(self.prompt_length[row]),
            terminated=terminated,
            truncated=truncated,
            verdict=info["verdict"][row],
            completion=info["completion"][row],
            tokens=observation["tokens"][row, :length].copy(),
            policy_mask=self.policy_mask[row, :length].copy(),
            logprobs=self.logprobs[row, :length].copy(),
            rewards=self.rewards[row, :length].copy(),
            policy_version=self.versions[row, :length].copy(),
            action_masks=masks,
        )
        return index, trajectory
