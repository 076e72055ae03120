"""Custom agents, named on the command line."""

from __future__ import annotations

import inspect
import sys
from typing import cast

from agents.agent import Agent
from agents.config import AgentConfig
from verifiers import InvalidArgumentError, import_attribute


def own_agent(name: str) -> tuple[type[Agent], type[AgentConfig]]:
    """Import an agent and its config: `ClassConfig` from the same module, or else `AgentConfig`.

    Modules in the current folder are found too, although a console script, unlike `python -m`, does not search there.

    Args:
        name: module:Class, such as my_agents:MyAgent.

    Raises:
        UnknownNameError: If there is no such module or attribute.
        InvalidArgumentError: If the module can't be imported, or the attribute is not an agent.
    """
    cls = import_attribute(name, "agent")
    if not (isinstance(cls, type) and issubclass(cls, Agent)):
        raise InvalidArgumentError(f"{name!r} is not a subclass of agents.Agent")
    if inspect.isabstract(cls):
        raise InvalidArgumentError(f"{name!r} does not define {', '.join(sorted(cls.__abstractmethods__))}")
    if not isinstance(getattr(cls, "name", None), str):
        raise InvalidArgumentError(
            f"{name!r} has no name, which its runs and checkpoints need: define name = '...' in the class"
        )
    module_name, _, class_name = name.partition(":")
    config = getattr(sys.modules[module_name], f"{class_name}Config", AgentConfig)
    return cls, cast("type[AgentConfig]", config)
