"""All agents by name: the single table from which `agents`, `rlvr train` and the tests are derived."""

from __future__ import annotations

import importlib
import inspect
import sys
from dataclasses import dataclass
from importlib.metadata import entry_points
from typing import TYPE_CHECKING

from verifiers import InvalidArgumentError, import_attribute, unknown_name

if TYPE_CHECKING:
    from agents.agent import Agent
    from agents.config import AgentConfig

ENTRY_POINT_GROUP = "rlvr_envs.agents"


@dataclass(frozen=True)
class AgentEntry:
    """Location and summary of an agent."""

    module: str
    """Name of the module in `agents.algorithms`."""
    class_name: str
    summary: str
    """One line for `--help`."""

    @property
    def config_name(self) -> str:
        """Name of the agent's config class."""
        return f"{self.class_name}Config"

    def load(self) -> tuple[type[Agent], type[AgentConfig]]:
        """Import the agent's class and its config class."""
        module = importlib.import_module(f"agents.algorithms.{self.module}")
        return getattr(module, self.class_name), getattr(module, self.config_name)


AGENTS = {
    "reinforce": AgentEntry(
        "reinforce", "Reinforce", "policy gradient with the return from each token on, minus a baseline"
    ),
    "rloo": AgentEntry("rloo", "RLOO", "scores minus the mean of the group's other scores (leave-one-out)"),
    "remax": AgentEntry("remax", "ReMax", "scores minus the score of the greedy completion"),
    "actor-critic": AgentEntry("actor_critic", "ActorCritic", "TD errors of a critic, with eligibility traces"),
    "a2c": AgentEntry("a2c", "A2C", "advantages from a critic: n-step returns or generalised advantage estimation"),
    "npg": AgentEntry("npg", "NPG", "natural policy gradient: a step of fixed KL divergence"),
    "trpo": AgentEntry("trpo", "TRPO", "natural gradient with a line search inside a trust region"),
    "ppo": AgentEntry("ppo", "PPO", "clipped surrogate over minibatches, with a critic"),
    "vineppo": AgentEntry("vineppo", "VinePPO", "clipped surrogate with Monte Carlo values between steps, no critic"),
    "grpo": AgentEntry("grpo", "GRPO", "scores normalised within their group, clipped surrogate, no critic"),
    "dr-grpo": AgentEntry("dr_grpo", "DrGRPO", "GRPO without dividing by length and standard deviation"),
    "dapo": AgentEntry("dapo", "DAPO", "GRPO with clip-higher and dynamic sampling"),
    "reinforce++": AgentEntry(
        "reinforce_plus_plus", "ReinforcePlusPlus", "whitened returns, clipped surrogate, no critic"
    ),
    "opo": AgentEntry("opo", "OPO", "scores minus the length-weighted mean of their group, exactly on-policy"),
    "gspo": AgentEntry("gspo", "GSPO", "GRPO with one probability ratio per completion"),
    "cispo": AgentEntry("cispo", "CISPO", "GRPO with capped importance weights instead of clipping"),
    "gdpo": AgentEntry("gdpo", "GDPO", "GRPO for several rewards, each normalised separately"),
    "maxrl": AgentEntry("maxrl", "MaxRL", "GRPO that maximises the likelihood of correct completions"),
    "pass-at-k": AgentEntry("pass_at_k", "PassAtK", "maximises the expected best score of k completions"),
}
"""All agents, in the order in which they are best read."""


def agent_classes(name: str) -> tuple[type[Agent], type[AgentConfig]]:
    """Return the class of an agent and its config class.

    The config of a custom agent is `ClassConfig` from the same module, or else `AgentConfig`.

    Args:
        name: One of `AGENTS`; an entry point of the group `"rlvr_envs.agents"`; or module:Class, where the module may also
            be in the current folder.

    Raises:
        UnknownNameError: If there is no such agent, module or attribute; the message suggests the nearest.
        InvalidArgumentError: If the module can't be imported, or the attribute is not an agent.
    """
    if name in AGENTS:
        return AGENTS[name].load()
    points = {point.name: f"{point.module}:{point.attr}" for point in entry_points(group=ENTRY_POINT_GROUP)}
    path = points.get(name, name)
    if ":" not in path:
        raise unknown_name("agent", name, [*AGENTS, *points])
    cls = require_agent(import_attribute(path, "agent"), path)
    return cls, config_class(cls)


def config_class(cls: type[Agent]) -> type[AgentConfig]:
    """The config class of a custom agent."""
    default: type[AgentConfig] = importlib.import_module("agents.config").AgentConfig
    own: type[AgentConfig] = getattr(sys.modules[cls.__module__], f"{cls.__name__}Config", default)
    return own


def require_agent(cls: object, name: str) -> type[Agent]:
    """Check that something is a class of agents.

    Raises:
        InvalidArgumentError: If it is not, or does not define all that an agent must.
    """
    from agents.agent import Agent

    if not (isinstance(cls, type) and issubclass(cls, Agent)):
        raise InvalidArgumentError(f"{name!r} is not a subclass of agents.Agent")
    if inspect.isabstract(cls):
        raise InvalidArgumentError(f"{name!r} does not define {', '.join(sorted(cls.__abstractmethods__))}")
    if not isinstance(getattr(cls, "name", None), str):
        raise InvalidArgumentError(
            f"{name!r} has no name, which its runs and checkpoints need: define name = '...' in the class"
        )
    return cls
