"""Adapter that presents a Gymnasium environment with discrete actions, such as CartPole-v1, as an environment of tokens.

The tokens are the actions so far, after one token for the start; the observation itself is given in addition, as a vector. So
rollouts, batches and losses are those of token environments, and an agent learns with a policy that reads the vectors, such as
`agents.MLPPolicy`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.spaces.utils import flatten, flatten_space
from gymnasium.vector import VectorEnv, VectorWrapper
from gymnasium.vector.utils import iterate
from gymnasium.wrappers import TimeLimit
from numpy.typing import NDArray

import rlvr_envs
from verifiers import InvalidArgumentError


def shows_vectors(env: VectorEnv[Any, Any, Any]) -> bool:
    """Whether an environment has discrete actions and observations that are not tokens but can be made vectors."""
    observation, action = env.single_observation_space, env.single_action_space
    tokens = isinstance(observation, spaces.Dict) and "tokens" in observation.spaces
    return not tokens and isinstance(action, spaces.Discrete) and isinstance(flatten_space(observation), spaces.Box)


class ActionTokens(VectorWrapper[Any, Any, Any, Any, Any]):
    """Shows each row's actions as tokens i32[b l], and the row's observation as a vector f32[b d] named `observation`.

    Vectors are made as by `gymnasium.spaces.utils.flatten`: arrays are flattened, and a choice among n becomes n numbers, one
    of which is 1.

    Raises:
        InvalidArgumentError: If the environment has no time limit, so that an episode may never end.
    """

    def __init__(self, env: VectorEnv[Any, Any, Any]) -> None:
        super().__init__(env)
        self._inner = env.single_observation_space
        size = flatten_space(self._inner).shape[0]  # type: ignore[index] # of a Box
        actions = env.single_action_space
        assert isinstance(actions, spaces.Discrete)
        self._first = int(actions.start)
        self.single_action_space = spaces.Discrete(int(actions.n))
        width = 1 + _time_limit(env)
        self.single_observation_space = spaces.Dict(
            tokens=spaces.Box(0, int(actions.n) - 1, (width,), np.int32),
            length=spaces.Box(1, width, (1,), np.int32),
            observation=spaces.Box(-np.inf, np.inf, (size,), np.float32),
        )
        self._tokens = np.zeros((env.num_envs, width), dtype=np.int32)
        self._length = np.ones((env.num_envs, 1), dtype=np.int32)

    def reset(self, *, seed: Any = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Reset all rows, or the rows in `reset_mask`."""
        mask = (options or {}).get("reset_mask")
        rows = np.ones(self.num_envs, dtype=bool) if mask is None else mask.copy()
        observation, info = self.env.reset(seed=seed, options=options)
        self._tokens[rows], self._length[rows] = 0, 1
        return self._shown(observation), info

    def step(self, actions: NDArray[np.int64]) -> Any:
        """Step every row."""
        observation, reward, terminated, truncated, info = self.env.step(actions + self._first)
        self._tokens[np.arange(self.num_envs), self._length[:, 0]] = actions
        self._length += 1
        return self._shown(observation), reward, terminated, truncated, info

    def _shown(self, observation: Any) -> dict[str, NDArray[Any]]:
        if isinstance(self._inner, spaces.Box):
            vectors = observation.reshape(self.num_envs, -1)
        else:
            rows = iterate(self.env.observation_space, observation)
            vectors = np.stack([np.asarray(flatten(self._inner, row)) for row in rows])
        return {"tokens": self._tokens, "length": self._length.copy(), "observation": vectors.astype(np.float32)}


def _time_limit(env: VectorEnv[Any, Any, Any]) -> int:
    """The number of steps after which episodes are truncated."""
    specs = [env.spec, *(env.get_attr("spec") if hasattr(env, "get_attr") else ())]
    limits = [spec.max_episode_steps for spec in specs if spec is not None and spec.max_episode_steps is not None]
    for row in getattr(env.unwrapped, "envs", ()):
        limits += [layer._max_episode_steps for layer in _layers(row) if isinstance(layer, TimeLimit)]
        limits += [row.unwrapped.max_steps] if isinstance(row.unwrapped, rlvr_envs.StateEnv) else []
    if not limits:
        raise InvalidArgumentError(
            "episodes are played to their end, and this environment has no time limit to ensure an end: register it with "
            "max_episode_steps, or wrap it in gymnasium.wrappers.TimeLimit"
        )
    return int(max(limits))


def _layers(env: gymnasium.Env[Any, Any]) -> Iterator[gymnasium.Env[Any, Any]]:
    """An environment's wrappers, the outermost first, and the environment itself."""
    while isinstance(env, gymnasium.Wrapper):
        yield env
        env = env.env
    yield env
