"""Agents of the user's own, named on the command line."""

from __future__ import annotations

import inspect
import sys
from typing import cast

from agents.agent import Agent
from agents.config import AgentConfig
from verifiers import InvalidArgumentError, import_attribute


def own_agent(name: str) -> tuple[type[Agent], type[AgentConfig]]:
    """Import an agent and its config, `ClassConfig` beside it or else `AgentConfig`.

    Modules of the current folder are found, too: a console script, unlike `python -m`, does not look there.

    Args:
        name: module:Class, such as my_agents:MyAgent.

    Raises:
        UnknownNameError: If there is no such module or attribute.
        InvalidArgumentError: If the module can't be imported, or the attribute is no agent.
    """
    cls = import_attribute(name, "agent")
    if not (isinstance(cls, type) and issubclass(cls, Agent)):
        raise InvalidArgumentError(f"{name!r} is no subclass of agents.Agent")
    if inspect.isabstract(cls):
        raise InvalidArgumentError(f"{name!r} does not define {', '.join(sorted(cls.__abstractmethods__))}")
    if not isinstance(getattr(cls, "name", None), str):
        raise InvalidArgumentError(
            f"{name!r} has no name, by which its runs and checkpoints go: give the class name = '...'"
        )
    module_name, _, class_name = name.partition(":")
    config = getattr(sys.modules[module_name], f"{class_name}Config", AgentConfig)
    return cls, cast("type[AgentConfig]", config)
