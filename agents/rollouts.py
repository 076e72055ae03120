"""The one interaction loop: a policy acts in an environment until a list of episodes is done.

It uses `reset` and `step_many` of a vector environment with the observations, options and information of `TokenVectorEnv`,
and `step` where the outermost wrapper has no `step_many`. Rows that end are refilled at once with the next episode.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from gymnasium.vector import VectorEnv
from numpy.typing import NDArray

from agents.adapter import with_token_info
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
    """Decides the policy's sampling, together with the observations alone."""


def rollout(
    env: VectorEnv[Any, Any, Any],
    policy: Policy,
    episodes: Sequence[Episode],
    *,
    on_episode: Callable[[Trajectory], None] | None = None,
) -> list[Trajectory]:
    """Play episodes, as many at once as the environment has rows.

    Args:
        env: A vector environment with `AutoresetMode.DISABLED`; one built with `copy=False` saves time.
        policy: Who acts.
        episodes: What is played.
        on_episode: Called with each trajectory as it ends.

    Returns:
        The trajectories in the order of `episodes`.

    Raises:
        InvalidArgumentError: If the environment can't be played; see `with_token_info`.
    """
    recorder = _Recorder(with_token_info(env), policy, episodes)
    for trajectory in recorder.play():
        if on_episode is not None:
            on_episode(trajectory)
    return [recorder.done[index] for index in range(len(episodes))]


class _Recorder:
    """Plays episodes and writes down what each token came with, by position in the row's buffer."""

    def __init__(self, env: VectorEnv[Any, Any, Any], policy: Policy, episodes: Sequence[Episode]) -> None:
        self.env = env
        self.policy = policy
        self.episodes = episodes
        self.done: dict[int, Trajectory] = {}
        self.next = 0
        rows = env.num_envs
        self.playing = np.full(rows, -1)  # index of the row's episode, -1 for none
        self.waiting = np.zeros(rows, dtype=bool)  # the episode is over and its verdict awaited
        width = env.single_observation_space["tokens"].shape[0]  # type: ignore[index] # a Dict space
        self.prompt_length = np.zeros(rows, dtype=np.int64)
        self.length = np.zeros(rows, dtype=np.int64)
        self.policy_mask = np.zeros((rows, width), dtype=bool)
        self.logprobs = np.zeros((rows, width), dtype=np.float32)
        self.rewards = np.zeros((rows, width))
        self.versions = np.zeros((rows, width), dtype=np.int32)
        self.action_masks: NDArray[np.uint8] | None = None

    def play(self) -> Iterator[Trajectory]:
        observation, mask = self._refill(np.ones(self.env.num_envs, dtype=bool))
        while (self.playing >= 0).any():
            acting = (self.playing >= 0) & ~self.waiting
            if acting.any():
                action = self.policy.act(observation, action_mask=mask, rows=acting)
                self._keep_masks(mask, action, acting)
                observation, _, terminated, truncated, info = self._step(action)
                self._record(action, info)
            else:
                observation, _, terminated, truncated, info = self.env.unwrapped.wait(every=False)  # type: ignore[attr-defined]
            self.length = observation["length"].astype(np.int64)
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
        """Start the next episodes in free rows, as far as there are any."""
        rows = np.flatnonzero(free)[: len(self.episodes) - self.next]
        starting = self.episodes[self.next : self.next + len(rows)]
        self.playing[rows] = np.arange(self.next, self.next + len(rows))
        self.next += len(rows)
        problems = np.full(self.env.num_envs, -1, dtype=np.int64)
        problems[rows] = [episode.problem for episode in starting]
        options: dict[str, Any] = {"problems": problems}
        if len(rows) < self.env.num_envs:
            options["reset_mask"] = np.isin(np.arange(self.env.num_envs), rows)
        observation, info = self.env.reset(options=options)
        self.policy.begin(rows, np.array([episode.seed for episode in starting], dtype=np.uint64))
        self.length = observation["length"].astype(np.int64)
        self.prompt_length[rows] = self.length[rows]
        for buffer in (self.policy_mask, self.logprobs, self.rewards, self.versions):
            buffer[rows] = 0
        return observation, info.get("action_mask")

    def _step(self, action: Action) -> Any:
        if hasattr(self.env, "step_many"):
            return self.env.step_many(action.tokens, action.counts)
        if action.tokens.shape[1] != 1:
            raise InvalidArgumentError(
                f"the policy gives {action.tokens.shape[1]} tokens at once, and the outermost wrapper of the environment, "
                f"{type(self.env).__name__}, has no step_many: unwrap it, or use a policy that gives one token"
            )
        return self.env.step(action.tokens[:, 0])

    def _keep_masks(self, mask: NDArray[np.int8] | None, action: Action, acting: NDArray[np.bool_]) -> None:
        """Note which tokens each was chosen from: what the policy kept, or else the legal ones."""
        if mask is None and action.kept is None:
            return
        rows = np.flatnonzero(acting)
        if action.kept is not None:
            packed = action.kept[rows]
        else:
            assert mask is not None
            packed = np.packbits(mask[rows].astype(bool), axis=1)[:, None]
        if self.action_masks is None:
            self.action_masks = np.zeros((*self.rewards.shape, packed.shape[-1]), dtype=np.uint8)
        width = self.action_masks.shape[1]
        for column in range(packed.shape[1]):
            at = self.length[rows] + column
            fits = at < width  # what is beyond the buffer is never consumed
            self.action_masks[rows[fits], at[fits]] = packed[fits, column]

    def _record(self, action: Action, info: dict[str, Any]) -> None:
        consumed = info["consumed"]
        for column in range(action.tokens.shape[1]):
            rows = np.flatnonzero((consumed > column) & (self.playing >= 0))
            at = self.length[rows] + column
            self.policy_mask[rows, at] = True
            self.logprobs[rows, at] = action.logprobs[rows, column]
            self.rewards[rows, at] += info["rewards"][rows, column]
            self.versions[rows, at] = self.policy.version

    def _record_rewards(self, info: dict[str, Any]) -> None:
        """A verdict that was awaited comes without a token: it belongs to the last one."""
        rows = np.flatnonzero((info["consumed"] == 0) & (info["rewards"][:, 0] != 0) & (self.playing >= 0))
        self.rewards[rows, self.length[rows] - 1] += info["rewards"][rows, 0]

    def _finish(
        self, row: int, observation: Any, terminated: bool, truncated: bool, info: dict[str, Any]
    ) -> Trajectory:
        length = int(self.length[row])
        masks = None if self.action_masks is None else self.action_masks[row, :length].copy()
        trajectory = Trajectory(
            problem_id=info["problem_id"][row],
            group=self.episodes[self.playing[row]].group,
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
        self.done[int(self.playing[row])] = trajectory
        self.playing[row] = -1
        return trajectory
