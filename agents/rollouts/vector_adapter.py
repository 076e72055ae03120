"""Adapter that adds to other vector environments the `info` that a rollout needs.

`TokenVectorEnv` reports for each row the consumed tokens, the reward of each, and how an episode ended. For any other
Gymnasium environment with a discrete action and the token observation, this follows from `reset` and `step` alone: one
token was consumed, the reward is that token's, and everything else is unknown.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, VectorEnv, VectorWrapper
from numpy.typing import NDArray

import rlvr_envs
from agents.rollouts.action_tokens import ActionTokens, shows_vectors
from verifiers import InvalidArgumentError


def with_token_info(env: VectorEnv[Any, Any, Any]) -> VectorEnv[Any, Any, Any]:
    """Wrap an environment for a rollout, if necessary."""
    if not isinstance(env, VectorEnv):
        raise InvalidArgumentError(
            f"expected a vector environment, got {type(env).__name__}: build it with gym.make_vec, or wrap single ones in "
            "gymnasium.vector.SyncVectorEnv([...], autoreset_mode=AutoresetMode.DISABLED)"
        )
    mode = env.metadata.get("autoreset_mode")
    if mode is not AutoresetMode.DISABLED:
        raise InvalidArgumentError(
            f"rollout resets rows itself and needs an environment whose metadata has AutoresetMode.DISABLED, got {mode}; "
            "build it with gym.make_vec(id, num_envs=...), without vectorization_mode"
        )
    if isinstance(env.unwrapped, rlvr_envs.TokenVectorEnv):
        return env
    if isinstance(env, TokenInfo):
        return env
    if shows_vectors(env):
        return TokenInfo(ActionTokens(env))
    _check_spaces(env)
    return TokenInfo(env)


def _check_spaces(env: VectorEnv[Any, Any, Any]) -> None:
    observation, action = env.single_observation_space, env.single_action_space
    if not isinstance(action, spaces.Discrete):
        raise InvalidArgumentError(
            f"agents choose among numbered actions, Discrete(n), and this environment has {action}: other actions, such as "
            "continuous ones, are not supported"
        )
    fits = isinstance(observation, spaces.Dict) and {"tokens", "length"} <= observation.keys()
    if not fits or action.start != 0:
        raise InvalidArgumentError(
            "expected the observation Dict(tokens=Box((l,), int32), length=Box((1,), int32)) and the action Discrete(v), got "
            f"{observation} and {action}; other observations are read as vectors where actions are discrete"
        )


def num_problems(env: VectorEnv[Any, Any, Any]) -> int | None:
    """The number of problems of an environment; None if it reports no number and draws problems itself."""
    size = getattr(env.unwrapped, "num_problems", None)
    return None if size is None else int(size)


class TokenInfo(VectorWrapper[Any, Any, Any, Any, Any]):
    """Adds the fields that a rollout needs to `info`, and ignores rows that ended until they are reset."""

    def __init__(self, env: VectorEnv[Any, Any, Any]) -> None:
        super().__init__(env)
        self._begun = False
        self._ended = np.ones(env.num_envs, dtype=bool)  # rows that were never reset count as ended
        self._masks: NDArray[np.int8] | None = None

    def reset(self, *, seed: Any = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Reset all rows, or the rows in `reset_mask`.

        The option `problems` is passed on if the environment has `num_problems`; otherwise problems can't be chosen.
        """
        given = options or {}
        mask = given.get("reset_mask")
        rows = np.ones(self.num_envs, dtype=bool) if mask is None else mask
        # The first time reset all rows, since a row that was never reset has no observation.
        passed: dict[str, Any] = {"reset_mask": rows.copy() if self._begun else np.ones_like(rows)}
        self._begun = True
        if "problems" in given and num_problems(self.env) is not None:
            passed["problems"] = given["problems"]
        observation, info = self.env.reset(seed=seed, options=passed)
        self._ended &= ~rows
        self._keep_masks(info)
        return observation, self._complete(info, np.zeros(self.num_envs, dtype=np.int64), np.zeros(self.num_envs))

    def step(self, actions: NDArray[np.int64]) -> Any:
        """Step every row; rows that ended play an unused episode, since a vector environment steps all rows."""
        resting = self._ended.copy()
        if resting.any():
            _, info = self.env.reset(options={"reset_mask": resting.copy()})
            self._keep_masks(info)
            actions = np.where(resting, self._some_action(), actions)
        observation, reward, terminated, truncated, info = self.env.step(actions)
        self._keep_masks(info)
        terminated, truncated = terminated & ~resting, truncated & ~resting
        self._ended |= terminated | truncated
        reward = np.where(resting, 0.0, reward)
        return observation, reward, terminated, truncated, self._complete(info, (~resting).astype(np.int64), reward)

    def _keep_masks(self, info: dict[str, Any]) -> None:
        if "action_mask" not in info:
            return
        said = np.asarray(info.get("_action_mask", np.ones(self.num_envs, dtype=bool)))
        before = np.ones_like(info["action_mask"]) if self._masks is None else self._masks
        self._masks = np.where(said[:, None], info["action_mask"], before)

    def _some_action(self) -> NDArray[np.int64]:
        """A legal action for each row."""
        none = np.zeros(self.num_envs, dtype=np.int64)
        return none if self._masks is None else self._masks.argmax(axis=1)

    def _complete(
        self, info: dict[str, Any], consumed: NDArray[np.int64], reward: NDArray[np.float64]
    ) -> dict[str, Any]:
        unknown = {"problem_id": "", "completion": "", "verdict": None}
        said = {name: self._row_values(info, name, default) for name, default in unknown.items()}
        masks = {} if self._masks is None else {"action_mask": self._masks.copy()}
        return {**info, **said, **masks, "consumed": consumed, "rewards": reward[:, None].astype(np.float64)}

    def _row_values(self, info: dict[str, Any], name: str, default: object) -> list[Any]:
        said = info.get(f"_{name}", np.zeros(self.num_envs, dtype=bool))
        return [info[name][row] if said[row] else default for row in range(self.num_envs)]
