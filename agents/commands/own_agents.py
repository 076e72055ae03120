"""Agents of the user's own, named on the command line."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

from agents.agent import Agent
from agents.config import AgentConfig
from verifiers import InvalidArgumentError


def own_agent(name: str) -> tuple[type[Agent], type[AgentConfig]]:
    """Import an agent and its config, `ClassConfig` beside it or else `AgentConfig`.

    Modules of the current folder are found, too: a console script, unlike `python -m`, does not look there.

    Args:
        name: module:Class, such as my_agents:MyAgent.

    Raises:
        InvalidArgumentError: If the module can't be imported, or has no such agent.
    """
    module_name, colon, kind_name = name.partition(":")
    if not colon:
        raise InvalidArgumentError(f"an agent of your own is module:Class, such as my_agents:MyAgent, got {name!r}")
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    try:
        module = importlib.import_module(module_name)
    except ImportError as error:
        raise InvalidArgumentError(f"can't import {module_name!r}, also not from {here}: {error}") from error
    kind = getattr(module, kind_name, None)
    if not (isinstance(kind, type) and issubclass(kind, Agent)):
        raise InvalidArgumentError(f"{name!r} is no subclass of agents.Agent")
    if not isinstance(getattr(kind, "name", None), str):
        raise InvalidArgumentError(
            f"{name!r} has no name, by which its runs and checkpoints go: give the class name = '...'"
        )
    return kind, getattr(module, f"{kind_name}Config", AgentConfig)
