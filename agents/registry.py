"""All agents by name: the tables from which `agents`, `rlvr train` and the tests are derived."""

from __future__ import annotations

import importlib
import inspect
import sys
from dataclasses import dataclass
from importlib.metadata import entry_points
from typing import TYPE_CHECKING, Any, cast

from verifiers import InvalidArgumentError, import_attribute, is_attribute_path, unknown_name

if TYPE_CHECKING:
    from agents.learn.agent import Agent
    from agents.settings.agent import AgentConfig
    from agents.tables.agent import TabularAgent, TabularConfig

ENTRY_POINT_GROUP = "rlvr_envs.agents"


@dataclass(frozen=True)
class AgentEntry:
    """Location and summary of an agent."""

    module: str
    """Name of the module in `agents`."""
    class_name: str
    summary: str
    """One-line summary for `--help`."""

    @property
    def config_name(self) -> str:
        """Name of the agent's config class."""
        return f"{self.class_name}Config"

    def load(self) -> tuple[type[Any], type[Any]]:
        """Import the agent's class and its config class."""
        module = importlib.import_module(f"agents.{self.module}")
        return getattr(module, self.class_name), getattr(module, self.config_name)


AGENTS = {
    "reinforce": AgentEntry(
        "algorithms.reinforce", "Reinforce", "policy gradient with the return from each token on, minus a baseline"
    ),
    "rloo": AgentEntry("algorithms.rloo", "RLOO", "scores minus the mean of the group's other scores (leave-one-out)"),
    "remax": AgentEntry("algorithms.remax", "ReMax", "scores minus the score of the greedy completion"),
    "actor-critic": AgentEntry(
        "algorithms.actor_critic", "ActorCritic", "TD errors of a critic, with eligibility traces"
    ),
    "a2c": AgentEntry(
        "algorithms.a2c", "A2C", "advantages from a critic: n-step returns or generalised advantage estimation"
    ),
    "npg": AgentEntry("algorithms.npg", "NPG", "natural policy gradient: a step of fixed KL divergence"),
    "trpo": AgentEntry("algorithms.trpo", "TRPO", "natural gradient with a line search inside a trust region"),
    "ppo": AgentEntry("algorithms.ppo", "PPO", "clipped surrogate over minibatches, with a critic"),
    "vineppo": AgentEntry(
        "algorithms.vineppo", "VinePPO", "clipped surrogate with Monte Carlo values between steps, no critic"
    ),
    "grpo": AgentEntry("algorithms.grpo", "GRPO", "scores normalised within their group, clipped surrogate, no critic"),
    "dr-grpo": AgentEntry("algorithms.dr_grpo", "DrGRPO", "GRPO without dividing by length and standard deviation"),
    "dapo": AgentEntry("algorithms.dapo", "DAPO", "GRPO with clip-higher and dynamic sampling"),
    "reinforce++": AgentEntry(
        "algorithms.reinforce_plus_plus", "ReinforcePlusPlus", "whitened returns, clipped surrogate, no critic"
    ),
    "opo": AgentEntry(
        "algorithms.opo", "OPO", "scores minus the length-weighted mean of their group, exactly on-policy"
    ),
    "gspo": AgentEntry("algorithms.gspo", "GSPO", "GRPO with one probability ratio per completion"),
    "cispo": AgentEntry("algorithms.cispo", "CISPO", "GRPO with capped importance weights instead of clipping"),
    "gdpo": AgentEntry("algorithms.gdpo", "GDPO", "GRPO for several rewards, each normalised separately"),
    "maxrl": AgentEntry("algorithms.maxrl", "MaxRL", "GRPO that maximises the likelihood of correct completions"),
    "pass-at-k": AgentEntry("algorithms.pass_at_k", "PassAtK", "maximises the expected best score of k completions"),
    "rft": AgentEntry(
        "algorithms.rft", "RFT", "rejection sampling: learns the right completions as if they were given"
    ),
    "dpo": AgentEntry(
        "algorithms.dpo", "DPO", "learns from pairs of better and worse completions, its own or from a file"
    ),
}
"""All agents that train a policy on tokens, in the order in which they are best read."""

VALUE_AGENTS = {
    "dqn": AgentEntry("algorithms.dqn", "DQN", "Q-learning with a network, a replay buffer and a target network"),
}
"""The agents that train a policy, on tokens or on vectors, to estimate action values, and learn from a replay buffer."""

