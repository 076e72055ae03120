"""`StateEnv`: a finite decision process as a plain Gymnasium environment, with numbers for states and actions."""

from __future__ import annotations

import dataclasses
import operator
from collections.abc import Mapping
from typing import Any, ClassVar, Protocol

import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.error import ResetNeeded

from rlvr_envs.procedural.base import require_whole
from rlvr_envs.token_env import check_options
from rlvr_envs.types import Dataset, Info
from rlvr_envs.worlds.process import Process
from rlvr_envs.worlds.process_data import check_budget
from verifiers import InvalidArgumentError, unknown_argument, unknown_name


class StateDataset(Dataset, Protocol):
    """Problems that are episodes of one finite decision process."""

    @property
    def process(self) -> Process:
        """The decision process; every problem is an episode of it."""
        ...

    @property
    def max_new_tokens(self) -> int:
        """The default number of actions after which an episode is truncated."""
        ...

    @property
    def starts(self) -> Mapping[int, float]:
        """The probability that a problem drawn uniformly starts in each state; states that are left out have probability 0."""
        ...

    def start(self, index: int) -> int:
        """The state in which a problem starts."""
        ...

    def luck(self, index: int) -> int:
        """The seed of the chance events in a problem."""
        ...


class StateEnv(gymnasium.Env[np.int64, np.int64]):
    """A token environment's finite decision process as a plain environment.

    Problems, rewards, ends of episodes and chance events are the same as in the token environment, but observations are state
    numbers instead of tokens. `process` is the table of transitions, and `rlvr_envs.exact.state_mdp(env)` returns this table as
    arrays.

    ## Action Space
    `Discrete(a)`: the actions, in the order of `process.actions`.

    ## Observation Space
    `Discrete(s)`: the number of the state; `process.states` holds the text of each state.

    ## Starting State
    The start of a problem, drawn uniformly from the data set, or chosen with `reset(options={"problem": index})`.

    ## Episode End
    Termination: as in the token environment. Truncation: `max_steps` actions were made without termination.

    ## Information
    `reset` gives `problem_id` and `problem_index`. In bandits, `step` gives `regret`: the best action's expected reward minus
    the expected reward of the chosen action.

    ## Arguments
    `split`, `max_steps` (which is `max_new_tokens` in the token environment), and the arguments of the data set.

    ## Version History
    v0: first version.
    """

    metadata: ClassVar[dict[str, Any]] = {"render_modes": ["ansi"], "render_fps": 30}  # type: ignore[misc] # constant here
    problems: ClassVar[type[Any]]
    """The class of the data set, a `StateDataset`."""

    def __init__(self, *, render_mode: str | None = None, max_steps: int | None = None, **options: Any) -> None:
        if render_mode not in (None, "ansi"):
            raise unknown_name("render_mode", str(render_mode), ["ansi"])
        known = [field.name for field in dataclasses.fields(self.problems) if field.init]
        for name in options:
            if name not in known:
                raise unknown_argument("the environment", name, [*known, "max_steps", "render_mode"])
        self.dataset: StateDataset = self.problems(**options)
        self.max_steps = self.dataset.max_new_tokens if max_steps is None else max_steps
        require_whole("max_steps", self.max_steps, 1)
        check_budget(self.dataset, "max_steps", self.max_steps)
        self.render_mode = render_mode
        self.process = self.dataset.process
        self.observation_space: spaces.Space[np.int64] = spaces.Discrete(len(self.process.states))
        self.action_space: spaces.Space[np.int64] = spaces.Discrete(len(self.process.actions))
        self._steps = 0
        self._state: int | None = None
        self._luck = 0
        self._over = True
        self._drawn = ""

    @property
    def num_problems(self) -> int:
        """Number of problems in the data set."""
        return len(self.dataset)

    @property
    def manifest(self) -> dict[str, Any]:
        """The settings that determine an episode, as plain data, for the records of a run."""
        return {
            "dataset": str(self.dataset),
            "problems": len(self.dataset),
            "states": len(self.process.states),
            "actions": self.process.actions,
            "max_steps": self.max_steps,
        }

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[np.int64, Info]:
        """Start an episode.

        Args:
            seed: Seed of the generator that draws problems from now on.
            options: `{"problem": index}` chooses the problem; -1 draws it.

        Raises:
            InvalidArgumentError: If the problem's index is out of range, or an option is unknown.
        """
        super().reset(seed=seed)
        check_options(options, {"problem"})
        chosen = (options or {}).get("problem", -1)
        if not isinstance(chosen, int | np.integer) or not -1 <= chosen < len(self.dataset):
            raise InvalidArgumentError(
                f"problem {chosen!r} does not exist: expected -1 (draw) or [0, {len(self.dataset)})"
            )
        index = int(self.np_random.integers(len(self.dataset))) if chosen == -1 else int(chosen)
        self._state, self._luck = self.dataset.start(index), self.dataset.luck(index)
        self._steps, self._over = 0, False
        self._drawn = self.process.states[self._state]
        return np.int64(self._state), {"problem_id": self.dataset[index].id, "problem_index": index}

    def step(self, action: np.int64 | int) -> tuple[np.int64, float, bool, bool, Info]:
        """Make one action.

        Raises:
            ResetNeeded: Before the first reset and after the episode's end.
            InvalidArgumentError: If the action does not exist.
        """
        if self._state is None or self._over:
            raise ResetNeeded("call reset() before step(): there is no episode, or it has ended")
        if not self.action_space.contains(action):
            raise InvalidArgumentError(
                f"an action must be an integer from 0 to {len(self.process.actions) - 1}, got {action!r}"
            )
        move = operator.index(action)
        before = self._state
        self._state, reward = self.process.draw(before, move, self._luck, self._steps)
        self._steps += 1
        terminated = self.process.ends_at(self._state)
        truncated = not terminated and self._steps >= self.max_steps
        self._over = terminated or truncated
        self._drawn += f" {self.process.actions[move]} {self.process.states[self._state]}"
        info = {"regret": self.process.regret(before, move)} if self.process.bandit else {}
        return np.int64(self._state), float(reward), terminated, truncated, info

    def render(self) -> str | None:
        """Return the states and actions of the episode so far."""
        return None if self.render_mode is None else self._drawn
