"""Base of agents for bandits; the table has the mean reward of each action for each observation."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
from numpy.typing import NDArray

import rlvr_envs
from agents.tables.agent import TabularAgent, TabularConfig, Transition
from verifiers import InvalidArgumentError


class BanditAgent(TabularAgent):
    """An agent for actions that earn a reward and change nothing else. Each observation is a separate bandit.

    A subclass defines `name` and `choose`. It may learn more than counts and means.
    """

    def __init__(self, env: gymnasium.Env[Any, Any], config: TabularConfig | None = None) -> None:
        super().__init__(env, config)
        self.counts: NDArray[np.int64] = np.zeros((self.num_states, self.num_actions), dtype=np.int64)
        """i64[s a], the number of choices of each action."""
        self.means: NDArray[np.float64] = np.zeros((self.num_states, self.num_actions))
        """f64[s a], the mean reward of each action; 0 for an action that was never chosen."""

    def observe(self, transition: Transition) -> None:
        """Q_{n+1} = Q_n + (R_n - Q_n) / n (Sutton & Barto 2018, 2.3): the mean of all rewards so far."""
        if not (transition.terminated or transition.truncated):
            raise InvalidArgumentError(
                f"{self.name} learns from the reward of one action, and this episode goes on after it: use an environment of "
                "bandits, such as rlvr/BanditState-v0, or an agent that looks ahead, such as q-learning"
            )
        state, action = transition.state, transition.action
        self.counts[state, action] += 1
        self.means[state, action] += (transition.reward - self.means[state, action]) / self.counts[state, action]

    def acting_values(self, state: int) -> NDArray[np.float64]:
        """The means f64[a]."""
        row: NDArray[np.float64] = self.means[state]
        return row

    def tables(self) -> dict[str, NDArray[Any]]:
        """Counts and means."""
        return {"counts": self.counts, "means": self.means}

    def check_env(self, env: gymnasium.Env[Any, Any]) -> None:
        """Refuse an environment whose episodes are known to continue after an action."""
        world = env.unwrapped
        if isinstance(world, rlvr_envs.StateEnv) and world.max_steps > 1 and not world.process.one_action:
            pulls = getattr(world.dataset, "pulls", None)
            instead = "use a bandit, such as --env Bandit" if pulls is None else f"set pulls=1, got {pulls}"
            raise InvalidArgumentError(
                f"{self.name} learns from the reward of one action, and an episode of "
                f"{type(world).__name__.removesuffix('StateEnv')} goes on after it: {instead}, or use an agent that looks "
                "ahead, such as q-learning"
            )
