"""Every agent there is, by name: the one table from which `agents`, `rlvr train` and the tests derive."""

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
    """Where an agent is, and what it is in a line."""

    module: str
    """Name of the module in `agents.algorithms`."""
    class_name: str
    summary: str

    @property
    def config_name(self) -> str:
        """Name of the class of its settings."""
        return f"{self.class_name}Config"

    def load(self) -> tuple[type[Agent], type[AgentConfig]]:
        """Import the agent's class and its config's."""
        module = importlib.import_module(f"agents.algorithms.{self.module}")
        return getattr(module, self.class_name), getattr(module, self.config_name)


AGENTS = {
    "reinforce": AgentEntry(
        "reinforce", "Reinforce", "each token weighed by the reward from there on, less a baseline"
    ),
    "rloo": AgentEntry("rloo", "RLOO", "scores compared with the mean of the group's others"),
    "remax": AgentEntry("remax", "ReMax", "scores compared with that of the greedy completion"),
    "actor-critic": AgentEntry("actor_critic", "ActorCritic", "errors of a critic, traced back"),
    "a2c": AgentEntry("a2c", "A2C", "advantages from a critic: n-step errors or generalised advantage estimation"),
    "npg": AgentEntry("npg", "NPG", "natural policy gradient: a step of fixed divergence"),
    "trpo": AgentEntry("trpo", "TRPO", "the natural gradient with a line search in a trust region"),
    "ppo": AgentEntry("ppo", "PPO", "clipped surrogate over minibatches, a critic"),
    "grpo": AgentEntry("grpo", "GRPO", "scores relative to their group, clipped surrogate, no critic"),
    "dr-grpo": AgentEntry("dr_grpo", "DrGRPO", "GRPO without its divisions by length and standard deviation"),
    "dapo": AgentEntry("dapo", "DAPO", "GRPO with clip-higher and dynamic sampling"),
    "reinforce++": AgentEntry(
        "reinforce_plus_plus", "ReinforcePlusPlus", "whitened returns, clipped surrogate, no critic"
    ),
    "opo": AgentEntry("opo", "OPO", "scores compared with their group's length-weighted mean, exactly on-policy"),
    "gspo": AgentEntry("gspo", "GSPO", "GRPO with one ratio for each completion"),
    "cispo": AgentEntry("cispo", "CISPO", "GRPO with capped importance weights in place of clipping"),
    "gdpo": AgentEntry("gdpo", "GDPO", "GRPO for several rewards, each normalised on its own"),
    "maxrl": AgentEntry("maxrl", "MaxRL", "GRPO that climbs the likelihood of right completions"),
    "pass-at-k": AgentEntry("pass_at_k", "PassAtK", "climbs the expected best score of k completions"),
}
"""In the order in which they are best read."""


def agent_classes(name: str) -> tuple[type[Agent], type[AgentConfig]]:
    """The class of an agent and that of its config.

    Raises:
        UnknownNameError: If there is no such agent; the message offers the nearest.
    """
    if name not in AGENTS:
        raise unknown_name("agent", name, AGENTS)
    return AGENTS[name].load()
