"""All agents by name: the single table from which `agents`, `rlvr train` and the tests are derived."""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

from verifiers import unknown_name

if TYPE_CHECKING:
    from agents.agent import Agent
    from agents.config import AgentConfig


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

    Raises:
        UnknownNameError: If there is no such agent; the message suggests the nearest.
    """
    if name not in AGENTS:
        raise unknown_name("agent", name, AGENTS)
    return AGENTS[name].load()