TABULAR_AGENTS = {
    "epsilon-greedy": AgentEntry(
        "tables.epsilon_greedy", "EpsilonGreedy", "the highest mean reward, or at times any action"
    ),
    "gradient-bandit": AgentEntry(
        "tables.gradient_bandit",
        "GradientBandit",
        "gradient ascent on a softmax over preferences, with a mean baseline",
    ),
    "ucb1": AgentEntry("tables.ucb1", "UCB1", "the highest upper confidence bound of the mean reward"),
    "thompson": AgentEntry("tables.thompson", "Thompson", "each action with the probability that it is the best"),
    "linucb": AgentEntry(
        "tables.linucb", "LinUCB", "the highest upper confidence bound of a linear model of the reward"
    ),
    "monte-carlo": AgentEntry("tables.monte_carlo", "MonteCarlo", "action values by the returns of whole episodes"),
    "sarsa": AgentEntry(
        "tables.sarsa", "SARSA", "action values by the next n rewards and the value of the action after them"
    ),
    "expected-sarsa": AgentEntry("tables.expected_sarsa", "ExpectedSARSA", "SARSA with the mean over the next actions"),
    "q-learning": AgentEntry("tables.q_learning", "QLearning", "action values of the best policy, learned from any"),
    "double-q-learning": AgentEntry(
        "tables.double_q_learning", "DoubleQLearning", "two tables, of which one chooses and the other tells the value"
    ),
}
"""The agents that learn a table and need no model, in the order in which they are best read."""


def tabular_classes(name: str) -> tuple[type[TabularAgent], type[TabularConfig]]:
    """Return the class of an agent of `TABULAR_AGENTS` and its config class.

    Raises:
        UnknownNameError: If there is no such agent; the message suggests the nearest.
    """
    if name not in TABULAR_AGENTS:
        raise unknown_name("agent that learns a table", name, TABULAR_AGENTS)
    cls, config = TABULAR_AGENTS[name].load()
    return cast("tuple[type[TabularAgent], type[TabularConfig]]", (cls, config))


def agent_classes(name: str) -> tuple[type[Agent], type[AgentConfig]]:
    """Return the class of an agent and its config class.

    The config of a custom agent is `ClassConfig` from the same module, or else the config of the class that it extends.

    Args:
        name: One of `AGENTS`; an entry point of the group `"rlvr_envs.agents"`; or module:Class, where the module may also
            be in the current folder.

    Raises:
        UnknownNameError: If there is no such agent, module or attribute; the message suggests the nearest.
        InvalidArgumentError: If the module can't be imported, the attribute is not an agent, or the agent trains no model.
    """
    if name in AGENTS | VALUE_AGENTS:
        return (AGENTS | VALUE_AGENTS)[name].load()
    if name in TABULAR_AGENTS:
        raise InvalidArgumentError(
            f"the agent {name!r} learns a table and trains no model: see agents.tabular_classes, and rlvr train {name}"
        )
    path = check_agent_name(name)
    cls = require_agent(import_attribute(path, "agent"), path)
    return cls, config_class(cls)


def check_agent_name(name: str) -> str:
    """Return the module:Class of a custom agent, without importing it.

    Raises:
        UnknownNameError: If the name is neither an entry point nor a module:Class; the message suggests the nearest name.
    """
    points = {point.name: f"{point.module}:{point.attr}" for point in entry_points(group=ENTRY_POINT_GROUP)}
    path = points.get(name, name)
    if ":" not in path and not is_attribute_path(path):
        error = unknown_name("agent", name, [*AGENTS, *VALUE_AGENTS, *TABULAR_AGENTS, *points])
        raise type(error)(f"{error} An agent of your own is named by its module and class, as in module:Class")
    return path


def config_class(cls: type[Agent]) -> type[AgentConfig]:
    """The config class of a custom agent: its own, or else that of the nearest base class which has one."""
    configs = (getattr(sys.modules[base.__module__], f"{base.__name__}Config", None) for base in cls.__mro__)
    own: type[AgentConfig] = next(config for config in configs if config is not None)
    return own


def require_agent(cls: object, name: str) -> type[Agent]:
    """Check that an object is a class of agents.

    Raises:
        InvalidArgumentError: If the object is not such a class, or the class leaves a required member undefined.
    """
    from agents.learn.agent import Agent

    if not (isinstance(cls, type) and issubclass(cls, Agent)):
        raise InvalidArgumentError(f"{name!r} is not a subclass of agents.Agent")
    if inspect.isabstract(cls):
        raise InvalidArgumentError(f"{name!r} does not define {', '.join(sorted(cls.__abstractmethods__))}")
    if not isinstance(getattr(cls, "name", None), str):
        raise InvalidArgumentError(
            f"{name!r} has no name, which its runs and checkpoints need: define name = '...' in the class"
        )
    built_in = (AGENTS | VALUE_AGENTS).get(cls.name)
    if built_in is not None and (cls.__module__, cls.__name__) != (f"agents.{built_in.module}", built_in.class_name):
        raise InvalidArgumentError(
            f"{name!r} has the name {cls.name!r} of a built-in agent, so its runs could not be told from those of the other: "
            "define another name = '...' in the class"
        )
    return cls
