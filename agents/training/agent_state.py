"""The state of an agent that is saved in a checkpoint besides the model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agents.training.carried import carried_from_state, carried_state
from agents.training.random_state import random_state, set_random_state

if TYPE_CHECKING:
    from agents.agent import Agent
    from agents.settings.agent import AgentConfig


def agent_state(agent: Agent) -> dict[str, Any]:
    """Return an agent's state as tensors and plain data, for `restore`."""
    return {
        "agent": agent.name,
        "parts": components_of(agent),
        "steps": agent.steps,
        "rounds": agent.rounds,
        "tokens": agent.tokens,
        "learner": agent.learner.state_dict(),
        "reference": None if agent.reference is None else agent.reference.state_dict(),
        "kl_coefficient": None if agent.kl_controller is None else agent.kl_controller.coefficient,
        "carried": carried_state(agent.carried),
        "ahead": [] if agent.lagged is None else agent.lagged.state(),
        "own": agent.own_state(),
        "random": random_state(),
    }


def restore(agent: Agent, state: dict[str, Any]) -> None:
    """Restore a state of `agent_state`; the agent must have the same components."""
    agent.steps, agent.rounds, agent.tokens = state["steps"], state["rounds"], state["tokens"]
    agent.learner.load_state_dict(state["learner"])
    if agent.reference is not None:
        agent.reference.load_state_dict(state["reference"])
    if agent.kl_controller is not None:
        agent.kl_controller.coefficient = state["kl_coefficient"]
    agent.carried = carried_from_state(state.get("carried", ()))
    if agent.lagged is not None:
        agent.lagged.load_state(state["ahead"])
    agent.load_own_state(state["own"])
    set_random_state(state["random"])


def components_of(agent: Agent) -> dict[str, list[str] | None]:
    """Names of the weights of each component of an agent besides its policy; None for a component it does not have.

    A lag counts as one, since a checkpoint holds what was sampled ahead, and so do groups that are carried over updates.
    """
    return {
        "critic": None if agent.critic is None else list(agent.critic.state_dict()),
        "reference": None if agent.reference is None else list(agent.reference.state_dict() or ()),
        "KL controller": None if agent.kl_controller is None else [],
        **({} if agent.lagged is None else {f"lag of {agent.config.lag}": []}),
        **({_carried(agent.config): []} if agent.config.carried_groups else {}),
    }


def _carried(config: AgentConfig) -> str:
    """The settings that number the groups which are carried over updates, and say how large they are."""
    return f"{config.carried_groups} carried groups of {config.group_size}, beside {config.problems_per_step} a step"
