"""Loads trained agents without a language model for `rlvr eval` and `rlvr play`: a table, or a multilayer perceptron."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import gymnasium
from gymnasium.vector import SyncVectorEnv, VectorEnv

import rlvr_envs
from agents.commands.common import DISABLED, make_one, with_options
from agents.registry import VALUE_AGENTS, tabular_classes
from agents.rollouts.vector_adapter import with_token_info
from agents.runs.files.integrity import check_checksums
from agents.runs.run import latest_checkpoint, read_config
from verifiers import InvalidArgumentError, RLVRError

if TYPE_CHECKING:
    from agents.policies.mlp import MLPPolicy
    from agents.tables.agent import TabularAgent

_TABLE = "state.json"
_PERCEPTRON = Path("model", "architecture.json")


@dataclass(frozen=True)
class SavedAgent:
    """The checkpoint of an agent that reads numbers instead of tokens."""

    checkpoint: Path

    @classmethod
    def find(cls, model: str) -> SavedAgent | None:
        """The agent in a checkpoint or in the last checkpoint of a run; None if it is another kind of agent."""
        checkpoint = latest_checkpoint(Path(model)) or Path(model)
        found = any((checkpoint / file).is_file() for file in (_TABLE, _PERCEPTRON))
        return cls(checkpoint) if found else None

    @property
    def is_table(self) -> bool:
        """Whether the agent learned a table."""
        return (self.checkpoint / _TABLE).is_file()

    def load_table(self, env: gymnasium.Env[Any, Any]) -> TabularAgent:
        """Load the agent, for an environment with the same spaces as the one in which it learned."""
        check_checksums(self.checkpoint)
        state = json.loads((self.checkpoint / _TABLE).read_text(encoding="utf-8"))
        cls, config_cls = tabular_classes(state["agent"])
        agent = cls(env, config_cls(**state["config"]))
        agent.load(self.checkpoint)
        return agent

    @functools.cached_property
    def has_values(self) -> bool:
        """Whether a perceptron has learned action values instead of a policy."""
        from agents.learn.checkpoint import agent_of

        return agent_of(self.checkpoint) in VALUE_AGENTS

    def load_perceptron(self, env: VectorEnv[Any, Any, Any], *, temperature: float, seed: int) -> MLPPolicy:
        """Load the policy at a temperature, for an environment with the same spaces as the one in which it learned."""
        from agents.policies.devices import perceptron_device
        from agents.policies.mlp import MLPPolicy

        if self.has_values and temperature > 0:
            raise InvalidArgumentError(
                f"{self.checkpoint} holds action values, which are no log-probabilities to sample from: set --temperature 0"
            )
        policy = MLPPolicy.load(self.checkpoint, temperature=temperature, seed=seed)
        policy.model.to(perceptron_device())
        wanted, actions, given = policy.observation_size, policy.vocab_size, MLPPolicy.for_env(env)
        if (given.observation_size, given.vocab_size) != (wanted, actions):
            raise InvalidArgumentError(
                f"the perceptron at {self.checkpoint} reads {wanted} numbers and has {actions} actions, and the environment "
                f"shows {given.observation_size} and has {given.vocab_size}: choose the environment that it learned in"
            )
        return policy


def trained_arguments(model: str, environment: str) -> list[str] | None:
    """The environment's arguments that a model was trained with, each as name=value.

    Args:
        model: The folder of a run, of one of its checkpoints, or of a checkpoint's model.
        environment: Id of the environment.

    Returns:
        The arguments; None if the model does not belong to a run in this environment.
    """
    folder = Path(model).resolve()
    for run in (folder, *folder.parents[:3]):
        try:
            config = read_config(run)
            if rlvr_envs.environment_id(config["env"]) == environment:
                return [str(pair) for pair in config["env_args"]]
        except (
            RLVRError,
            KeyError,
            TypeError,
            OSError,
        ):  # not a run: a model's folder, for example, has another config
            continue
    return None


def make_plain(name: str, split: str, arguments: Mapping[str, Any]) -> gymnasium.Env[Any, Any]:
    """Build an environment without tokens; for the name of a token environment, build its variant with numbered states."""
    make = rlvr_envs.state_environment(name)
    own = {"split": split} if isinstance(make, type) and issubclass(make, rlvr_envs.StateEnv) else {}
    env = make_one(name, make, with_options(own, arguments))
    if isinstance(env.unwrapped, rlvr_envs.TokenEnv):
        raise InvalidArgumentError(f"the environment {name!r} has tokens, which only a language model reads")
    return env


def vectorized(makers: Sequence[Callable[[], gymnasium.Env[Any, Any]]]) -> VectorEnv[Any, Any, Any]:
    """Combine environments to a vector environment for rollouts of a perceptron."""
    return with_token_info(SyncVectorEnv(makers, autoreset_mode=DISABLED))


def check_table_temperature(temperature: float) -> None:
    """Refuse a temperature that a table can't be played at."""
    if temperature not in (0, 1):
        raise InvalidArgumentError(
            f"a table has no temperature: 0 plays the best actions, and 1 explores as in training; got {temperature:g}"
        )
